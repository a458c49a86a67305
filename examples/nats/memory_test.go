package main

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
)

// configMaps is a bucket in memory: each key is a ConfigMap in the API server of package explore. So
// that package disturbs each call of a bucket, and each entry that a watch shows, as it disturbs
// requests and events.
type configMaps struct {
	corev1client.ConfigMapInterface
	name string
}

// entry is a ConfigMap as an entry: with "gone" in its data, it is a delete marker.
type entry struct {
	jetstream.KeyValueEntry
	*corev1.ConfigMap
}

func (e entry) Key() string        { return e.Name }
func (e entry) Value() []byte      { return []byte(e.Data["value"]) }
func (e entry) Created() time.Time { return e.CreationTimestamp.Time }

func (e entry) Revision() uint64 {
	revision, _ := strconv.ParseUint(e.ResourceVersion, 10, 64)
	return revision
}

func (e entry) Operation() jetstream.KeyValueOp {
	if e.Data["gone"] != "" {
		return jetstream.KeyValueDelete
	}
	return jetstream.KeyValuePut
}

func (b configMaps) Get(ctx context.Context, key string) (jetstream.KeyValueEntry, error) {
	c, err := b.ConfigMapInterface.Get(ctx, key, metav1.GetOptions{})
	if apierrors.IsNotFound(err) || err == nil && c.Data["gone"] != "" {
		return nil, jetstream.ErrKeyNotFound
	}
	return entry{ConfigMap: c}, err
}

func (b configMaps) Update(
	ctx context.Context, key string, value []byte, revision uint64,
) (uint64, error) {
	c := &corev1.ConfigMap{Data: map[string]string{"value": string(value)}}
	c.Name, c.Labels = key, map[string]string{"bucket": b.name}
	var err error
	if revision == 0 {
		c, err = b.Create(ctx, c, metav1.CreateOptions{})
	} else {
		c.ResourceVersion = strconv.FormatUint(revision, 10)
		c, err = b.ConfigMapInterface.Update(ctx, c, metav1.UpdateOptions{})
	}
	if apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) || apierrors.IsNotFound(err) {
		return 0, jetstream.ErrKeyRevisionMismatch
	}
	return entry{ConfigMap: c}.Revision(), err
}

func (b configMaps) Delete(ctx context.Context, key string, _ ...jetstream.KVDeleteOpt) error {
	_, err := b.Patch(ctx, key, types.MergePatchType, []byte(`{"data":{"gone":"yes","value":null}}`),
		metav1.PatchOptions{})
	return err
}

// late is a bucket in which somebody else is faster: after each Get, there is another value.
type late struct{ jetstream.KeyValue }

func (l late) Get(ctx context.Context, key string) (jetstream.KeyValueEntry, error) {
	old, err := l.KeyValue.Get(ctx, key)
	_, putErr := l.Put(ctx, key, []byte("{}"))
	return old, cmp.Or(err, putErr)
}

// Watch sends all entries, nil, and then each change. An entry that is removed leaves no trace.
func (b configMaps) Watch(
	ctx context.Context, _ string, _ ...jetstream.WatchOpt,
) (jetstream.KeyWatcher, error) {
	options := metav1.ListOptions{LabelSelector: "bucket=" + b.name}
	list, err := b.List(ctx, options)
	if err != nil {
		return nil, err
	}
	options.ResourceVersion = list.ResourceVersion
	events, err := b.ConfigMapInterface.Watch(ctx, options)
	if err != nil {
		return nil, err
	}
	slices.SortFunc(list.Items, func(x, y corev1.ConfigMap) int {
		return cmp.Compare(entry{ConfigMap: &x}.Revision(), entry{ConfigMap: &y}.Revision())
	})
	w := watcher{updates: make(chan jetstream.KeyValueEntry)}
	go func() {
		defer close(w.updates)
		defer events.Stop()
		for i := range list.Items {
			w.updates <- entry{ConfigMap: &list.Items[i]}
		}
		w.updates <- nil
		for e := range events.ResultChan() {
			switch e.Type {
			case watch.Added, watch.Modified:
				w.updates <- entry{ConfigMap: e.Object.(*corev1.ConfigMap)}
			case watch.Error:
				return
			}
		}
	}()
	return w, nil
}

type watcher struct {
	jetstream.KeyWatcher
	updates chan jetstream.KeyValueEntry
}

func (w watcher) Updates() <-chan jetstream.KeyValueEntry { return w.updates }
