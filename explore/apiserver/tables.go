package apiserver

import (
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metatable "k8s.io/apimachinery/pkg/api/meta/table"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
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
	token, _, _ := nested(of.Object, "metadata.continue")
	table.Continue, _ = token.(string)
	for _, item := range items {
		row := k.table(item).Rows[0]
		partial := meta.AsPartialObjectMetadata(row.Object.Object.(metav1.Object))
		partial.SetGroupVersionKind(metav1.SchemeGroupVersion.WithKind("PartialObjectMetadata"))
		row.Object.Object = partial
		table.Rows = append(table.Rows, row)
	}
	return marshal(table)
}

// table returns a table of one object. Without Kinds, it has the name and the age.
func (k *kind) table(object *unstructured.Unstructured) *metav1.Table {
	if used != nil {
		table, err := used.Table(k.gvr, k.columns, object)
		if err != nil {
			panic(err) // only of columns that a real API server refuses
		}
		return table
	}
	doc := metav1.ObjectMeta{}.SwaggerDoc()
	table := &metav1.Table{ColumnDefinitions: []metav1.TableColumnDefinition{
		{Name: "Name", Type: "string", Format: "name", Description: doc["name"]},
		{Name: "Age", Type: "date", Description: doc["creationTimestamp"]}}}
	table.Rows, _ = metatable.MetaToTableRow(object, func(
		_ runtime.Object, _ metav1.Object, name, age string,
	) ([]any, error) {
		return []any{name, age}, nil
	})
	return table
}
