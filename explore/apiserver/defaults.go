package apiserver

import (
	"reflect"
	"strings"
	"sync"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/json"
)

// The defaults of built-in kinds that a controller meets, by the Go type that has the fields.
var constantDefaults = []struct {
	of     any
	values string
}{
	{appsv1.DeploymentSpec{}, `{"replicas": 1, "revisionHistoryLimit": 10,
		"progressDeadlineSeconds": 600}`},
	{appsv1.DeploymentStrategy{}, `{"type": "RollingUpdate"}`},
	{appsv1.ReplicaSetSpec{}, `{"replicas": 1}`},
	{appsv1.StatefulSetSpec{}, `{"replicas": 1, "revisionHistoryLimit": 10,
		"podManagementPolicy": "OrderedReady", "updateStrategy": {"type": "RollingUpdate",
		"rollingUpdate": {"partition": 0}}, "persistentVolumeClaimRetentionPolicy":
		{"whenDeleted": "Retain", "whenScaled": "Retain"}}`},
	{appsv1.DaemonSetSpec{}, `{"revisionHistoryLimit": 10, "updateStrategy": {"type":
		"RollingUpdate", "rollingUpdate": {"maxUnavailable": 1, "maxSurge": 0}}}`},
	{corev1.ReplicationControllerSpec{}, `{"replicas": 1}`},
	{batchv1.JobSpec{}, `{"completions": 1, "parallelism": 1, "backoffLimit": 6,
		"completionMode": "NonIndexed", "suspend": false, "podReplacementPolicy":
		"TerminatingOrFailed"}`},
	{batchv1.CronJobSpec{}, `{"concurrencyPolicy": "Allow", "suspend": false,
		"successfulJobsHistoryLimit": 3, "failedJobsHistoryLimit": 1}`},
	{autoscalingv2.HorizontalPodAutoscalerSpec{}, `{"minReplicas": 1}`},
	{corev1.PodSpec{}, `{"restartPolicy": "Always", "dnsPolicy": "ClusterFirst",
		"schedulerName": "default-scheduler", "terminationGracePeriodSeconds": 30,
		"securityContext": {}}`},
	{corev1.Container{}, `{"terminationMessagePath": "/dev/termination-log",
		"terminationMessagePolicy": "File", "imagePullPolicy": "IfNotPresent"}`},
	{corev1.ContainerPort{}, `{"protocol": "TCP"}`},
	{corev1.Probe{}, `{"timeoutSeconds": 1, "periodSeconds": 10, "successThreshold": 1,
		"failureThreshold": 3}`},
	{corev1.HTTPGetAction{}, `{"path": "/", "scheme": "HTTP"}`},
	{corev1.ObjectFieldSelector{}, `{"apiVersion": "v1"}`},
	{corev1.SecretVolumeSource{}, `{"defaultMode": 420}`},
	{corev1.ConfigMapVolumeSource{}, `{"defaultMode": 420}`},
	{corev1.ServicePort{}, `{"protocol": "TCP"}`},
	{corev1.ServiceSpec{}, `{"type": "ClusterIP", "sessionAffinity": "None",
		"internalTrafficPolicy": "Cluster"}`},
	{corev1.Secret{}, `{"type": "Opaque"}`},
	{corev1.NamespaceStatus{}, `{"phase": "Active"}`},
	{corev1.PodStatus{}, `{"phase": "Pending", "qosClass": "BestEffort"}`},
	{corev1.PersistentVolumeClaimStatus{}, `{"phase": "Pending"}`},
	{corev1.PersistentVolumeStatus{}, `{"phase": "Pending"}`},
}

// defaults are the constant ones of a Go type.
var defaults = sync.OnceValue(func() map[reflect.Type]map[string]any {
	result := map[reflect.Type]map[string]any{}
	for _, constant := range constantDefaults {
		var values map[string]any
		if err := json.Unmarshal([]byte(constant.values), &values); err != nil {
			panic(err)
		}
		result[reflect.TypeOf(constant.of)] = values
	}
	return result
})

// otherDefaults depend on other fields.
var otherDefaults = map[reflect.Type]func(map[string]any){
	reflect.TypeFor[corev1.Container](): func(container map[string]any) {
		image, _ := container["image"].(string)
		image = image[strings.LastIndex(image, "/")+1:]
		if !strings.Contains(image, ":") && !strings.Contains(image, "@") ||
			strings.HasSuffix(image, ":latest") {
			setDefaults(container, map[string]any{"imagePullPolicy": "Always"})
		}
	},
	reflect.TypeFor[appsv1.DeploymentStrategy](): func(strategy map[string]any) {
		if strategy["type"] == nil || strategy["type"] == "RollingUpdate" {
			update := map[string]any{"maxUnavailable": "25%", "maxSurge": "25%"}
			setDefaults(strategy, map[string]any{"rollingUpdate": update})
		}
	},
	reflect.TypeFor[corev1.Namespace](): func(namespace map[string]any) {
		metadata := namespace["metadata"].(map[string]any)
		if name, named := metadata["name"].(string); named {
			setDefaults(metadata, map[string]any{"labels": map[string]any{}})
			metadata["labels"].(map[string]any)[corev1.LabelMetadataName] = name
		}
	},
	reflect.TypeFor[corev1.ServicePort](): func(port map[string]any) {
		setDefaults(port, map[string]any{"targetPort": port["port"]})
	},
}

// setDefaults sets those fields that have no value.
func setDefaults(in, values map[string]any) {
	for name, value := range values {
		if old := in[name]; value != nil && (old == nil || old == "") {
			in[name] = runtime.DeepCopyJSONValue(value)
		}
	}
}
