package suite

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/sample-controller/internal/testing/must"
	"example.com/sample-controller/internal/testing/suite/audit"
)

// Permission is one verb on one resource. Without a namespace, it holds in all of them.
type Permission struct {
	Namespace, Group, Resource, Verb string
	Names                            []string // of the objects, all if empty
}

func (p Permission) String() string {
	return fmt.Sprintf("%s %s.%s", p.Verb, p.Resource, p.Group)
}

// allows reports whether p is a permission for r.
func (p Permission) allows(r audit.Request) bool {
	resource, group := r.ObjectRef.Resource, ""
	if r.ObjectRef.Subresource != "" {
		resource += "/" + r.ObjectRef.Subresource
	}
	if path := strings.Split(r.RequestURI, "/"); path[1] == "apis" {
		group = path[2]
	}
	return p.Verb == r.Verb && p.Group == group && p.Resource == resource &&
		(p.Namespace == "" || p.Namespace == r.ObjectRef.Namespace) &&
		(len(p.Names) == 0 || slices.Contains(p.Names, r.ObjectRef.Name))
}

// UsesExactly fails t unless the requests are all allowed, and need each permission, except for the
// ones that are neverRequested. manifests is where the permissions are.
func UsesExactly(
	t *testing.T, requests []audit.Request, permissions []Permission, neverRequested []string,
	manifests string,
) {
	t.Helper()
	for _, r := range requests {
		if LacksPermission(r) {
			t.Errorf("%s lacks a permission for %v: %s", manifests, r, r.ResponseStatus.Message)
		}
	}
	for _, p := range permissions {
		used := slices.ContainsFunc(requests, p.allows)
		if used == slices.Contains(neverRequested, p.String()) {
			t.Errorf("permission to %v: got used=%v, want %v", p, used, !used)
		}
	}
	if len(permissions) < 10 {
		t.Errorf("got only the permissions %v, want those of two roles", permissions)
	}
}

// Granted returns all permissions that bindings in the cluster give to a ServiceAccount by name.
func Granted(t *testing.T, namespace, serviceAccount string) (permissions []Permission) {
	t.Helper()
	rbac := Kube.RbacV1()
	isSubject := func(subject rbacv1.Subject) bool {
		return subject.Kind == rbacv1.ServiceAccountKind &&
			subject.Namespace == namespace && subject.Name == serviceAccount
	}
	everywhere := must.Get(rbac.ClusterRoleBindings().List(t.Context(), metav1.ListOptions{}))(t)
	for _, binding := range everywhere.Items {
		if slices.ContainsFunc(binding.Subjects, isSubject) {
			permissions = append(permissions, permissionsOf(t, "", binding.RoleRef)...)
		}
	}
	somewhere := must.Get(rbac.RoleBindings(metav1.NamespaceAll).List(
		t.Context(), metav1.ListOptions{}))(t)
	for _, binding := range somewhere.Items {
		if slices.ContainsFunc(binding.Subjects, isSubject) {
			found := permissionsOf(t, binding.Namespace, binding.RoleRef)
			permissions = append(permissions, found...)
		}
	}
	return permissions
}

// permissionsOf returns the permissions that a binding in that namespace gives.
func permissionsOf(t *testing.T, namespace string, ref rbacv1.RoleRef) (all []Permission) {
	t.Helper()
	var rules []rbacv1.PolicyRule
	if ref.Kind == "ClusterRole" {
		role := must.Get(Kube.RbacV1().ClusterRoles().Get(
			t.Context(), ref.Name, metav1.GetOptions{}))(t)
		rules = role.Rules
	} else {
		role := must.Get(Kube.RbacV1().Roles(namespace).Get(
			t.Context(), ref.Name, metav1.GetOptions{}))(t)
		rules = role.Rules
	}
	for _, rule := range rules {
		for _, group := range rule.APIGroups {
			for _, resource := range rule.Resources {
				for _, verb := range rule.Verbs {
					all = append(all, Permission{namespace, group, resource, verb, rule.ResourceNames})
				}
			}
		}
	}
	return all
}

// WithoutWatchList makes the programs that t starts list objects, as they do if the API server
// cannot send the existing objects in a watch.
func WithoutWatchList(t *testing.T) {
	t.Helper()
	const variable = "KUBE_FEATURE_WatchListClient"
	if _, set := os.LookupEnv(variable); set {
		t.Fatalf("unset %s: the test compares both settings", variable)
	}
	t.Setenv(variable, "false")
}
