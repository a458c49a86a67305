package kinds

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/diff"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"example.com/sample-controller/explore/apiserver"
	_ "example.com/sample-controller/explore/board" // has the flags of make board
)

const plain, mergePatch, apply = "application/json", "application/merge-patch+json", "application/apply-patch+yaml"

type object = map[string]any

func output(command ...string) string {
	c := exec.Command(command[0], command[1:]...)
	c.Stderr = os.Stderr
	return strings.TrimSpace(string(must(c.Output())))
}

func source(module, file string) string {
	return string(must(os.ReadFile(output("go", "list", "-m", "-f", "{{.Dir}}", module) + "/" + file)))
}

func text(value any) string { return string(must(json.Marshal(value))) }

func parse(text string) (value object) {
	return must(value, json.Unmarshal([]byte(text), &value))
}

func merge(base, patch string) string {
	return string(must(jsonpatch.MergePatch([]byte(base), []byte(patch))))
}

// sides returns clients of a real API server, and of the one in memory.
func sides(t *testing.T) (both [2]rest.Interface) {
	script, name := "../../../hack/cluster", fmt.Sprintf("kinds-%d", os.Getpid())
	t.Cleanup(func() { output(script, "down", name) })
	output(script, "up", name)
	for _, component := range []string{"kube-controller-manager", "kube-scheduler", "kwok-controller"} {
		output(script, "kill-server", name, component)
	}
	config := must(clientcmd.BuildConfigFromFlags("", "../../../.local/clusters/"+name+"/kubeconfig.yaml"))
	config.Impersonate = rest.ImpersonationConfig{UserName: admin.Name, Groups: []string{user.SystemPrivilegedGroup}}
	for i, config := range []*rest.Config{config, apiserver.New().Config(nil)} {
		config.QPS = -1
		both[i] = kubernetes.NewForConfigOrDie(config).RESTClient()
		send(both[i], "POST", "/api/v1/namespaces", plain, `{"metadata": {"name": "kinds"}}`)
		send(both[i], "POST", "/api/v1/namespaces/kinds/serviceaccounts", plain, // without it, no Pod is admitted
			`{"metadata": {"name": "default"}, "automountServiceAccountToken": false}`)
	}
	return both
}

func send(to rest.Interface, method, path, media, body string) string {
	answer, _ := to.Verb(method).RequestURI(path).SetHeader("Content-Type", media).SetHeader("Accept", plain).
		Body([]byte(body)).Do(context.Background()).Raw()
	return string(answer)
}

// chosen is what a server chooses: versions, UIDs, times, addresses, ages, ports of nodes.
var (
	chosen = regexp.MustCompile(`("resourceVersion":")[0-9]+|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|` +
		`20[0-9-]{8}T[0-9:.]+Z|10\.0\.[0-9]+\.[0-9]+|[0-9]+m?s|\\u003cinvalid\\u003e|3[0-9]{4}`)
	managed = regexp.MustCompile(`,"managedFields":\[[^]]*\]`)
)

// normal returns what is compared of an answer.
func normal(answer string) any {
	if failure := failure(answer); failure != nil {
		return failure
	}
	return parse(chosen.ReplaceAllString(managed.ReplaceAllString(answer, ""), "${1}0"))
}

// failure returns the code, the reason and the causes of a failure.
func failure(answer string) (of []string) {
	var status metav1.Status
	if _ = json.Unmarshal([]byte(answer), &status); status.Kind != "Status" {
		return nil
	}
	if of = []string{fmt.Sprint(status.Code, " ", status.Reason)}; status.Details != nil {
		for _, cause := range status.Details.Causes {
			of = append(of, fmt.Sprint(cause.Type, " ", cause.Field))
		}
	}
	slices.Sort(of)
	return slices.Compact(of)
}

// probe writes objects of a kind to both servers.
type probe struct {
	*testing.T
	both     [2]rest.Interface
	resource string
	paths    string // that of the objects
	path     string // that of the object
	stub     string // is to be created
}

