package conformance

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/sample-controller/internal/freeport"
	"example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
	"example.com/sample-controller/test/internal/audit"
)

// neverRequested are permissions that are needed although no request uses them: an admission plugin
// checks them. Without this one, the plugin OwnerReferencesPermissionEnforcement refuses a new
// Deployment.
var neverRequested = []string{"update foos/finalizers.samplecontroller.k8s.io"}

// inNoNamespace are permissions for resources without a namespace, which no Role can grant.
var inNoNamespace = []string{
	"create tokenreviews.authentication.k8s.io", "create subjectaccessreviews.authorization.k8s.io",
}

// permission is one verb on one resource. Without a namespace, it holds in all of them.
type permission struct {
	namespace, group, resource, verb string
	names                            []string // of the objects, all if empty
}

func (p permission) String() string {
	return fmt.Sprintf("%s %s.%s", p.verb, p.resource, p.group)
}

// allows reports whether p is a permission for r.
func (p permission) allows(r audit.Request) bool {
	resource, group := r.ObjectRef.Resource, ""
	if r.ObjectRef.Subresource != "" {
		resource += "/" + r.ObjectRef.Subresource
	}
	if path := strings.Split(r.RequestURI, "/"); path[1] == "apis" {
		group = path[2]
	}
	return p.verb == r.Verb && p.group == group && p.resource == resource &&
		(p.namespace == "" || p.namespace == r.ObjectRef.Namespace) &&
		(len(p.names) == 0 || slices.Contains(p.names, r.ObjectRef.Name))
}

func TestDeployedControllerUsesExactlyItsPermissions(t *testing.T) {
	behaviour(t, 18)
	t.Run("in all namespaces", func(t *testing.T) {
		usesExactlyItsPermissions(t, newNamespace(t), deploy(t, deployDir, nil))
	})
	t.Run("in one namespace", func(t *testing.T) {
		n := newNamespace(t)
		deployment := deploy(t, deployDir+"/namespaced", watchOnly(t, n.name))
		usesExactlyItsPermissions(t, n, deployment)
		for _, p := range granted(t, deployment) {
			if p.namespace == "" && !slices.Contains(inNoNamespace, p.String()) {
				t.Errorf("the controller may %v in all namespaces, want in one only", p)
			}
		}
	})
}

