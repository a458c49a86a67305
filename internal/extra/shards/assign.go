package shards

import (
	"cmp"
	"slices"
)

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
