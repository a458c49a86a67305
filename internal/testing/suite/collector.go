package suite

import (
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// orphan is an object that the garbage collector deletes as soon as it knows the custom resource.
// It looks for new kinds every 30 s. Until then, a deleted owner leaves its objects behind.
var orphan *corev1.ConfigMap

// makeOrphan creates orphan, whose owner never existed.
func makeOrphan() (err error) {
	orphan, err = Kube.CoreV1().ConfigMaps(metav1.NamespaceDefault).Create(context.Background(),
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
			GenerateName: "conformance-orphan-",
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: config.APIVersion, Kind: config.Kind, Name: "never-was",
				UID: "00000000-0000-0000-0000-000000000000",
			}},
		}}, metav1.CreateOptions{})
	return err
}

// awaitCollector waits until orphan is gone.
var awaitCollector = sync.OnceValue(func() error {
	limit := 60*time.Second + Patience // its first look may come too early
	for begin := time.Now(); time.Since(begin) < limit; time.Sleep(interval) {
		_, err := Kube.CoreV1().ConfigMaps(orphan.Namespace).Get(
			context.Background(), orphan.Name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return nil
		}
	}
	return fmt.Errorf("the control plane is broken: its garbage collector did not delete ConfigMap %s "+
		"within %v, although its owner does not exist", orphan.Name, limit)
})
