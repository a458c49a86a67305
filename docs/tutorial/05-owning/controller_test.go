package main

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	appsinformers "k8s.io/client-go/informers/apps/v1"
	"k8s.io/client-go/kubernetes"

	"example.com/sample-controller/docs/internal/lab"
	clientset "example.com/sample-controller/pkg/generated/clientset/versioned"
	informers "example.com/sample-controller/pkg/generated/informers/externalversions/samplecontroller/v1alpha1"
)

// work works as run does.
var work = lab.Work(func(
	kube kubernetes.Interface, _ clientset.Interface, foos informers.TypedFooInformer,
	deployments appsinformers.TypedDeploymentInformer,
) (*Controller, error) {
	return NewController(kube, foos, deployments)
})

func TestOnlyWhatTheFooDecidesIsRepaired(t *testing.T) {
	lab.Run(t, func(t *testing.T, l *lab.Lab) {
		l.StartProgram(work)
		l.CreateFoo("example-foo", "web", 1)
		l.ChangeDeployment("web", func(d *appsv1.Deployment) {
			d.Spec.Replicas = new(int32(7))
			metav1.SetMetaDataAnnotation(&d.Spec.Template.ObjectMeta, "restartedAt", "noon")
		})

		deployment := l.GetDeployment("web")
		if got := *deployment.Spec.Replicas; got != 1 {
			t.Errorf("replicas: got %d, want 1 again", got)
		}
		if got := deployment.Spec.Template.Annotations["restartedAt"]; got != "noon" {
			t.Errorf("annotation of somebody else: got %q, want noon", got)
		}
	})
}

// TestExplore finds what docs/explore.md says, and nothing else.
func TestExplore(t *testing.T) { lab.Explore(t, "tutorial/05-owning.md", work) }