// usesExactlyItsPermissions makes the controller do all that it can do, and then compares its
// requests with its permissions.
func usesExactlyItsPermissions(t *testing.T, n *namespace, deployment *appsv1.Deployment) {
	t.Helper()
	begin := now(t)
	metricsAddress := freeport.Address(t)
	first := startDeployed(t, deployment, metricsAddress)
	n.createReadyFoo(newFoo("web", "old", 1))
	somebody := n.token("somebody")
	eventually(t, "a user without the permission gets no metrics", func() (bool, string) {
		code, _ := getMetrics(t, metricsAddress, somebody)
		return code == http.StatusForbidden, fmt.Sprint(code)
	})
	n.kubectl("scale", "foo/web", "--replicas=2")
	n.deploymentWhen("old", "has 2 replicas", hasReplicas(2))
	n.changeFoo("web", func(foo *v1alpha1.Foo) { foo.Spec.DeploymentName = "new" })
	n.deploymentGone("old")
	n.kubectl("create", "deployment", "foreign", "--image=example.com/foreign")
	n.createFoo(newFoo("waiting", "foreign", 1))
	n.fooWhen("waiting", "is not Ready: "+nameTaken, notReadyBecause(nameTaken))
	stopProgram(t, first)
	withoutWatchList(t)
	second := startDeployed(t, deployment, "0")
	n.catchUp()
	stopProgram(t, second)

	requests := first.requests(t, begin, func(audit.Request) bool { return true }) // of both programs
	for _, r := range requests {
		if lacksPermission(r) {
			t.Errorf("artifacts/deploy lacks a permission for %v: %s", r, r.ResponseStatus.Message)
		}
	}
	permissions := granted(t, deployment)
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

// granted returns all permissions that bindings in the cluster give to the ServiceAccount of
// deployment by name.
func granted(t *testing.T, deployment *appsv1.Deployment) (permissions []permission) {
	t.Helper()
	rbac := kubeClient.RbacV1()
	isSubject := func(subject rbacv1.Subject) bool {
		return subject.Kind == rbacv1.ServiceAccountKind &&
			subject.Namespace == deployment.Namespace &&
			subject.Name == deployment.Spec.Template.Spec.ServiceAccountName
	}
	everywhere, err := rbac.ClusterRoleBindings().List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, binding := range everywhere.Items {
		if slices.ContainsFunc(binding.Subjects, isSubject) {
			permissions = append(permissions, permissionsOf(t, "", binding.RoleRef)...)
		}
	}
	somewhere, err := rbac.RoleBindings(metav1.NamespaceAll).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, binding := range somewhere.Items {
		if slices.ContainsFunc(binding.Subjects, isSubject) {
			found := permissionsOf(t, binding.Namespace, binding.RoleRef)
			permissions = append(permissions, found...)
		}
	}
	return permissions
}

// permissionsOf returns the permissions that a binding in that namespace gives.
func permissionsOf(t *testing.T, namespace string, ref rbacv1.RoleRef) (all []permission) {
	t.Helper()
	var rules []rbacv1.PolicyRule
	if ref.Kind == "ClusterRole" {
		role, err := kubeClient.RbacV1().ClusterRoles().Get(t.Context(), ref.Name, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		rules = role.Rules
	} else {
		role, err := kubeClient.RbacV1().Roles(namespace).Get(t.Context(), ref.Name, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		rules = role.Rules
	}
	for _, rule := range rules {
		for _, group := range rule.APIGroups {
			for _, resource := range rule.Resources {
				for _, verb := range rule.Verbs {
					all = append(all, permission{namespace, group, resource, verb, rule.ResourceNames})
				}
			}
		}
	}
	return all
}

func TestRolesOfUsersIncludeFoos(t *testing.T) {
	n := newNamespace(t)
	deploy(t, deployDir, nil)
	tests := []struct{ verb, resource, subresource, roles string }{
		{"list", "foos", "", "view edit admin"},
		{"get", "foos", "scale", "view edit admin"},
		{"create", "foos", "", "edit admin"},
		{"deletecollection", "foos", "", "edit admin"},
		{"patch", "foos", "scale", "edit admin"},
		{"patch", "foos", "status", "admin"},
		{"update", "foos", "finalizers", "admin"},
	}
	for _, role := range []string{"view", "edit", "admin"} {
		n.kubectl("create", "rolebinding", role, "--clusterrole="+role, "--user="+role)
		for _, test := range tests {
			want := slices.Contains(strings.Fields(test.roles), role)
			what := fmt.Sprintf("with role %s, may %s foos/%s: %v", role, test.verb, test.subresource, want)
			eventually(t, what, func() (bool, string) {
				review := mayUser(t, role, authorizationv1.ResourceAttributes{
					Namespace: n.name, Verb: test.verb, Group: v1alpha1.GroupName,
					Resource: test.resource, Subresource: test.subresource,
				})
				return review.Allowed == want, review.String()
			})
		}
	}
	// Users can grant only permissions that they have. The admin of a namespace has all of these.
	n.kubectl("create", "rolebinding", "of-the-controller", "--as=admin",
		"--clusterrole="+deployedName, "--serviceaccount="+deployedName+":"+deployedName)
}

// mayUser returns whether the API server would allow the user to do that.
func mayUser(
	t *testing.T, user string, what authorizationv1.ResourceAttributes,
) authorizationv1.SubjectAccessReviewStatus {
	t.Helper()
	review, err := kubeClient.AuthorizationV1().SubjectAccessReviews().Create(t.Context(),
		&authorizationv1.SubjectAccessReview{
			Spec: authorizationv1.SubjectAccessReviewSpec{User: user, ResourceAttributes: &what},
		}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return review.Status
}
