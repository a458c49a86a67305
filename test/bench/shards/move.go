package main

import (
	"context"
	"fmt"
	"math/bits"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/sharding"
	"k8s.io/apimachinery/pkg/types"

	"example.com/sample-controller/internal/suite/audit"
)

// oneNamespaceOfEach returns a namespace of each of these shards, unless a shard has none.
func (m *measurement) oneNamespaceOfEach(held []string) (found []string, err error) {
	seen := map[string]bool{}
	for _, namespace := range m.namespaces {
		var hash uint64
		if _, err := fmt.Sscanf(sharding.HashField(namespace), "%x", &hash); err != nil {
			return nil, err
		}
		index, _ := bits.Mul64(hash, uint64(*shards)) // hash * shards / 2^64
		shard := fmt.Sprintf("%d-of-%d", index, *shards)
		if slices.Contains(held, shard) && !seen[shard] {
			seen[shard] = true
			found = append(found, namespace)
		}
	}
	if len(found) == 0 {
		return nil, fmt.Errorf("the shards %v are empty; choose more namespaces", held)
	}
	return found, nil
}

// scaleOneFooIn changes one Foo in each of the namespaces.
func (m *measurement) scaleOneFooIn(ctx context.Context, namespaces []string) error {
	for _, namespace := range namespaces {
		foos := m.foo.SamplecontrollerV1alpha1().Foos(namespace)
		list, err := foos.List(ctx, metav1.ListOptions{Limit: 1})
		if err != nil {
			return err
		}
		if len(list.Items) == 0 {
			return fmt.Errorf("there is no Foo in namespace %s", namespace)
		}
		patch := fmt.Sprintf(`{"spec": {"replicas": %d}}`, *list.Items[0].Spec.Replicas+1)
		_, err = foos.Patch(ctx, list.Items[0].Name, types.MergePatchType, []byte(patch),
			metav1.PatchOptions{})
		if err != nil {
			return err
		}
	}
	return nil
}

// awaitUpdates waits until a Deployment in each of the namespaces was updated, and returns when
// that was answered for the first and for the last of them.
func (m *measurement) awaitUpdates(
	ctx context.Context, mark audit.Mark, namespaces []string,
) (first, last time.Time, err error) {
	err = m.wait(ctx, func() error {
		requests, _, err := audit.Read(m.cluster.AuditLog(), mark, "bench-")
		if err != nil {
			return err
		}
		done := map[string]bool{}
		for _, r := range requests {
			if r.What() != "update deployments" || !r.Succeeded() || done[r.ObjectRef.Namespace] {
				continue
			}
			done[r.ObjectRef.Namespace] = true
			if len(done) == 1 {
				first = r.StageTimestamp
			}
			last = r.StageTimestamp
		}
		if len(done) < len(namespaces) {
			return fmt.Errorf("the replicas have worked on %d shards of %d", len(done), len(namespaces))
		}
		return nil
	})
	return first, last, err
}