// TestKindsAreStoredAlike writes objects of each kind to both servers: those with which Kubernetes
// itself tests that it stores each kind, without the fields that their types do not have.
func TestKindsAreStoredAlike(t *testing.T) {
	both, number := sides(t), 0
	data := strings.NewReplacer("` + image + `", "image", "` + alternateImage + `", "other", "` + namespace + `", "kinds",
		`"protocol": "TCP", "ports": []`, `"ports": []`, `"resourceClassName": "class2name"`, "",
		`"apiVersion": "rbac.authorization.k8s.io/v1alpha1", `, "", `"Value":1000`, `"value":1000`,
	).Replace(source("k8s.io/kubernetes", "test/integration/etcd/data.go"))
	for _, entry := range entries.FindAllStringSubmatch(data, -1) {
		group, version, resource, stubs := entry[1], entry[2], entry[3], map[string]string{}
		for _, stub := range stubsOf.FindAllStringSubmatch(entry[4], -1) {
			stubs[stub[1]] = stub[2]
		}
		apiVersion := strings.TrimPrefix(group+"/"+version, "/")
		p := &probe{T: t, both: both, resource: resource, // the core group has another prefix
			paths: strings.Replace("/apis/"+apiVersion, "/apis/v1", "/api/v1", 1)}
		kind, ok := p.find()
		if !ok { // an old version, or an alpha one
			continue
		}
		number++
		p.paths += "/" + resource
		p.path = p.paths + "/" + parse(stubs["Stub"])["metadata"].(object)["name"].(string)
		p.stub = merge(stubs["Stub"], fmt.Sprintf(`{"kind": %q, "apiVersion": %q}`, kind, apiVersion))
		p.stored(stubs)
		p.examples(source("k8s.io/api", fmt.Sprintf("testdata/HEAD/%s.%s.%s.json", cmp.Or(group, "core"), version, kind)))
	}
	if t.Logf("%d kinds", number); number < 61 {
		t.Error("there are fewer kinds than kinds.go says")
	}
}

var (
	entries = regexp.MustCompile(`(?s)gvr\("([^"]*)", "([^"]*)", "([^"]*)"\): \{(.*?)\n\t\t\}`)
	stubsOf = regexp.MustCompile("(?s)(\\w*Stub): +`(.*?)`")
)

// find returns the kind if both servers serve it. What discovery says must be the same.
func (p *probe) find() (kind string, ok bool) {
	var found [2]metav1.APIResource
	for i, s := range p.both {
		var list metav1.APIResourceList
		_ = json.Unmarshal([]byte(send(s, "GET", p.paths, "", "")), &list) // or is no JSON
		for _, r := range list.APIResources {
			if r.Name == p.resource {
				r.Verbs, r.Group, r.Version, r.StorageVersionHash = nil, "", "", ""
				found[i] = r
			}
		}
	}
	if found[0].Name == "" || found[1].Name == "" {
		return "", false
	}
	if !reflect.DeepEqual(found[0], found[1]) {
		p.Errorf("discovery of %s: %s", p.resource, diff.Diff(found[0], found[1]))
	}
	if found[0].Namespaced {
		p.paths += "/namespaces/kinds"
	}
	return found[0].Kind, true
}

// send sends a request to both servers, and compares the answers. If there is one body, it is for both.
func (p *probe) send(step, method, path, media string, bodies ...string) {
	var answers [2]any
	for i, s := range p.both {
		answers[i] = normal(send(s, method, path, media, bodies[i%len(bodies)]))
	}
	// A real API server writes the status of FlowSchemas itself, after a while.
	known := p.resource == "flowschemas" && strings.Contains("update patch apply", step)
	if _, refused := answers[0].([]string); refused && (step == "create" || step == "full") {
		p.Errorf("%s, %s: %v", p.resource, step, answers[0])
	}
	if !known && !reflect.DeepEqual(answers[0], answers[1]) {
		p.Errorf("%s, %s: -real +memory\n%s", p.resource, step, diff.Diff(answers[0], answers[1]))
	}
}

