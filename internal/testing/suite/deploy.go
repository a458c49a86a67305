package suite

import (
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"example.com/sample-controller/internal/testing/must"
	"example.com/sample-controller/internal/testing/process"
	"example.com/sample-controller/internal/testing/suite/audit"
)

// Deploy installs the controller as a user would, with kubectl, from a folder with a kustomization.
// It returns the controller's Deployment. No container runs, because the node is simulated. When t
// ends, everything that is called like the controller is deleted, and its Lease: not the
// CustomResourceDefinition, which would take all objects along, and not the namespace, which would
// be ending for five seconds more. Unless change is nil, it changes the manifest.
func Deploy(t *testing.T, dir string, change func(manifest string) string) *appsv1.Deployment {
	t.Helper()
	manifest := Kubectl(t, "", "kustomize", dir)
	if change != nil {
		manifest = change(manifest)
	}
	t.Cleanup(func() {
		objects := slices.DeleteFunc(strings.Split(manifest, "\n---\n"), func(object string) bool {
			return strings.Contains("\n"+object, "\nkind: Namespace\n")
		})
		remove(t, strings.Join(objects, "\n---\n"))
		Kubectl(t, "", "delete", "--namespace="+config.Name, "lease", "--all")
	})
	installed = true
	Kubectl(t, manifest, "apply", "--filename=-")
	return must.Get(Kube.AppsV1().Deployments(config.Name).Get(t.Context(), config.Name,
		metav1.GetOptions{}))(t)
}

// installed says that Deploy has created the namespace, which Run deletes.
var installed bool

// remove deletes what a manifest has and is called like the controller.
func remove(t *testing.T, manifest string) {
	t.Helper()
	Kubectl(t, manifest, "delete", "--filename=-", "--selector="+deployed(), "--ignore-not-found",
		"--cascade=foreground", "--timeout="+(4*Patience).String())
}

// deployed selects what Deploy deletes.
func deployed() string { return "app.kubernetes.io/name=" + config.Name }

// StartDeployed runs the controller as its Deployment would, with the same arguments, namespace and
// ServiceAccount. But it serves metrics at metricsAddress, and no probes, unless flags say where.
func StartDeployed(
	t *testing.T, deployment *appsv1.Deployment, metricsAddress string, flags ...string,
) *Program {
	t.Helper()
	pod := deployment.Spec.Template.Spec
	args := append(pod.Containers[0].Args,
		"--metrics-bind-address="+metricsAddress, "--health-probe-bind-address=0")
	args = append(args, flags...)
	user := "system:serviceaccount:" + deployment.Namespace + ":" + pod.ServiceAccountName
	p := StartProgram(t, strings.Join(args, " "), func(config *clientcmdapi.Config) {
		for _, info := range config.AuthInfos {
			// The API server adds the groups of all ServiceAccounts, and no others.
			info.Impersonate, info.ImpersonateGroups = user, nil
		}
		for _, context := range config.Contexts {
			context.Namespace = deployment.Namespace
		}
	})
	p.User = user // as in the audit log
	return p
}

// GetMetrics requests the metrics over HTTPS, with that token, and returns the answer.
func GetMetrics(t *testing.T, address, token string) (code int, body string) {
	t.Helper()
	request := must.Get(http.NewRequest(http.MethodGet, "https://"+address+"/metrics", nil))(t)
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	client := &http.Client{Transport: &http.Transport{
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true,
	}, Timeout: time.Minute}
	response := must.Get(client.Do(request))(t)
	defer response.Body.Close()
	return response.StatusCode, string(must.Get(io.ReadAll(response.Body))(t))
}

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

// UsesExactlyItsPermissions fails the test unless the deployed controller may do all that it
// requests, and needs all that it may do, except for what is neverRequested. work makes it do all
// that it can do.
func (n *Namespace) UsesExactlyItsPermissions(
	deployment *appsv1.Deployment, neverRequested []string, work func(),
) {
	n.T.Helper()
	begin, address := Now(n.T), must.Get(process.FreeAddress())(n.T)
	first := StartDeployed(n.T, deployment, address)
	work()
	somebody := n.Token("somebody")
	Eventually(n.T, "a user without the permission gets no metrics", func() (bool, string) {
		code, _ := GetMetrics(n.T, address, somebody)
		return code == http.StatusForbidden, fmt.Sprint(code)
	})
	must.Do(n.T, first.Stop())
	n.T.Setenv("KUBE_FEATURE_WatchListClient", "false") // the second one lists
	second := StartDeployed(n.T, deployment, "0")
	n.CatchUp()
	must.Do(n.T, second.Stop())

	all := func(audit.Request) bool { return true }
	requests := first.Requests(n.T, begin, all) // of both programs
	for _, r := range requests {
		if lacksPermission(r) {
			n.T.Errorf("the controller lacks a permission for %v: %s", r, r.ResponseStatus.Message)
		}
	}
	permissions := GrantedTo(n.T, deployment)
	for _, p := range permissions {
		used := slices.ContainsFunc(requests, p.allows)
		if used == slices.Contains(neverRequested, p.String()) {
			n.T.Errorf("permission to %v: got used=%v, want %v", p, used, !used)
		}
	}
	if len(permissions) < 10 {
		n.T.Errorf("got only the permissions %v, want those of two roles", permissions)
	}
}

// lacksPermission reports whether the API server refused r because its user lacks a permission.
// Creating something in a namespace that is being deleted is forbidden, too, but to everybody.
func lacksPermission(r audit.Request) bool {
	err := apierrors.FromObject(&r.ResponseStatus)
	return apierrors.IsForbidden(err) &&
		!apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause)
}

// GrantedTo returns all permissions that bindings in the cluster give to the Pods of deployment.
func GrantedTo(t *testing.T, deployment *appsv1.Deployment) (permissions []Permission) {
	t.Helper()
	rbac, account := Kube.RbacV1(), deployment.Spec.Template.Spec.ServiceAccountName
	isSubject := func(subject rbacv1.Subject) bool {
		return subject.Kind == rbacv1.ServiceAccountKind &&
			subject.Namespace == deployment.Namespace && subject.Name == account
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
			permissions = append(permissions, permissionsOf(t, binding.Namespace, binding.RoleRef)...)
		}
	}
	return permissions
}

// permissionsOf returns the permissions that a binding in that namespace gives.
func permissionsOf(t *testing.T, namespace string, ref rbacv1.RoleRef) (all []Permission) {
	t.Helper()
	var rules []rbacv1.PolicyRule
	if ref.Kind == "ClusterRole" {
		rules = must.Get(Kube.RbacV1().ClusterRoles().Get(
			t.Context(), ref.Name, metav1.GetOptions{}))(t).Rules
	} else {
		rules = must.Get(Kube.RbacV1().Roles(namespace).Get(
			t.Context(), ref.Name, metav1.GetOptions{}))(t).Rules
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
