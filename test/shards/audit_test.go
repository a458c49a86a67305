package shards

import (
	"fmt"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/sharding"

	"example.com/sample-controller/internal/testing/suite/audit"
)

const shardCount = 6

// bounds are where the shards begin, and where the last one ends: multiples of 2^64/6.
var bounds = [shardCount + 1]string{
	"0x0000000000000000", "0x2aaaaaaaaaaaaaaa", "0x5555555555555555", "0x8000000000000000",
	"0xaaaaaaaaaaaaaaaa", "0xd555555555555555", "0x10000000000000000",
}

// selectorOf selects the objects of a shard.
func selectorOf(index int) sharding.Selector {
	return sharding.NewSelector(sharding.ShardRangeRequirement{
		Key: "object.metadata.namespace", Start: bounds[index], End: bounds[index+1],
	})
}

// isIn reports whether a namespace is in a shard.
func isIn(t *testing.T, namespace string, index int) bool {
	t.Helper()
	matches, err := selectorOf(index).Matches(&metav1.PartialObjectMetadata{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace},
	})
	if err != nil {
		t.Fatal(err)
	}
	return matches
}

// verdict is what an audit log says of the replicas.
type verdict struct {
	strangers              []audit.Request // writes by replicas that did not hold the shard
	excused, writes, moves int
}

// judge judges requests, which are in the order in which the API server received them. A replica
// writes the Lease of a shard when it takes the shard, and when it releases it. One that wakes up
// from a freeze may write for a moment: it is excused. Events come later than what they report, and
// do not count.
func judge(
	t *testing.T, all []audit.Request, thawed map[string]time.Time, moment time.Duration,
) (v verdict) {
	t.Helper()
	holders := [shardCount]string{}
	for _, r := range all {
		if !r.IsWrite() || r.ObjectRef.Resource == "events" {
			continue
		}
		if r.ObjectRef.Resource == "leases" {
			var shard int
			_, err := fmt.Sscanf(r.ObjectRef.Name, "sample-controller-shard-%d-of-6", &shard)
			switch {
			case err != nil || !r.Succeeded():
			case holders[shard] == r.User():
				holders[shard] = ""
			default:
				holders[shard] = r.User()
				v.moves++
			}
			continue
		}
		v.writes++
		thaw, frozen := thawed[r.User()]
		since := r.RequestReceivedTimestamp.Sub(thaw)
		switch {
		case isHolder(t, holders, r):
		case frozen && since > 0 && since < moment:
			v.excused++
		default:
			v.strangers = append(v.strangers, r)
		}
	}
	return v
}

// isHolder reports whether r is by the holder of the shard that its namespace is in.
func isHolder(t *testing.T, holders [shardCount]string, r audit.Request) bool {
	t.Helper()
	for shard, holder := range holders {
		if holder == r.User() && isIn(t, r.ObjectRef.Namespace, shard) {
			return true
		}
	}
	return false
}

// checkRequests fails the test if a replica wrote in a namespace while another one held the shard,
// or if a Deployment was created twice.
func checkRequests(t *testing.T, thawed map[string]time.Time) {
	t.Helper()
	all, _, err := audit.Read(controlPlane.AuditLog(), 0, "shards-")
	if err != nil {
		t.Fatal(err)
	}
	slices.SortStableFunc(all, func(a, b audit.Request) int {
		return a.RequestReceivedTimestamp.Compare(b.RequestReceivedTimestamp)
	})
	v := judge(t, all, thawed, *patience/45) // by default, 2s
	for _, r := range v.strangers {
		t.Errorf("%s wrote at %v in a shard that it did not hold: %v", r.User(),
			r.RequestReceivedTimestamp, r)
	}
	if v.writes == 0 {
		t.Error("the replicas wrote nothing")
	}
	t.Logf("%d writes, %d of them by replicas that had just thawed; shards were taken %d times",
		v.writes, v.excused, v.moves)
	created := map[string]bool{}
	for _, r := range all {
		name := r.ObjectRef.Namespace + "/" + r.ObjectRef.Name
		if r.Creates("deployments") && created[name] || r.Deletes("deployments") {
			t.Errorf("a Deployment was created again, or deleted: %v", r)
		}
		created[name] = created[name] || r.Creates("deployments")
	}
}

func TestWritesOfStrangersAreNoticed(t *testing.T) {
	begin := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	var log []audit.Request
	request := func(second int, user, resource, name string) {
		r := audit.Request{Verb: "update"}
		r.ImpersonatedUser.Username = user
		r.ObjectRef.Resource, r.ObjectRef.Namespace, r.ObjectRef.Name = resource, "default", name
		r.RequestReceivedTimestamp = begin.Add(time.Duration(second) * time.Second)
		log = append(log, r)
	}
	const shard = "sample-controller-shard-5-of-6" // that of the namespace default
	request(1, "a", "leases", shard)
	request(2, "a", "deployments", "right")
	request(3, "b", "deployments", "wrong: never held")
	request(4, "a", "leases", shard)
	request(5, "a", "deployments", "wrong: released")
	request(6, "b", "leases", shard)
	request(7, "b", "deployments", "right")
	request(20, "c", "leases", shard)
	request(21, "c", "deployments", "right")
	request(22, "b", "deployments", "excused")
	request(25, "b", "deployments", "wrong: too late")
	v := judge(t, log, map[string]time.Time{"b": begin.Add(21 * time.Second)}, 2*time.Second)

	var names []string
	for _, r := range v.strangers {
		names = append(names, r.ObjectRef.Name)
	}
	want := []string{"wrong: never held", "wrong: released", "wrong: too late"}
	if !slices.Equal(names, want) || v.excused != 1 || v.writes != 7 || v.moves != 3 {
		t.Errorf("got %q, %+v, want %q, 1 excused of 7 writes, 3 moves", names, v, want)
	}
}
