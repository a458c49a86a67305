package owned

import (
	"context"
	"errors"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"

	"example.com/sample-controller/internal/recorder"
)

const (
	manager = "test"
	label   = "managed-by" // the informers select by it
)

// controller lets a DaemonSet own a Deployment, which has the host name of its Pods, and a
// ConfigMap, which has its own name. A DaemonSet stands for a custom resource: these tests know
// nothing of a Foo, which a fork changes.
type controller struct {
	kube     kubernetes.Interface
	owners   cache.TypedSharedIndexInformer[*appsv1.DaemonSet]
	children Set[*appsv1.DaemonSet]
	queue    workqueue.TypedRateLimitingInterface[cache.ObjectName]
}

// run runs a controller until ctx is done.
func run(ctx context.Context, config *rest.Config) error {
	kube, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	all := informers.NewSharedInformerFactory(kube, 0)
	defer all.Shutdown()
	selected := informers.NewSharedInformerFactoryWithOptions(kube, 0, informers.WithTweakListOptions(
		func(options *metav1.ListOptions) { options.LabelSelector = label }))
	defer selected.Shutdown()
	events, err := recorder.New(context.WithoutCancel(ctx), kube, manager, scheme.Scheme)
	if err != nil {
		return err
	}
	c := &controller{kube: kube, owners: all.Apps().V1().DaemonSets().TypedInformer(),
		queue: workqueue.NewTypedRateLimitingQueue(
			workqueue.NewTypedItemExponentialFailureRateLimiter[cache.ObjectName](
				5*time.Millisecond, 30*time.Second))}
	add := func(object any) {
		if key, err := cache.DeletionHandlingObjectToName(object); err == nil {
			c.queue.Add(key)
		}
	}
	handler, err := c.owners.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: add, UpdateFunc: func(_, object any) { add(object) }, DeleteFunc: add,
	})
	owners := c.describe(events)
	deployments, deploymentErr := New(owners, c.deployments(selected))
	configMaps, configMapErr := New(owners, c.configMaps(selected))
	if err := errors.Join(err, deploymentErr, configMapErr); err != nil {
		return err
	}
	c.children = Set[*appsv1.DaemonSet]{deployments, configMaps}
	all.StartWithContext(ctx)
	selected.StartWithContext(ctx)
	synced := append(c.children.HandlersSynced(), handler.HasSyncedChecker())
	if cache.WaitFor(ctx, "", synced...) {
		context.AfterFunc(ctx, c.queue.ShutDown)
		for c.processNextWorkItem(ctx) {
		}
	}
	c.queue.ShutDown()
	events.Flush(time.Second)
	return ctx.Err()
}

func (c *controller) describe(events *recorder.Recorder) Owners[*appsv1.DaemonSet] {
	return Owners[*appsv1.DaemonSet]{
		GroupVersionKind: appsv1.SchemeGroupVersion.WithKind("DaemonSet"),
		Manager:          manager,
		Informer:         c.owners,
		IsNew: func(owner *appsv1.DaemonSet) bool {
			return owner.Status.ObservedGeneration == 0
		},
		Get: func(ctx context.Context, namespace, name string) (*appsv1.DaemonSet, error) {
			return c.kube.AppsV1().DaemonSets(namespace).Get(ctx, name, metav1.GetOptions{})
		},
		Enqueue: func(key cache.ObjectName, _ metav1.Object, _ string) { c.queue.Add(key) },
		EnqueueAfter: func(_ context.Context, key cache.ObjectName, delay time.Duration, _ string) {
			c.queue.AddAfter(key, delay)
		},
		Recorder: events,
	}
}

func deploymentOf(owner *appsv1.DaemonSet) string { return owner.Spec.Template.Spec.Hostname }

