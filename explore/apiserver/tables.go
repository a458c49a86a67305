package apiserver

import (
	"context"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/registry/customresource/tableconvertor"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// asTable returns an object, or a list with these items, as the table that kubectl shows.
func (s *Server) asTable(of *unstructured.Unstructured, items []*unstructured.Unstructured) []byte {
	gvk := of.GroupVersionKind()
	gvr, _, _ := s.LookupKind(gvk.GroupVersion().WithKind(strings.TrimSuffix(gvk.Kind, "List")))
	k := s.kinds[gvr]
	tableOf := k.tables()
	table := tableOf(k.newObject()) // for the columns
	table.SetGroupVersionKind(metav1.SchemeGroupVersion.WithKind("Table"))
	table.Rows = []metav1.TableRow{}
	table.ResourceVersion = of.GetResourceVersion()
	table.Continue = (&unstructured.UnstructuredList{Object: of.Object}).GetContinue()
	for _, item := range items {
		row := tableOf(item).Rows[0]
		partial := meta.AsPartialObjectMetadata(row.Object.Object.(metav1.Object))
		partial.SetGroupVersionKind(metav1.SchemeGroupVersion.WithKind("PartialObjectMetadata"))
		row.Object.Object = partial
		table.Rows = append(table.Rows, row)
	}
	return marshal(table)
}

// tables returns what makes a table of one object.
func (k *kind) tables() func(*unstructured.Unstructured) *metav1.Table {
	if k.real != nil {
		return func(object *unstructured.Unstructured) *metav1.Table {
			return must(k.real.Table(k.gvr, object))
		}
	}
	columns := k.columns
	if len(columns) == 0 {
		columns = []apiextensionsv1.CustomResourceColumnDefinition{{Name: "Age", Type: "date",
			JSONPath: ".metadata.creationTimestamp"}}
	}
	convertor := must(tableconvertor.New(columns))
	return func(object *unstructured.Unstructured) *metav1.Table {
		return must(convertor.ConvertToTable(context.Background(), object, nil))
	}
}
