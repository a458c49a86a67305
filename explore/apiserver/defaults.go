package apiserver

import (
	"encoding/base64"
	stdjson "encoding/json"
	"maps"
	"reflect"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/structured-merge-diff/v6/value"
)

// otherDefaults depend on other fields, or on where the value is. The others are in the table.
var otherDefaults = map[string]func(map[string]any){
	"core/v1.Container": func(container map[string]any) {
		image, _ := container["image"].(string)
		image = image[strings.LastIndex(image, "/")+1:]
		if !strings.Contains(image, ":") && !strings.Contains(image, "@") ||
			strings.HasSuffix(image, ":latest") {
			setDefaults(container, map[string]any{"imagePullPolicy": "Always"})
		}
	},
	"apps/v1.DeploymentStrategy":        rolling,
	"apps/v1.StatefulSetUpdateStrategy": rolling,
	"apps/v1.DaemonSetUpdateStrategy":   rolling,
	"batch/v1.Job": within("spec", map[string]any{"completions": int64(1), "parallelism": int64(1),
		"backoffLimit": int64(6), "completionMode": "NonIndexed", "suspend": false,
		"podReplacementPolicy": "TerminatingOrFailed"}),
	"core/v1.PersistentVolume": within("spec", map[string]any{"volumeMode": "Filesystem",
		"persistentVolumeReclaimPolicy": "Retain"}),
	"core/v1.Pod": within("status", map[string]any{"phase": "Pending", "qosClass": "BestEffort"}),
	"core/v1.Secret": func(secret map[string]any) {
		texts, _ := secret["stringData"].(map[string]any)
		delete(secret, "stringData")
		for name, text := range texts {
			setDefaults(secret, map[string]any{"data": map[string]any{}})
			secret["data"].(map[string]any)[name] = base64.StdEncoding.EncodeToString([]byte(text.(string)))
		}
	},
	"core/v1.Namespace": func(namespace map[string]any) {
		metadata := namespace["metadata"].(map[string]any)
		if name, named := metadata["name"].(string); named {
			setDefaults(metadata, map[string]any{"labels": map[string]any{}})
			metadata["labels"].(map[string]any)[corev1.LabelMetadataName] = name
		}
	},
	"core/v1.ServiceSpec": func(spec map[string]any) {
		if spec["type"] != "ExternalName" {
			setDefaults(spec, map[string]any{"internalTrafficPolicy": "Cluster"})
		}
	},
	"core/v1.ServicePort": func(port map[string]any) {
		if port["targetPort"] == int64(0) {
			port["targetPort"] = port["port"]
		}
	},
}

func rolling(strategy map[string]any) {
	if setDefaults(strategy, map[string]any{"type": "RollingUpdate"}); strategy["type"] == "RollingUpdate" {
		setDefaults(strategy, map[string]any{"rollingUpdate": map[string]any{}})
	}
}

// within returns what sets defaults in a part of a value.
func within(part string, values map[string]any) func(map[string]any) {
	return func(value map[string]any) { setDefaults(value[part].(map[string]any), values) }
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
		name := TypeName(t)
		if set := otherDefaults[name]; set != nil {
			set(out)
		}
		setDefaults(out, builtinTable().Defaults[name])
		for name, known := range out {
			if field := fields[name]; field != nil {
				finish(content[name], known, field.GetFrom(zero).Type())
			}
		}
	}
}
