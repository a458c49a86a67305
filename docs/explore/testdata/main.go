// Command reports runs a Job for each query that a ConfigMap has.
package main

import (
	"context"
	"crypto/sha256"
	"fmt"
	"log"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// selector selects the ConfigMaps with a query. There are others in each namespace.
var selector = labels.SelectorFromSet(labels.Set{"example.com/report": "true"})

func main() {
	err := run(ctrl.SetupSignalHandler(), ctrl.GetConfigOrDie(), ctrl.Options{})
	if err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, config *rest.Config, options ctrl.Options) error {
	options.Cache.ByObject = map[client.Object]cache.ByObject{&corev1.ConfigMap{}: {Label: selector}}
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
	var report corev1.ConfigMap
	if err := r.Get(ctx, req.NamespacedName, &report); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if report.DeletionTimestamp != nil {
		return ctrl.Result{}, nil // its Jobs go with it
	}
	job := newJob(&report)
	if err := ctrl.SetControllerReference(&report, job, r.Scheme()); err != nil {
		return ctrl.Result{}, err
	}
	var jobs batchv1.JobList
	err := r.List(ctx, &jobs, client.InNamespace(job.Namespace), client.MatchingLabels(job.Labels))
	if err != nil {
		return ctrl.Result{}, err
	}
	for _, existing := range jobs.Items {
		if metav1.IsControlledBy(&existing, &report) {
			return ctrl.Result{}, nil
		}
	}
	if err := r.Create(ctx, job); !apierrors.IsAlreadyExists(err) {
		return ctrl.Result{}, err
	}
	// If it is not found, the cache is behind, and the next try will find it.
	if err := r.Get(ctx, client.ObjectKeyFromObject(job), job); err != nil {
		return ctrl.Result{}, err
	}
	if !metav1.IsControlledBy(job, &report) {
		ctrl.LoggerFrom(ctx).Info("The Job belongs to somebody else", "job", job.Name)
		return ctrl.Result{RequeueAfter: time.Minute}, nil
	}
	return ctrl.Result{}, nil
}

// newJob returns the Job for the query that report has now.
func newJob(report *corev1.ConfigMap) *batchv1.Job {
	query := report.Data["query"]
	hash := fmt.Sprintf("%x", sha256.Sum256([]byte(report.Name+"/"+query)))[:32]
	job := &batchv1.Job{}
	job.Namespace, job.GenerateName = report.Namespace, "report-"+hash+"-"
	job.Labels = map[string]string{"example.com/report-hash": hash}
	job.Spec.Template.Spec = corev1.PodSpec{
		RestartPolicy: corev1.RestartPolicyNever,
		Containers: []corev1.Container{{
			Name: "report", Image: "report",
			// Kubernetes replaces $(NAME) in values, and makes $ of $$.
			Env: []corev1.EnvVar{{Name: "QUERY", Value: strings.ReplaceAll(query, "$", "$$")}},
		}},
	}
	return job
}