func (c *controller) deployments(
	factory informers.SharedInformerFactory,
) Kind[*appsv1.DaemonSet, *appsv1.Deployment] {
	return Kind[*appsv1.DaemonSet, *appsv1.Deployment]{
		Name:     "Deployment",
		Informer: factory.Apps().V1().Deployments().TypedInformer(),
		Client: func(namespace string) Client[*appsv1.Deployment] {
			return c.kube.AppsV1().Deployments(namespace)
		},
		NameOf: deploymentOf,
		New: func(owner *appsv1.DaemonSet) *appsv1.Deployment {
			return &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{
				Name: deploymentOf(owner), Namespace: owner.Namespace,
			}}
		},
		SetFields: func(deployment *appsv1.Deployment, _ *appsv1.DaemonSet) {
			metav1.SetMetaDataLabel(&deployment.ObjectMeta, label, manager)
			deployment.Spec.Replicas = new(int32(1))
		},
		Ready: func(deployment *appsv1.Deployment) metav1.Condition {
			if deployment.Status.AvailableReplicas < *deployment.Spec.Replicas {
				return *NotReady("Progressing", "too few replicas")
			}
			return metav1.Condition{Type: typeReady, Status: metav1.ConditionTrue, Reason: "Available"}
		},
	}
}

func (c *controller) configMaps(
	factory informers.SharedInformerFactory,
) Kind[*appsv1.DaemonSet, *corev1.ConfigMap] {
	return Kind[*appsv1.DaemonSet, *corev1.ConfigMap]{
		Name:     "ConfigMap",
		Informer: factory.Core().V1().ConfigMaps().TypedInformer(),
		Client: func(namespace string) Client[*corev1.ConfigMap] {
			return c.kube.CoreV1().ConfigMaps(namespace)
		},
		NameOf: func(owner *appsv1.DaemonSet) string { return owner.Name },
		New: func(owner *appsv1.DaemonSet) *corev1.ConfigMap {
			return &corev1.ConfigMap{
				ObjectMeta: metav1.ObjectMeta{Name: owner.Name, Namespace: owner.Namespace},
			}
		},
		SetFields: func(configMap *corev1.ConfigMap, owner *appsv1.DaemonSet) {
			metav1.SetMetaDataLabel(&configMap.ObjectMeta, label, manager)
			configMap.Data = map[string]string{"deployment": deploymentOf(owner)}
		},
	}
}

func (c *controller) processNextWorkItem(ctx context.Context) bool {
	key, shutdown := c.queue.Get()
	if shutdown {
		return false
	}
	defer c.queue.Done(key)
	if err := c.sync(ctx, key); err != nil {
		c.queue.AddRateLimited(key)
		return true
	}
	c.queue.Forget(key)
	return true
}

// sync is the sync of the package's doc comment.
func (c *controller) sync(ctx context.Context, key cache.ObjectName) error {
	if !c.children.Seen(key) {
		c.queue.AddAfter(key, time.Second)
		return nil
	}
	item, exists, err := c.owners.GetStore().GetByKey(key.String())
	if err != nil || !exists {
		c.children.Forget(key)
		return err
	}
	owner := item.(*appsv1.DaemonSet)
	ready, err := c.children.Sync(ctx, owner)
	if err != nil || ready == nil {
		return err
	}
	if err := c.updateStatus(ctx, owner, ready); err != nil || ready.Status != metav1.ConditionTrue {
		return err
	}
	return c.children.DeleteOthers(ctx, owner)
}

func (c *controller) updateStatus(
	ctx context.Context, owner *appsv1.DaemonSet, ready *metav1.Condition,
) error {
	updated := owner.DeepCopy()
	updated.Status.ObservedGeneration = owner.Generation
	updated.Status.Conditions = []appsv1.DaemonSetCondition{{
		Type: appsv1.DaemonSetConditionType(ready.Type), Status: corev1.ConditionStatus(ready.Status),
		Reason: ready.Reason, Message: ready.Message,
	}}
	if equality.Semantic.DeepEqual(owner, updated) {
		return nil
	}
	_, err := c.kube.AppsV1().DaemonSets(owner.Namespace).UpdateStatus(
		ctx, updated, metav1.UpdateOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}
