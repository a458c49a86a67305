// Command migrations runs a Job for each ConfigMap.
package main

import (
	"context"
	"log"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func main() {
	err := run(ctrl.SetupSignalHandler(), ctrl.GetConfigOrDie(), ctrl.Options{})
	if err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, config *rest.Config, options ctrl.Options) error {
	mgr, err := ctrl.NewManager(config, options)
	if err != nil {
		return err
	}
	err = ctrl.NewControllerManagedBy(mgr).For(&corev1.ConfigMap{}).Owns(&batchv1.Job{}).
		Complete(&reconciler{mgr.GetClient()})
	if err != nil {
		return err
	}
	return mgr.Start(ctx)
}

type reconciler struct{ client.Client }

func (r *reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	var migration corev1.ConfigMap
	if err := r.Get(ctx, req.NamespacedName, &migration); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	var jobs batchv1.JobList
	if err := r.List(ctx, &jobs, client.InNamespace(req.Namespace)); err != nil {
		return ctrl.Result{}, err
	}
	for _, job := range jobs.Items {
		if metav1.IsControlledBy(&job, &migration) {
			return ctrl.Result{}, nil
		}
	}
	job := &batchv1.Job{}
	job.Namespace, job.GenerateName = req.Namespace, migration.Name+"-"
	job.Spec.Template.Spec = corev1.PodSpec{
		RestartPolicy: corev1.RestartPolicyNever,
		Containers:    []corev1.Container{{Name: "migrate", Image: "migrate"}},
	}
	if err := ctrl.SetControllerReference(&migration, job, r.Scheme()); err != nil {
		return ctrl.Result{}, err
	}
	return ctrl.Result{}, r.Create(ctx, job)
}
