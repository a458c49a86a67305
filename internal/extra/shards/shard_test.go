package shards

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kubefake "k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/cache"

	"example.com/sample-controller/internal/testing/must"
)

func (s Shard) matches(t *testing.T, namespace string) bool {
	t.Helper()
	return must.Get(s.selector().Matches(&corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace},
	}))(t)
}

func TestSelectorIsWhatTheAPIServerReads(t *testing.T) {
	tests := []struct {
		shard Shard
		want  string
	}{
		{Shard{0, 1}, "'0x0000000000000000', '0x10000000000000000'"},
		{Shard{0, 4}, "'0x0000000000000000', '0x4000000000000000'"},
		{Shard{3, 4}, "'0xc000000000000000', '0x10000000000000000'"},
		{Shard{1, 3}, "'0x5555555555555555', '0xaaaaaaaaaaaaaaaa'"},
	}
	for _, test := range tests {
		want := "shardRange(object.metadata.namespace, " + test.want + ")"
		if got := test.shard.selector().String(); got != want {
			t.Errorf("shard %v: got %s, want %s", test.shard, got, want)
		}
	}
}

// fill returns how many of 200 namespaces are in each of 6 shards.
func fill(t *testing.T, format string) []int {
	t.Helper()
	counts, total := make([]int, 6), 0
	for i := range 200 {
		for index := range counts {
			if (Shard{index, len(counts)}).matches(t, fmt.Sprintf(format, i)) {
				counts[index]++
				total++
			}
		}
		if total != i+1 {
			t.Fatalf("namespace %d like %s is in %d shards, want 1", i, format, total-i)
		}
	}
	return counts
}

// The hash is FNV-1a, and the last characters of a name hardly change its upper bits, which decide.
func TestNamesThatDifferOnlyInTheEndShareAShard(t *testing.T) {
	got := fill(t, "team-%03d")
	if want := []int{0, 0, 0, 0, 200, 0}; !slices.Equal(got, want) {
		t.Errorf("team-000 to team-199: got %v in 6 shards, want %v", got, want)
	}
	got = fill(t, "%03d-team")
	if smallest := slices.Min(got); smallest < 20 {
		t.Errorf("000-team to 199-team: got %v in 6 shards, want at least 20 in each", got)
	}
}

func newPod(namespace, name string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: namespace, Name: name, Labels: map[string]string{"app": "web"},
	}}
}

// The fake API server ignores shard selectors, as one without the feature does.
func TestInformerHasOnlyItsShard(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		mine := Shard{0, 2}
		const inside, outside = "west", "default"
		kube := kubefake.NewClientset(newPod(inside, "old"), newPod(outside, "old"))
		pods := kube.CoreV1().Pods(metav1.NamespaceAll)
		informer := cache.NewSharedIndexInformer(cache.ToListWatcherWithWatchListSemantics(
			ListWatch(mine, "app=web", pods.List, pods.Watch), kube), &corev1.Pod{}, 0, nil)
		go informer.RunWithContext(ctx)
		synctest.Wait()
		for _, namespace := range []string{inside, outside} {
			must.Get(kube.CoreV1().Pods(namespace).Create(
				ctx, newPod(namespace, "new"), metav1.CreateOptions{}))(t)
		}
		synctest.Wait()

		keys := slices.Sorted(slices.Values(informer.GetStore().ListKeys()))
		if want := []string{inside + "/new", inside + "/old"}; !slices.Equal(keys, want) {
			t.Errorf("the informer has %v, want %v", keys, want)
		}
		requests := 0
		for _, action := range kube.Actions() {
			options := metav1.ListOptions{}
			switch action := action.(type) {
			case clienttesting.ListActionImpl:
				options = action.ListOptions
			case clienttesting.WatchActionImpl:
				options = action.ListOptions
			default:
				continue
			}
			requests++
			if options.LabelSelector != "app=web" || options.ShardSelector != mine.selector().String() {
				t.Errorf("%v with selectors %q and %q", action, options.LabelSelector, options.ShardSelector)
			}
		}
		if requests < 2 {
			t.Errorf("the informer made %d requests, want a list and a watch", requests)
		}
		cancel()
		time.Sleep(time.Minute) // the bubble ends only if no goroutine is left
	})
}