// put sends the object of each server with a merge patch.
func (p *probe) put(step, path, patch string) {
	var bodies []string
	for _, s := range p.both {
		current := send(s, "GET", p.path, "", "")
		bodies = append(bodies, merge(merge(current, patch), `{"metadata": {"managedFields": null}}`)) // memory has none yet
	}
	p.send(step, "PUT", path, plain, bodies...)
}

// remove removes the object, whatever its finalizers are.
func (p *probe) remove() {
	for _, s := range p.both {
		send(s, "PATCH", p.path, mergePatch, `{"metadata": {"finalizers": null}}`)
		send(s, "DELETE", p.path, plain, `{"gracePeriodSeconds": 0, "propagationPolicy": "Background"}`)
		if p.resource == "namespaces" {
			send(s, "PUT", p.path+"/finalize", plain, merge(send(s, "GET", p.path, "", ""), `{"spec": null}`))
		}
	}
}

// stored creates, updates, patches, applies and shows the object of Kubernetes.
func (p *probe) stored(stubs map[string]string) {
	p.create("create", p.stub)
	p.put("update", p.path, `{"metadata": {"labels": {"a": "b"}}}`)
	if patch := stubs["MutatedStub"]; patch != "" {
		p.put("update", p.path, patch)
		p.send("patch", "PATCH", p.path, mergePatch, patch)
	}
	p.send("patch", "PATCH", p.path, mergePatch, `{"metadata": {"annotations": {"a": "b"}}}`)
	for _, name := range []string{"StatusStub", "MutatedStatusStub"} {
		if patch := stubs[name]; patch != "" {
			p.put("status", p.path+"/status", patch)
		}
	}
	p.remove()
	for _, manager := range []string{"a", "a", "b"} {
		p.send("apply", "PATCH", p.path+"?fieldManager="+manager, apply, p.stub)
		p.stub = merge(p.stub, `{"metadata": {"labels": {"a": "of `+manager+`"}}}`)
	}
}

func (p *probe) create(step, body string) {
	p.remove()
	p.send(step, "POST", p.paths, plain, body)
}

// examples creates an object with all fields, which have nonsense in them; the object of Kubernetes
// with what the server in memory accepts of them; and one without anything.
func (p *probe) examples(example string) {
	nonsense, full := parse(example), parse(p.stub)
	name := full["metadata"].(object)["name"]
	full["metadata"] = object{"name": name, "labels": object{"a": "b"},
		"annotations": object{"a": "b"}, "finalizers": []any{"example.com/a"}}
	nonsense["metadata"] = full["metadata"]
	maps.DeleteFunc(nonsense, func(name string, _ any) bool { return strings.HasPrefix(name, "deprecated") })
	if spec, _ := nonsense["spec"].(object); p.resource == "pods" { // admission looks these up
		for _, name := range strings.Fields("serviceAccountName serviceAccount automountServiceAccountToken " +
			"priorityClassName priority preemptionPolicy runtimeClassName overhead") {
			delete(spec, name)
		}
	}
	p.create("invalid", text(nonsense))
	p.remove()
	p.grow(full, full, nonsense)
	p.create("full", text(full))
	p.create("empty", text(object{"metadata": object{"name": name}}))
	p.remove()
}

// grow adds fields to a value of an object, if the server in memory then finds no more wrong.
func (p *probe) grow(whole, value, from object) {
	wrong := func() int {
		return len(failure(send(p.both[1], "POST", p.paths+"?dryRun=All", plain, text(whole))))
	}
	for _, name := range slices.Sorted(maps.Keys(from)) {
		before, missing := wrong(), value[name] == nil
		if missing {
			if value[name] = runtime.DeepCopyJSONValue(from[name]); wrong() <= before {
				continue
			}
		}
		switch field := from[name].(type) {
		case object:
			if missing {
				value[name] = object{}
			}
			p.grow(whole, value[name].(object), field)
		case []any:
			element, ok := field[0].(object)
			if !ok {
				break
			}
			if missing {
				value[name] = []any{object{}}
			}
			for _, each := range value[name].([]any) {
				p.grow(whole, each.(object), element)
			}
		}
		if missing && wrong() > before {
			delete(value, name)
		}
	}
}
