package patch

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/client-go/applyconfigurations"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/typed"
)

// converter knows the types of client-go, and so the keys of their lists. It reads a large schema,
// so it is made when it is needed for the first time.
var converter = sync.OnceValue(func() managedfields.TypeConverter {
	return applyconfigurations.NewTypeConverter(scheme.Scheme)
})

// Fields returns the fields that a repair changes. Lists of custom resources have no keys that are
// known here: such a list is one field.
func Fields(observed, desired Object) *fieldpath.Set {
	for _, c := range []managedfields.TypeConverter{
		converter(), managedfields.NewDeducedTypeConverter(),
	} {
		before, err := c.ObjectToTyped(withKind(observed), typed.AllowDuplicates)
		if err != nil {
			continue
		}
		after, err := c.ObjectToTyped(withKind(desired), typed.AllowDuplicates)
		if err != nil {
			continue
		}
		if changes, err := before.Compare(after); err == nil {
			return changes.Added.Union(changes.Modified).Union(changes.Removed).Leaves()
		}
	}
	return fieldpath.NewSet() // no object is like that
}

// withKind returns a copy of an object that says what kind it has. What informers return does not.
func withKind(object Object) Object {
	object = object.DeepCopyObject().(Object)
	if kinds, _, err := scheme.Scheme.ObjectKinds(object); err == nil {
		object.GetObjectKind().SetGroupVersionKind(kinds[0])
	}
	return object
}

// somebody has written a field if nothing says who.
const somebody = "somebody"

// Names returns the fields as people write them, such as
// spec.template.spec.containers[name="web"].image. Of many, it returns the first few.
func Names(fields *fieldpath.Set) string {
	const most = 5
	var names []string
	for path := range fields.All() {
		names = append(names, strings.TrimPrefix(path.String(), "."))
	}
	slices.Sort(names)
	if more := len(names) - most; more > 1 {
		names = append(names[:most], fmt.Sprintf("%d more", more))
	}
	return strings.Join(names, ", ")
}

// Writers returns the names of the field managers that have written one of the fields, such as
// "kubectl-edit", or "somebody". The object must have its managedFields, which informers drop.
func Writers(object Object, fields *fieldpath.Set) string {
	var writers []string
	for _, entry := range object.GetManagedFields() {
		var written fieldpath.Set
		if entry.FieldsV1 == nil || written.FromJSON(entry.FieldsV1.GetRawReader()) != nil {
			continue
		}
		for path := range fields.All() {
			if written.Has(path) {
				writers = append(writers, strconv.Quote(entry.Manager))
				break
			}
		}
	}
	if writers == nil {
		return somebody
	}
	slices.Sort(writers)
	return strings.Join(slices.Compact(writers), ", ")
}
