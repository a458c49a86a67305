package apiserver

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/apimachinery/pkg/util/validation/field"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/cel/common"
	"sigs.k8s.io/yaml"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structural "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel/model"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/listtype"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/objectmeta"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
)

// customKind is what a version of a CustomResourceDefinition says of its objects.
type customKind struct {
	schema    *structural.Structural
	validator validation.SchemaValidator
	status    validation.SchemaValidator // nil if there is no schema for it
	cel       *cel.Validator             // nil if there are no rules
	scale     *apiextensionsv1.CustomResourceSubresourceScale
}

// CRD is a CustomResourceDefinition, understood. Servers share it.
type CRD struct {
	kind *kind
}

// ReadCRDs reads CustomResourceDefinitions from YAML files. It skips other documents.
func ReadCRDs(paths ...string) (crds []*CRD, _ error) {
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		read, err := ParseCRDs(text)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		crds = append(crds, read...)
	}
	return crds, nil
}

// ParseCRDs does the same with the text of a file.
func ParseCRDs(text []byte) (crds []*CRD, _ error) {
	for document := range bytes.SplitSeq(append([]byte("\n"), text...), []byte("\n---")) {
		definition := &apiextensionsv1.CustomResourceDefinition{}
		err := yaml.Unmarshal(document, definition)
		if err == nil && definition.Kind != "CustomResourceDefinition" {
			continue
		}
		var k *kind
		if err == nil {
			k, err = understand(definition)
		}
		if err != nil {
			return nil, err
		}
		crds = append(crds, &CRD{k})
	}
	return crds, nil
}

// understand returns the kind that a definition has. It changes the definition.
func understand(crd *apiextensionsv1.CustomResourceDefinition) (*kind, error) {
	apiextensionsv1.SetObjectDefaults_CustomResourceDefinition(crd)
	served := slices.DeleteFunc(crd.Spec.Versions,
		func(version apiextensionsv1.CustomResourceDefinitionVersion) bool { return !version.Served })
	if len(served) != 1 {
		return nil, fmt.Errorf("%s serves %d versions: only definitions that serve one are simulated",
			crd.Name, len(served))
	}
	names := crd.Spec.Names
	gv := schema.GroupVersion{Group: crd.Spec.Group, Version: served[0].Name}
	k := &kind{gvk: gv.WithKind(names.Kind), gvr: gv.WithResource(names.Plural), singular: names.Singular,
		listKind: names.ListKind, Traits: Traits{Conditional: true, Generation: true,
			ShortNames: names.ShortNames, Categories: names.Categories,
			Namespaced: crd.Spec.Scope == apiextensionsv1.NamespaceScoped}}
	return k, k.addVersion(served[0])
}

func (k *kind) addVersion(version apiextensionsv1.CustomResourceDefinitionVersion) error {
	for _, selectable := range version.SelectableFields {
		k.Fields = append(k.Fields, strings.TrimPrefix(selectable.JSONPath, "."))
	}
	c := &customKind{}
	k.custom = c
	if subresources := version.Subresources; subresources != nil {
		c.scale = subresources.Scale
		if subresources.Status != nil {
			k.Subresources = append(k.Subresources, "status")
		}
	}
	if version.Schema == nil {
		return fmt.Errorf("version %s has no schema", version.Name)
	}
	internal := &apiextensions.CustomResourceValidation{}
	err := apiextensionsv1.Convert_v1_CustomResourceValidation_To_apiextensions_CustomResourceValidation(
		version.Schema.DeepCopy(), internal, nil)
	if err != nil {
		return err
	}
	if c.schema, err = structural.NewStructural(internal.OpenAPIV3Schema); err != nil {
		return err
	}
	c.schema = c.schema.DeepCopy() // it shares defaults with the definition
	if err := defaulting.PruneDefaults(c.schema); err != nil {
		return err
	}
	if c.validator, _, err = validation.NewSchemaValidator(internal.OpenAPIV3Schema); err != nil {
		return err
	}
	if status, ok := internal.OpenAPIV3Schema.Properties["status"]; ok && k.has("status") {
		c.status, _, err = validation.NewSchemaValidator(&status)
	}
	c.cel = cel.NewValidator(c.schema, true, celconfig.PerCallLimit)
	k.converter = sync.OnceValue(func() managedfields.TypeConverter { return customConverter(k) })
	return err
}

