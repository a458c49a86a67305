package suite

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/sample-controller/internal/testing/must"
)

// Namespace is the namespace of one test.
type Namespace struct {
	T    *testing.T
	Name string
}

// ParallelNamespace lets t run in parallel, in its own namespace, with the controller that all
// parallel tests share. If t is a part of a test, the test must be parallel, too.
func ParallelNamespace(t *testing.T) *Namespace {
	t.Helper()
	t.Parallel()
	must.Do(t, startShared())
	return NewNamespace(t)
}

// NewNamespace returns a new namespace, which is deleted when t ends. No finalizer of a custom
// resource holds it then, even if no controller is running.
func NewNamespace(t *testing.T) *Namespace {
	t.Helper()
	name := strings.ToLower(strings.TrimPrefix(t.Name(), "Test"))
	name = regexp.MustCompile("[^a-z0-9]+").ReplaceAllString(name, "-")
	namespaces := Kube.CoreV1().Namespaces()
	created := must.Get(namespaces.Create(t.Context(), &corev1.Namespace{
		ObjectMeta: metav1.ObjectMeta{GenerateName: name[:min(len(name), 50)] + "-"},
	}, metav1.CreateOptions{}))(t)
	n := &Namespace{T: t, Name: created.Name}
	t.Cleanup(func() {
		err := namespaces.Delete(context.Background(), n.Name, metav1.DeleteOptions{})
		if err != nil && !apierrors.IsNotFound(err) {
			t.Errorf("deleting the namespace: %v", err)
		}
		n.release()
	})
	return n
}

// release takes the finalizers off the custom resources. They are deleted first, so that the
// controller does not add its finalizer again. NotFound says that the controller was faster.
func (n *Namespace) release() {
	n.T.Helper()
	names := strings.Fields(n.Kubectl("get", config.Resource,
		"--output=jsonpath={.items[?(@.metadata.finalizers)].metadata.name}"))
	if len(names) == 0 {
		return
	}
	of := append([]string{config.Resource}, names...)
	_, _ = n.TryKubectl("", append([]string{"delete", "--wait=false"}, of...)...)
	output, err := n.TryKubectl("", append([]string{"patch", "--type=merge",
		`--patch={"metadata": {"finalizers": null}}`}, of...)...)
	if err != nil && !strings.Contains(output, "NotFound") {
		n.T.Errorf("removing finalizers: %v: %s", err, output)
	}
}

// CatchUp creates an object and waits for what the controller does about it. By then, the
// controller has seen everything that happened before, and had time to react. CatchUp returns the
// name of the object.
func (n *Namespace) CatchUp() string {
	n.T.Helper()
	name := fmt.Sprintf("catch-up-%d", time.Now().UnixNano())
	config.Create(n, name)
	config.Await(n, name)
	return name
}

// TryKubectl runs kubectl in the namespace, with stdin as its input, and returns what it prints.
func (n *Namespace) TryKubectl(stdin string, args ...string) (output string, err error) {
	command := kubectlCommand(append([]string{"--namespace", n.Name}, args...)...)
	command.Stdin = strings.NewReader(stdin)
	out, err := command.CombinedOutput()
	return strings.TrimSpace(string(out)), err
}

// Kubectl runs kubectl in the namespace. An error fails the test.
func (n *Namespace) Kubectl(args ...string) string {
	n.T.Helper()
	return strings.TrimSpace(Kubectl(n.T, "", append([]string{"--namespace", n.Name}, args...)...))
}

// Token creates a ServiceAccount and returns a token for it. Without audiences, the token is for
// the API server.
func (n *Namespace) Token(serviceAccount string, audiences ...string) string {
	n.T.Helper()
	n.Kubectl("create", "serviceaccount", serviceAccount)
	args := []string{"create", "token", serviceAccount}
	for _, audience := range audiences {
		args = append(args, "--audience="+audience)
	}
	return n.Kubectl(args...)
}
