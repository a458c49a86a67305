package kubectl

import (
	"context"
	"os"
	"strings"
	"testing"

	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"

	"example.com/sample-controller/explore/apiserver"

	"example.com/sample-controller/internal/testing/must"
)

// newShell returns a shell on an API server in memory.
func newShell(t *testing.T) *Shell {
	t.Helper()
	crds := must.Get(apiserver.ReadCRDs("../../artifacts/examples/crd.yaml"))(t)
	server := apiserver.New(crds...)
	client := must.Get(dynamic.NewForConfig(server.Config(nil)))(t)
	s := &Shell{Client: client, Files: os.DirFS("../.."), LookupKind: server.LookupKind}
	must.Get(s.Run(context.Background(), "kubectl create namespace lens", ""))(t)
	return s
}

func TestEachButtonWorks(t *testing.T) {
	text := must.Get(os.ReadFile("../actions.yaml"))(t)
	var table map[string][]struct {
		ID       string
		Commands []string
	}
	text = []byte(strings.ReplaceAll(string(text), "BURST", "3"))
	must.Do(t, yaml.Unmarshal(text, &table))
	const made = "foo.samplecontroller.k8s.io/example-foo created\n"
	says := map[string]string{
		"create": made, "two": made + "foo.samplecontroller.k8s.io/second-foo created\n",
		"scale":              "foo.samplecontroller.k8s.io/example-foo patched\n",
		"delete-all":         "foo.samplecontroller.k8s.io \"example-foo\" deleted from lens namespace\n",
		"delete-deployment":  "deployment.apps \"example-foo\" deleted from lens namespace\n",
		"restart-deployment": "deployment.apps/example-foo restarted\n",
		"unlabel":            "deployment.apps/example-foo unlabeled\n",
		"refuse":             "resourcequota/no-deployments created\n",
		"bad-spec": "The Foo \"example-foo\" is invalid: \n* spec.replicas: Invalid value: -1: " +
			"spec.replicas in body should be greater than or equal to 0\n" +
			"* .spec.replicas: Invalid value: -1: should be a non-negative integer",
	}
	for _, action := range append(table["foos"], append(table["deployments"], table["plain"]...)...) {
		t.Run(action.ID, func(t *testing.T) {
			s := newShell(t)
			all := ""
			run := func(line string) {
				line = strings.ReplaceAll(line, "kubectl ", "kubectl -n lens ")
				output, err := s.Run(context.Background(), line, "")
				if err != nil {
					output = err.Error()
				}
				all += output
			}
			prepare(action.ID, run)
			all = ""
			for _, line := range action.Commands {
				run(line)
			}
			bad := strings.Contains(all, "not possible") || strings.Contains(all, "Error")
			if bad || all == "" || !strings.Contains(all, says[action.ID]) {
				t.Errorf("got %q, want %q", all, says[action.ID])
			}
		})
	}
}

// prepare makes what a button's command is about.
func prepare(action string, run func(line string)) {
	switch action {
	case "create", "two", "apply", "bad-spec", "burst", "create-deployment", "foreign", "refuse":
		return
	case "delete-foreign":
		run("kubectl create deployment foreign-foo --image=nginx")
	case "allow":
		run("kubectl create quota no-deployments --hard=count/deployments.apps=0")
	}
	run("kubectl create -f artifacts/examples/example-foo.yaml")
	run("kubectl create deployment example-foo --image=nginx")
	run("kubectl patch deployment/example-foo --type=merge " +
		`-p '{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"Namespace","name":"x","uid":"x"}]}}'`)
}
