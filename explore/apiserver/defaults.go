package apiserver

import (
	"encoding/base64"
	stdjson "encoding/json"
	"maps"
	"reflect"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/structured-merge-diff/v6/value"
	"sigs.k8s.io/yaml"
)

// defaults are constant ones of built-in kinds that a controller meets, by the Go types of fields.
var defaults = sync.OnceValue(func() (values map[string]any) {
	text, err := yaml.YAMLToJSON([]byte(`
v1.DeploymentSpec: {replicas: 1, revisionHistoryLimit: 10, progressDeadlineSeconds: 600}
v1.ReplicaSetSpec: {replicas: 1}
v1.StatefulSetSpec: {replicas: 1, revisionHistoryLimit: 10, podManagementPolicy: OrderedReady,
  persistentVolumeClaimRetentionPolicy: {whenDeleted: Retain, whenScaled: Retain}}
v1.DaemonSetSpec: {revisionHistoryLimit: 10}
v1.ReplicationControllerSpec: {replicas: 1}
v1.CronJobSpec: {concurrencyPolicy: Allow, suspend: false, successfulJobsHistoryLimit: 3,
  failedJobsHistoryLimit: 1}
v2.HorizontalPodAutoscalerSpec: {minReplicas: 1}
v1.PodSpec: {restartPolicy: Always, dnsPolicy: ClusterFirst, schedulerName: default-scheduler,
  terminationGracePeriodSeconds: 30, securityContext: {}}
v1.Container: {terminationMessagePath: /dev/termination-log, terminationMessagePolicy: File,
  imagePullPolicy: IfNotPresent}
v1.ContainerPort: {protocol: TCP}
v1.Probe: {timeoutSeconds: 1, periodSeconds: 10, successThreshold: 1, failureThreshold: 3}
v1.HTTPGetAction: {path: /, scheme: HTTP}
v1.ObjectFieldSelector: {apiVersion: v1}
v1.SecretVolumeSource: {defaultMode: 420}
v1.ConfigMapVolumeSource: {defaultMode: 420}
v1.ServicePort: {protocol: TCP}
v1.ServiceSpec: {type: ClusterIP, sessionAffinity: None, internalTrafficPolicy: Cluster}
v1.Secret: {type: Opaque}
v1.PersistentVolumeClaimSpec: {volumeMode: Filesystem}
v1.PersistentVolumeSpec: {volumeMode: Filesystem, persistentVolumeReclaimPolicy: Retain}
v1.NamespaceStatus: {phase: Active}
v1.PodStatus: {phase: Pending, qosClass: BestEffort}
v1.PersistentVolumeClaimStatus: {phase: Pending}
v1.PersistentVolumeStatus: {phase: Pending}`))
	if err == nil {
		err = json.Unmarshal(text, &values)
	}
	if err != nil {
		panic(err)
	}
	return values
})

// otherDefaults depend on other fields.
var otherDefaults = map[string]func(map[string]any){
	"v1.Container": func(container map[string]any) {
		image, _ := container["image"].(string)
		image = image[strings.LastIndex(image, "/")+1:]
		if !strings.Contains(image, ":") && !strings.Contains(image, "@") ||
			strings.HasSuffix(image, ":latest") {
			setDefaults(container, map[string]any{"imagePullPolicy": "Always"})
		}
	},
	"v1.DeploymentStrategy":        rolling(map[string]any{"maxUnavailable": "25%", "maxSurge": "25%"}),
	"v1.StatefulSetUpdateStrategy": rolling(map[string]any{"partition": int64(0)}),
	"v1.DaemonSetUpdateStrategy":   rolling(map[string]any{"maxUnavailable": int64(1), "maxSurge": int64(0)}),
	"v1.Job": func(job map[string]any) { // and not in the template of a CronJob
		setDefaults(job["spec"].(map[string]any), map[string]any{"completions": int64(1),
			"parallelism": int64(1), "backoffLimit": int64(6), "completionMode": "NonIndexed", "suspend": false,
			"podReplacementPolicy": "TerminatingOrFailed"})
	},
	"v1.Secret": func(secret map[string]any) {
		texts, _ := secret["stringData"].(map[string]any)
		delete(secret, "stringData")
		for name, text := range texts {
			setDefaults(secret, map[string]any{"data": map[string]any{}})
			secret["data"].(map[string]any)[name] = base64.StdEncoding.EncodeToString([]byte(text.(string)))
		}
	},
	"v1.Namespace": func(namespace map[string]any) {
		metadata := namespace["metadata"].(map[string]any)
		if name, named := metadata["name"].(string); named {
			setDefaults(metadata, map[string]any{"labels": map[string]any{}})
			metadata["labels"].(map[string]any)[corev1.LabelMetadataName] = name
		}
	},
	"v1.ServicePort": func(port map[string]any) {
		if port["targetPort"] == int64(0) {
			port["targetPort"] = port["port"]
		}
	},
}

