package shards

import (
	"cmp"
	"context"
	"fmt"
	"math/bits"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/sharding"
	"k8s.io/apimachinery/pkg/watch"
	coordinationclient "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/tools/cache"
)

// Shard is one of Count parts of all namespaces. The hash of its name puts a namespace into one of
// them: shard 0 has the smallest hashes.
type Shard struct{ Index, Count int }

func (s Shard) String() string { return fmt.Sprintf("%d-of-%d", s.Index, s.Count) }

// selector selects the objects in the namespaces of s. Its text is for the API server, and its
// method Matches does the same here: both are from apimachinery.
func (s Shard) selector() sharding.Selector {
	return sharding.NewSelector(sharding.ShardRangeRequirement{
		Key: "object.metadata.namespace", Start: s.bound(s.Index), End: s.bound(s.Index + 1),
	})
}

// bound returns where the shard of that index begins: index/Count of all 64-bit hashes.
func (s Shard) bound(index int) string {
	if index == s.Count {
		return "0x10000000000000000"
	}
	bound, _ := bits.Div64(uint64(index), 0, uint64(s.Count))
	return fmt.Sprintf("0x%016x", bound)
}

// ServerFilters reports whether the API server knows shard selectors. One that does not ignores
// them, and sends everything. A list of Leases says which selector it was made with. Lists of
// custom resources do not, in Kubernetes 1.37, although the API server filters them, too.
func ServerFilters(ctx context.Context, leases coordinationclient.LeaseInterface) (bool, error) {
	list, err := leases.List(ctx, metav1.ListOptions{
		Limit: 1, ShardSelector: Shard{Index: 0, Count: 2}.selector().String(),
	})
	if err != nil {
		return false, err
	}
	return list.ShardInfo != nil, nil
}

// ListWatch lists and watches, for an informer, the objects of a shard that labelSelector selects.
// It asks the API server for nothing else, and also drops what is not in the shard. So it does not
// depend on the API server: that may not know shard selectors, or may be replaced by one that does
// not while the informer runs.
func ListWatch[L runtime.Object](
	shard Shard,
	labelSelector string,
	listAll func(context.Context, metav1.ListOptions) (L, error),
	watchAll func(context.Context, metav1.ListOptions) (watch.Interface, error),
) *cache.ListWatch {
	selector := shard.selector()
	return &cache.ListWatch{
		ListWithContextFunc: func(
			ctx context.Context, options metav1.ListOptions,
		) (runtime.Object, error) {
			options.LabelSelector, options.ShardSelector = labelSelector, selector.String()
			all, err := listAll(ctx, options)
			if err != nil {
				return nil, err
			}
			return all, dropOthers(all, selector)
		},
		WatchFuncWithContext: func(
			ctx context.Context, options metav1.ListOptions,
		) (watch.Interface, error) {
			options.LabelSelector, options.ShardSelector = labelSelector, selector.String()
			events, err := watchAll(ctx, options)
			if err != nil {
				return nil, err
			}
			return filter(events, selector), nil
		},
	}
}

// dropOthers drops the objects that selector does not select from a list.
func dropOthers(list runtime.Object, selector sharding.Selector) error {
	items, err := meta.ExtractList(list)
	if err != nil {
		return err
	}
	return meta.SetList(list, slices.DeleteFunc(items, func(item runtime.Object) bool {
		return !selects(selector, item)
	}))
}

// filter passes on the events of objects that selector selects, and those that are about no object.
func filter(events watch.Interface, selector sharding.Selector) watch.Interface {
	return drained{watch.Filter(events, func(e watch.Event) (watch.Event, bool) {
		return e, e.Type == watch.Bookmark || selects(selector, e.Object)
	})}
}

// selects reports whether selector selects object. It does not judge what has no metadata: errors.
func selects(selector sharding.Selector, object runtime.Object) bool {
	matches, err := selector.Matches(object)
	return matches || err != nil
}

// drained is a watch that ends although nobody takes the last event. The goroutine of watch.Filter
// would wait for ever.
type drained struct{ watch.Interface }

func (d drained) Stop() {
	d.Interface.Stop()
	go func() {
		for range d.ResultChan() {
		}
	}()
}

// assign returns which replica should hold each shard. holders says who holds it now; a name that
// is not among the replicas does not count. The result is even within one. It leaves a shard where
// it is unless its holder has too many. The order of replicas does not matter, so all replicas that
// know the same come to the same result.
func assign(holders, replicas []string) []string {
	wanted := make([]string, len(holders))
	if len(replicas) == 0 {
		return wanted
	}
	held := map[string]int{}
	for _, holder := range holders {
		held[holder]++
	}
	// If the shards cannot be divided evenly, those that hold most may keep one more.
	replicas = slices.SortedFunc(slices.Values(replicas), func(a, b string) int {
		return cmp.Or(cmp.Compare(held[b], held[a]), cmp.Compare(a, b))
	})
	quota := map[string]int{}
	for i, replica := range replicas {
		quota[replica] = len(holders) / len(replicas)
		if i < len(holders)%len(replicas) {
			quota[replica]++
		}
	}
	for i, holder := range holders {
		if quota[holder] > 0 {
			wanted[i] = holder
			quota[holder]--
		}
	}
	for i := range wanted {
		if wanted[i] != "" {
			continue
		}
		for quota[replicas[0]] == 0 {
			replicas = replicas[1:]
		}
		wanted[i] = replicas[0]
		quota[replicas[0]]--
	}
	return wanted
}
