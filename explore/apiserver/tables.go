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
	table := k.table(k.newObject()) // for the columns
	table.SetGroupVersionKind(metav1.SchemeGroupVersion.WithKind("Table"))
	table.Rows = []metav1.TableRow{}
	table.ResourceVersion = of.GetResourceVersion()
	table.Continue = (&unstructured.UnstructuredList{Object: of.Object}).GetContinue()
	for _, item := range items {
		row := k.table(item).Rows[0]
		partial := meta.AsPartialObjectMetadata(row.Object.Object.(metav1.Object))
		partial.SetGroupVersionKind(metav1.SchemeGroupVersion.WithKind("PartialObjectMetadata"))
		row.Object.Object = partial
		table.Rows = append(table.Rows, row)
	}
	return marshal(table)
}

// table returns a table of one object.
func (k *kind) table(object *unstructured.Unstructured) (table *metav1.Table) {
	columns := k.columns
	if len(columns) == 0 {
		columns = []apiextensionsv1.CustomResourceColumnDefinition{{Name: "Age", Type: "date",
			JSONPath: ".metadata.creationTimestamp"}}
	}
	convertor, err := tableconvertor.New(columns)
	switch {
	case k.real != nil:
		table, err = k.real.Table(k.gvr, object)
	case err == nil:
		table, err = convertor.ConvertToTable(context.Background(), object, nil)
	}
	if err != nil {
		panic(err) // only of columns that a real API server refuses
	}
	return table
}
