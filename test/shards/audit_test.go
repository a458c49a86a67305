package shards

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/sharding"

	"example.com/sample-controller/internal/suite/audit"
)

// tenure is the time in which a user held a shard.
type tenure struct {
	user     string
	from, to time.Time // to is zero if the user never released it
}

// requests returns the replicas' requests, in the order in which the API server received them.
func requests(t *testing.T) []audit.Request {
	t.Helper()
	all, _, err := audit.Read(controlPlane.AuditLog(), 0, "shards-")
	if err != nil {
		t.Fatal(err)
	}
	slices.SortStableFunc(all, func(a, b audit.Request) int {
		return a.RequestReceivedTimestamp.Compare(b.RequestReceivedTimestamp)
	})
	return all
}

// tenures returns who held each shard when. A replica writes the Lease of a shard when it takes the
// shard, and when it releases it.
func tenures(all []audit.Request) map[string][]tenure {
	found := map[string][]tenure{}
	for _, r := range all {
		_, shard, ok := strings.Cut(r.ObjectRef.Name, "-shard-")
		if !ok || r.ObjectRef.Resource != "leases" || !r.IsWrite() || !r.Succeeded() {
			continue
		}
		history := found[shard]
		last := len(history) - 1
		if last >= 0 && history[last].user == r.User() && history[last].to.IsZero() {
			history[last].to = r.RequestReceivedTimestamp
			continue
		}
		found[shard] = append(history, tenure{user: r.User(), from: r.RequestReceivedTimestamp})
	}
	return found
}

// bounds are where the six shards begin, and where the last one ends: multiples of 2^64/6.
var bounds = []string{
	"0x0000000000000000", "0x2aaaaaaaaaaaaaaa", "0x5555555555555555", "0x8000000000000000",
	"0xaaaaaaaaaaaaaaaa", "0xd555555555555555", "0x10000000000000000",
}

// selectorOf selects the objects of a shard.
func selectorOf(index int) sharding.Selector {
	return sharding.NewSelector(sharding.ShardRangeRequirement{
		Key: "object.metadata.namespace", Start: bounds[index], End: bounds[index+1],
	})
}

// shardOf returns the shard of a namespace, as it is named in Leases.
func shardOf(t *testing.T, namespace string) string {
	t.Helper()
	object := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: namespace}}
	for index := range len(bounds) - 1 {
		matches, err := selectorOf(index).Matches(object)
		if err != nil {
			t.Fatal(err)
		}
		if matches {
			return fmt.Sprintf("%d-of-6", index)
		}
	}
	t.Fatalf("namespace %s is in no shard", namespace)
	return ""
}

// checkWriters fails the test if a replica wrote in a namespace while another one held the shard.
func checkWriters(t *testing.T, all []audit.Request, thawed map[string]time.Time) {
	t.Helper()
	wrong, excused, writes := strangers(t, all, thawed, *patience/45) // by default, 2s
	for _, r := range wrong {
		t.Errorf("%s wrote at %v in a shard that it did not hold: %v", r.User(),
			r.RequestReceivedTimestamp, r)
	}
	if writes == 0 {
		t.Error("the replicas wrote nothing")
	}
	moves := 0
	for _, history := range tenures(all) {
		moves += len(history)
	}
	t.Logf("%d writes, %d of them by replicas that had just thawed; shards were taken %d times",
		writes, excused, moves)
}

// strangers returns the writes by replicas that did not hold the shard, and the number of all
// writes. A replica that wakes up from a freeze may write for a moment: it is excused. Events come
// later than what they report, and do not count.
func strangers(
	t *testing.T, all []audit.Request, thawed map[string]time.Time, moment time.Duration,
) (wrong []audit.Request, excused, writes int) {
	t.Helper()
	held := tenures(all)
	for _, r := range all {
		if !r.IsWrite() || r.ObjectRef.Resource == "leases" || r.ObjectRef.Resource == "events" {
			continue
		}
		writes++
		at := r.RequestReceivedTimestamp
		if isHolder(held[shardOf(t, r.ObjectRef.Namespace)], r.User(), at) {
			continue
		}
		if thaw, frozen := thawed[r.User()]; frozen && at.After(thaw) && at.Sub(thaw) < moment {
			excused++
			continue
		}
		wrong = append(wrong, r)
	}
	return wrong, excused, writes
}

// isHolder reports whether user held the shard at that time. Without a release, that ends when the
// next one takes it.
func isHolder(history []tenure, user string, at time.Time) bool {
	for i, held := range history {
		end := held.to
		if end.IsZero() && i+1 < len(history) {
			end = history[i+1].from
		}
		if held.user == user && !at.Before(held.from) && (end.IsZero() || !at.After(end)) {
			return true
		}
	}
	return false
}

// checkCreatedOnce fails the test if a Deployment was created twice.
func checkCreatedOnce(t *testing.T, all []audit.Request) {
	t.Helper()
	times := map[string]int{}
	for _, r := range all {
		if r.Creates("deployments") {
			name := r.ObjectRef.Namespace + "/" + r.ObjectRef.Name
			if times[name]++; times[name] > 1 {
				t.Errorf("Deployment %s was created %d times", name, times[name])
			}
		}
		if r.Deletes("deployments") {
			t.Errorf("a Deployment was deleted: %v", r)
		}
	}
}

func TestWritesOfStrangersAreNoticed(t *testing.T) {
	begin := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	var log []audit.Request
	request := func(second int, user, verb, resource, namespace, name string) {
		r := audit.Request{Verb: verb}
		r.ImpersonatedUser.Username = user
		r.ObjectRef.Resource, r.ObjectRef.Namespace, r.ObjectRef.Name = resource, namespace, name
		r.RequestReceivedTimestamp = begin.Add(time.Duration(second) * time.Second)
		log = append(log, r)
	}
	const shard = "sample-controller-shard-5-of-6" // that of the namespace default
	request(1, "a", "create", "leases", "default", shard)
	request(2, "a", "create", "deployments", "default", "right")
	request(3, "b", "create", "deployments", "default", "wrong: never held")
	request(4, "a", "update", "leases", "default", shard)
	request(5, "a", "update", "deployments", "default", "wrong: released")
	request(6, "b", "update", "leases", "default", shard)
	request(7, "b", "update", "deployments", "default", "right")
	request(20, "c", "update", "leases", "default", shard)
	request(21, "c", "update", "deployments", "default", "right")
	request(22, "b", "update", "deployments", "default", "excused")
	request(25, "b", "update", "deployments", "default", "wrong: too late")
	wrong, excused, writes := strangers(t, log, map[string]time.Time{"b": begin.Add(21 * time.Second)},
		2*time.Second)

	var names []string
	for _, r := range wrong {
		names = append(names, r.ObjectRef.Name)
	}
	want := []string{"wrong: never held", "wrong: released", "wrong: too late"}
	if !slices.Equal(names, want) || excused != 1 || writes != 7 {
		t.Errorf("got %v of %d writes, %d excused, want %v of 7, 1 excused", names, writes, excused, want)
	}
}
