package shards

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

func TestAssign(t *testing.T) {
	tests := []struct{ name, holders, replicas, want string }{
		{"nobody is there", "- - -", "", "- - -"},
		{"one takes all", "- - -", "a", "a a a"},
		{"the last shards move to the second", "a a a a", "a b", "a a b b"},
		{"nothing moves", "b a b a", "a b", "b a b a"},
		{"those that hold more keep one more", "a b b b c c", "a b c d", "a b b d c c"},
		{"shards of the dead are divided", "a - b - a -", "a b", "a a b b a b"},
		{"one that leaves does not count", "c a c b", "a b", "a a b b"},
		{"more replicas than shards", "a b", "a b c", "a b"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			holders := strings.Fields(strings.ReplaceAll(test.holders, "-", "."))
			for i, holder := range holders {
				holders[i] = strings.Trim(holder, ".")
			}
			var got []string
			for _, wanted := range assign(holders, strings.Fields(test.replicas)) {
				if wanted == "" {
					wanted = "-"
				}
				got = append(got, wanted)
			}
			if got := strings.Join(got, " "); got != test.want {
				t.Errorf("got %s, want %s", got, test.want)
			}
		})
	}
}

func TestAssignIsEvenAndMovesNoMoreThanNeeded(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		replicas := []string{"a", "b", "c", "d", "e"}[:1+random.IntN(5)]
		everybody := append([]string{"", "gone"}, replicas...)
		holders := make([]string, 1+random.IntN(12))
		held := map[string]int{}
		for i := range holders {
			holders[i] = everybody[random.IntN(len(everybody))]
			held[holders[i]]++
		}
		got := assign(holders, replicas)

		count := map[string]int{}
		moved := 0
		for i, replica := range got {
			count[replica]++
			if slices.Contains(replicas, holders[i]) && holders[i] != replica {
				moved++
			}
		}
		low, rest := len(holders)/len(replicas), len(holders)%len(replicas)
		needed, larger := 0, 0 // what is above the even share; some may keep one more
		for _, replica := range replicas {
			if count[replica] < low || count[replica] > low+1 {
				t.Fatalf("%v among %v: got %v, want %d or %d each", holders, replicas, got, low, low+1)
			}
			needed += max(0, held[replica]-low)
			if held[replica] > low {
				larger++
			}
		}
		if needed -= min(rest, larger); moved != needed {
			t.Fatalf("%v among %v: got %v, which moves %d shards, want %d",
				holders, replicas, got, moved, needed)
		}
	}
}