// rolling returns what sets the defaults of a strategy that is RollingUpdate, if it is.
func rolling(update map[string]any) func(map[string]any) {
	return func(strategy map[string]any) {
		if setDefaults(strategy, map[string]any{"type": "RollingUpdate"}); strategy["type"] == "RollingUpdate" {
			setDefaults(strategy, map[string]any{"rollingUpdate": update})
		}
	}
}

// setDefaults sets those fields that have no value.
func setDefaults(in, values map[string]any) {
	for name, value := range values {
		if old := in[name]; value != nil && (old == nil || old == "") {
			in[name] = runtime.DeepCopyJSONValue(value)
		}
	}
}

var (
	converter    = runtime.DefaultUnstructuredConverter
	unmarshaler  = reflect.TypeFor[stdjson.Unmarshaler]()
	metadataType = reflect.TypeFor[metav1.ObjectMeta]()
)

// canonical brings an object into the form that it has after it was read into a Go type and written
// from there, with defaults. Fields that this version of the type does not have stay, but for those
// of the metadata. Of a custom resource, it is the metadata only.
func (k *kind) canonical(object map[string]any) error {
	metadata, _ := object["metadata"].(map[string]any)
	if metadata == nil {
		metadata = map[string]any{}
	}
	metadata, err := throughType(metadata, metadataType)
	if err != nil {
		return err
	}
	object["metadata"] = metadata
	switch {
	case k.goType == nil:
		return nil
	case k.real != nil:
		return k.real.Default(&unstructured.Unstructured{Object: object})
	}
	out, err := throughType(object, k.goType)
	if err != nil {
		return err
	}
	finish(object, out, k.goType)
	clear(object)
	maps.Copy(object, out)
	return nil
}

// throughType reads a value into a Go type, and returns what that has of it.
func throughType(value map[string]any, t reflect.Type) (map[string]any, error) {
	typed := reflect.New(t).Interface()
	if err := converter.FromUnstructured(value, typed); err != nil {
		return nil, err
	}
	return converter.ToUnstructured(typed)
}

// finish adds what was in a value but not in its Go type, and the defaults.
func finish(in, out any, t reflect.Type) {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if reflect.PointerTo(t).Implements(unmarshaler) {
		return
	}
	switch out := out.(type) {
	case []any:
		list, _ := in.([]any)
		for i, element := range out {
			if i < len(list) {
				finish(list[i], element, t.Elem())
			}
		}
	case map[string]any:
		content, _ := in.(map[string]any)
		if t.Kind() == reflect.Map {
			for name, element := range out {
				finish(content[name], element, t.Elem())
			}
			return
		}
		fields, zero := value.TypeReflectEntryOf(t).Fields(), reflect.Zero(t)
		for name, unknown := range content {
			if fields[name] == nil {
				out[name] = unknown
			}
		}
		if set := otherDefaults[t.String()]; set != nil {
			set(out)
		}
		values, _ := defaults()[t.String()].(map[string]any)
		setDefaults(out, values)
		for name, known := range out {
			if field := fields[name]; field != nil {
				finish(content[name], known, field.GetFrom(zero).Type())
			}
		}
	}
}