// complete drops unknown fields of an object, and sets defaults.
func (c *customKind) complete(object map[string]any) error {
	pruning.Prune(object, c.schema, true)
	defaulting.PruneNonNullableNullsWithoutDefaults(object, c.schema)
	err := objectmeta.Coerce(nil, object, c.schema, false, false)
	defaulting.Default(object, c.schema)
	if err != nil { // a nil *field.Error would be an error
		return err
	}
	return nil
}

// validateCustom returns what the schema and its rules find wrong besides errs. What was wrong
// before is forgiven as a real API server does it.
func (k *kind) validateCustom(
	object, old *unstructured.Unstructured, isStatus bool, errs field.ErrorList,
) field.ErrorList {
	c, ctx := k.custom, context.Background()
	var options []cel.Option
	var before any
	listErrs := listtype.ValidateListSetsAndMaps(nil, c.schema, object.Object)
	if old == nil {
		errs = append(errs, validation.ValidateCustomResource(nil, object.Object, c.validator)...)
	} else {
		correlated := common.NewCorrelatedObject(object.Object, old.Object,
			&model.Structural{Structural: c.schema})
		options, before = append(options, cel.WithRatcheting(correlated)), old.Object
		if !isStatus {
			errs = append(errs, validation.ValidateCustomResourceUpdate(nil, object.Object, old.Object,
				c.validator, validation.WithRatcheting(correlated))...)
		} else if status, ok := object.Object["status"]; ok && c.status != nil {
			errs = append(errs, validation.ValidateCustomResourceUpdate(field.NewPath("status"), status,
				old.Object["status"], c.status, validation.WithRatcheting(correlated.Key("status")))...)
		}
		if len(listtype.ValidateListSetsAndMaps(nil, c.schema, old.Object)) > 0 {
			listErrs = nil
		}
	}
	errs = append(errs, c.validateReplicas(object.Object, isStatus)...)
	if !isStatus {
		errs = append(errs, objectmeta.Validate(ctx, nil, object.Object, c.schema, false)...)
	}
	errs = append(errs, listErrs...)
	switch {
	case c.cel == nil:
		return errs
	case slices.ContainsFunc(errs, blocks):
		return append(errs, field.Invalid(nil, nil, "some validation rules were not checked because the"+
			" object was invalid; correct the existing errors to complete validation"))
	}
	celErrs, _ := c.cel.Validate(ctx, nil, c.schema, object.Object, before,
		celconfig.RuntimeCELCostBudget, options...)
	return append(errs, celErrs...)
}

// validateReplicas returns what is wrong with the replicas that the subresource scale shows.
func (c *customKind) validateReplicas(object map[string]any, isStatus bool) (errs field.ErrorList) {
	if c.scale == nil {
		return nil
	}
	paths := []string{c.scale.StatusReplicasPath}
	if !isStatus {
		paths = []string{c.scale.SpecReplicasPath, c.scale.StatusReplicasPath}
	}
	for _, path := range paths {
		replicas, _, err := unstructured.NestedInt64(object, split(path)...)
		if err == nil && replicas < 0 {
			err = errors.New("should be a non-negative integer")
		} else if err == nil && replicas > math.MaxInt32 {
			err = fmt.Errorf("should be less than or equal to %d", math.MaxInt32)
		}
		if err != nil {
			errs = append(errs, field.Invalid(field.NewPath(path), replicas, err.Error()))
		}
	}
	return errs
}

// blocks reports whether rules cannot be checked because of an error.
func blocks(err *field.Error) bool {
	return slices.Contains([]field.ErrorType{field.ErrorTypeNotSupported, field.ErrorTypeRequired,
		field.ErrorTypeTooLong, field.ErrorTypeTooMany, field.ErrorTypeTypeInvalid}, err.Type)
}
