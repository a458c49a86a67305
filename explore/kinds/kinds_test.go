package kinds

import (
	"cmp"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/diff"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"example.com/sample-controller/explore/apiserver"
)

const merge, apply = "application/merge-patch+json", "application/apply-patch+yaml"

// side is one of the two servers.
type side struct {
	client *http.Client
	host   string
}

// sides returns a real API server, and the one in memory.
func sides(t *testing.T) [2]side {
	script, name := "../../hack/cluster", fmt.Sprintf("kinds-%d", os.Getpid())
	t.Cleanup(func() { output(t, script, "down", name) })
	output(t, script, "up", name)
	for _, component := range []string{"kube-controller-manager", "kube-scheduler", "kwok-controller"} {
		output(t, script, "kill-server", name, component)
	}
	config, err := clientcmd.BuildConfigFromFlags("", "../../.local/clusters/"+name+"/kubeconfig.yaml")
	if err != nil {
		t.Fatal(err)
	}
	realClient, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	memory, err := apiserver.New()
	if err != nil {
		t.Fatal(err)
	}
	both := [2]side{{realClient, config.Host},
		{&http.Client{Transport: memory.Config(nil).Transport}, "http://memory"}}
	for _, s := range both { // without it, no Pod is admitted
		s.send(t, "POST", "/api/v1/namespaces", "", `{"metadata": {"name": "kinds"}}`)
		s.send(t, "POST", "/api/v1/namespaces/kinds/serviceaccounts", "",
			`{"metadata": {"name": "default"}, "automountServiceAccountToken": false}`)
	}
	return both
}

func output(t *testing.T, command ...string) string {
	t.Helper()
	text, err := exec.Command(command[0], command[1:]...).CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %v\n%s", command, err, text)
	}
	return strings.TrimSpace(string(text))
}

// send returns the answer to a request, which may be a table.
func (s side) send(t *testing.T, method, path, media, body string) (code int, answer object) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, s.host+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", media)
	request.Header.Set("Accept", "application/json")
	if strings.Contains(path, "?table") {
		request.Header.Set("Accept", "application/json;as=Table;v=v1;g=meta.k8s.io")
	}
	response, err := s.client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	if err == nil && strings.HasPrefix(response.Header.Get("Content-Type"), "application/json") {
		err = json.Unmarshal(text, &answer)
	}
	if err != nil {
		t.Fatalf("%s %s: %v: %s", method, path, err, text)
	}
	return response.StatusCode, answer
}

type object = map[string]any

// chosen is what a server chooses: UIDs, times, versions, addresses, ports of nodes, ages.
var chosen = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|` +
	`20[0-9-]{8}T[0-9:.]+Z|10\.0\.[0-9]+\.[0-9]+|[0-9]+m?s|<invalid>|3[0-9]{4}`)

// normal returns what is compared of a value. Of a failure, that is its code, reason and causes.
func normal(value any) any {
	switch value := value.(type) {
	case object:
		if value["kind"] == "Status" {
			causes := map[string]bool{}
			details, _ := value["details"].(object)
			list, _ := details["causes"].([]any)
			for _, cause := range list {
				causes[fmt.Sprint(cause.(object)["reason"], " ", cause.(object)["field"])] = true
			}
			return object{"code": value["code"], "reason": value["reason"], "causes": causes}
		}
		result := object{}
		for name, field := range value {
			if name != "managedFields" && name != "resourceVersion" {
				result[name] = normal(field)
			}
		}
		return result
	case []any:
		result := []any{}
		for _, element := range value {
			result = append(result, normal(element))
		}
		return result
	case string:
		return chosen.ReplaceAllString(value, "chosen")
	case float64:
		return json.Number(chosen.ReplaceAllString(strconv.FormatFloat(value, 'f', -1, 64), "chosen"))
	}
	return value
}

// kind is a kind, with the objects with which Kubernetes itself tests that it stores each kind. Stub
// is to be created, MutatedStub is a patch of it; the others are patches of the status.
type kind struct {
	gvr    schema.GroupVersionResource
	name   string
	prefix string // of its paths

	stubs map[string]object
}

// readKinds reads the source of that test. It returns the kinds that both servers serve.
func readKinds(t *testing.T, both [2]side) (kinds []kind) {
	file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(output(t, "go", "list", "-m", "-f",
		"{{.Dir}}", "k8s.io/kubernetes"), "test/integration/etcd/data.go"), nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	ast.Inspect(file, func(n ast.Node) bool {
		pair, ok := n.(*ast.KeyValueExpr)
		if !ok {
			return true
		}
		call, isCall := pair.Key.(*ast.CallExpr)
		data, isData := pair.Value.(*ast.CompositeLit)
		if !isCall || !isData || len(call.Args) != 3 {
			return true
		}
		k := kind{gvr: schema.GroupVersionResource{Group: literal(call.Args[0]), Version: literal(call.Args[1]),
			Resource: literal(call.Args[2])}, stubs: map[string]object{}}
		if !k.find(t, both) {
			return false
		}
		for _, element := range data.Elts {
			field := element.(*ast.KeyValueExpr)
			if name := field.Key.(*ast.Ident).Name; strings.HasSuffix(name, "Stub") {
				k.stubs[name] = k.known(t, literal(field.Value))
			}
		}
		kinds = append(kinds, k)
		return false
	})
	return kinds
}

// literal returns a string of parts. Variables are images, and a namespace.
func literal(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.BasicLit:
		value, _ := strconv.Unquote(e.Value)
		return value
	case *ast.BinaryExpr:
		return literal(e.X) + literal(e.Y)
	case *ast.Ident:
		return strings.ReplaceAll(e.Name, "namespace", "kinds")
	}
	panic(fmt.Sprintf("%T is no string", e))
}

// find reports whether both servers serve a kind. Its discovery must be the same.
func (k *kind) find(t *testing.T, both [2]side) bool {
	k.prefix = "/apis/" + k.gvr.GroupVersion().String()
	if k.gvr.Group == "" {
		k.prefix = "/api/v1"
	}
	var found [2]object
	for i, s := range both {
		_, answer := s.send(t, "GET", k.prefix, "", "")
		resources, _ := answer["resources"].([]any)
		for _, resource := range resources {
			if r := resource.(object); r["name"] == k.gvr.Resource {
				for _, name := range []string{"storageVersionHash", "verbs", "group", "version"} {
					delete(r, name)
				}
				found[i] = r
			}
		}
	}
	if found[0] == nil || found[1] == nil { // an old version, or an alpha one
		return false
	}
	if !reflect.DeepEqual(found[0], found[1]) {
		t.Errorf("discovery of %s: %s", k.gvr, diff.Diff(found[0], found[1]))
	}
	if k.name = found[0]["kind"].(string); found[0]["namespaced"] == true {
		k.prefix += "/namespaces/kinds"
	}
	k.prefix += "/" + k.gvr.Resource
	return true
}

// known reads an object, without the fields that its type does not have.
func (k *kind) known(t *testing.T, text string) (stub object) {
	if err := json.Unmarshal([]byte(text), &stub); err != nil {
		t.Fatal(err)
	}
	typed, err := scheme.Scheme.New(k.gvr.GroupVersion().WithKind(k.name))
	if err == nil {
		err = runtime.DefaultUnstructuredConverter.FromUnstructured(stub, typed)
	}
	var known object
	if err == nil {
		known, err = runtime.DefaultUnstructuredConverter.ToUnstructured(typed)
	}
	if err != nil {
		t.Fatal(err)
	}
	intersect(stub, known)
	stub["kind"], stub["apiVersion"] = k.name, k.gvr.GroupVersion().String()
	return stub
}

// intersect drops the fields that the other value does not have.
func intersect(value, with any) {
	switch value := value.(type) {
	case object:
		with, _ := with.(object)
		for name, field := range value {
			if other, ok := with[name]; ok {
				intersect(field, other)
			} else if field != nil {
				delete(value, name)
			}
		}
	case []any:
		for i, element := range value {
			if with, _ := with.([]any); i < len(with) {
				intersect(element, with[i])
			}
		}
	}
}

// probe writes objects of a kind to both servers.
type probe struct {
	*testing.T
	kind
	both   [2]side
	differ []string // the steps in which the answers are different
}

// TestKindsAreStoredAlike writes objects of each kind to both servers. All differences are in the
// documentation of the package, with the steps in which they are seen.
func TestKindsAreStoredAlike(t *testing.T) {
	both := sides(t)
	differ := map[string]string{}
	kinds := readKinds(t, both)
	for _, k := range kinds {
		p := &probe{T: t, kind: k, both: both}
		p.stored()
		p.examples()
		if len(p.differ) > 0 {
			differ[k.gvr.Resource] = strings.Join(p.differ, ", ")
		}
	}
	t.Logf("%d of %d kinds are the same in all", len(kinds)-len(differ), len(kinds))
	if len(kinds) < 50 || len(differ)*10 > len(kinds) {
		t.Errorf("%d of %d kinds differ: more than one of ten", len(differ), len(kinds))
	}
	source, err := os.ReadFile("kinds.go")
	if err != nil {
		t.Fatal(err)
	}
	known := map[string]string{}
	for _, match := range listed.FindAllStringSubmatch(string(source), -1) {
		known[match[1]] = match[2]
	}
	if !reflect.DeepEqual(differ, known) {
		t.Errorf("the list of differences in kinds.go: %s", diff.Diff(known, differ))
	}
}

var listed = regexp.MustCompile(`(?m)^//   - ([a-z]+) \(([a-z, ]+)\): `)

// send sends a request to both servers, and compares the answers.
func (p *probe) send(step, method, path, media string, bodies ...string) {
	p.Helper()
	var answers [2]any
	for i, s := range p.both {
		_, answer := s.send(p.T, method, path, media, bodies[i%len(bodies)])
		answers[i] = normal(answer)
	}
	if !reflect.DeepEqual(answers[0], answers[1]) {
		p.Logf("%s, %s: -real +memory\n%s", p.gvr.Resource, step, diff.Diff(answers[0], answers[1]))
		if !slices.Contains(p.differ, step) {
			p.differ = append(p.differ, step)
		}
	}
}

func (p *probe) text(value any) string {
	text, err := json.Marshal(value)
	if err != nil {
		p.Fatal(err)
	}
	return string(text)
}

// current returns the object of each server with a merge patch.
func (p *probe) current(patch string) (bodies []string) {
	for _, s := range p.both {
		_, object := s.send(p.T, "GET", p.path(), "", "")
		delete(object["metadata"].(map[string]any), "managedFields") // in memory, there are none yet
		patched, err := jsonpatch.MergePatch([]byte(p.text(object)), []byte(patch))
		if err != nil {
			p.Fatal(err)
		}
		bodies = append(bodies, string(patched))
	}
	return bodies
}

// path returns that of the object.
func (p *probe) path() string {
	return p.prefix + "/" + p.stubs["Stub"]["metadata"].(object)["name"].(string)
}

// remove removes the object, whatever its finalizers are.
func (p *probe) remove() {
	for _, s := range p.both {
		const patch = `{"metadata": {"finalizers": null}}`
		s.send(p.T, "PATCH", p.path(), merge, patch)
		s.send(p.T, "DELETE", p.path(), "application/json",
			`{"gracePeriodSeconds": 0, "propagationPolicy": "Background"}`)
		s.send(p.T, "PATCH", p.path(), merge, patch)
		if p.gvr.Resource == "namespaces" {
			_, left := s.send(p.T, "GET", p.path(), "", "")
			left["spec"] = nil
			s.send(p.T, "PUT", p.path()+"/finalize", "application/json", p.text(left))
		}
	}
}

// stored creates, updates, patches, applies and shows the object of Kubernetes.
func (p *probe) stored() {
	stub := p.text(p.stubs["Stub"])
	p.remove()
	p.send("create", "POST", p.prefix, "application/json", stub)
	p.send("update", "PUT", p.path(), "application/json", p.current(`{"metadata": {"labels": {"a": "b"}}}`)...)
	if patch := p.stubs["MutatedStub"]; patch != nil {
		p.send("update", "PUT", p.path(), "application/json", p.current(p.text(patch))...)
		p.send("patch", "PATCH", p.path(), merge, p.text(patch))
	}
	p.send("patch", "PATCH", p.path(), merge, `{"metadata": {"annotations": {"a": "b"}}}`)
	for _, name := range []string{"StatusStub", "MutatedStatusStub"} {
		if patch := p.stubs[name]; patch != nil {
			p.send("status", "PUT", p.path()+"/status", "application/json", p.current(p.text(patch))...)
		}
	}
	p.send("table", "GET", p.path()+"?table", "", "")
	p.remove()
	p.send("apply", "PATCH", p.path()+"?fieldManager=a", apply, stub)
	p.stubs["Stub"]["metadata"].(object)["labels"] = object{"a": "b"}
	p.send("apply", "PATCH", p.path()+"?fieldManager=a", apply, p.text(p.stubs["Stub"]))
	p.stubs["Stub"]["metadata"].(object)["labels"] = object{"a": "c"}
	p.send("apply", "PATCH", p.path()+"?fieldManager=b", apply, p.text(p.stubs["Stub"]))
	p.remove()
}

// examples creates an object with all fields, which have nonsense in them; the same without what the
// server in memory refuses; and one without anything.
func (p *probe) examples() {
	group := cmp.Or(p.gvr.Group, "core")
	file := fmt.Sprintf("%s/testdata/HEAD/%s.%s.%s.json", output(p.T, "go", "list", "-m", "-f", "{{.Dir}}",
		"k8s.io/api"), group, p.gvr.Version, p.name)
	source, err := os.ReadFile(file)
	nonsense := object{}
	if err == nil {
		err = json.Unmarshal(source, &nonsense)
	}
	if err != nil {
		p.Fatal(err)
	}
	metadata := object{"name": p.stubs["Stub"]["metadata"].(object)["name"], "labels": object{"a": "b"},
		"annotations": object{"a": "b"}, "finalizers": []any{"example.com/a"}}
	nonsense["metadata"] = metadata
	maps.DeleteFunc(nonsense, func(name string, _ any) bool { return strings.HasPrefix(name, "deprecated") })
	if spec, _ := nonsense["spec"].(object); p.gvr.Resource == "pods" { // admission looks these up
		for _, name := range []string{"serviceAccountName", "serviceAccount", "priorityClassName",
			"runtimeClassName", "priority", "preemptionPolicy", "overhead"} {
			delete(spec, name)
		}
	}
	p.send("invalid", "POST", p.prefix, "application/json", p.text(nonsense))
	p.remove()
	full := runtime.DeepCopyJSON(p.stubs["Stub"])
	fill(full, nonsense)
	full["metadata"] = metadata
	p.send("full", "POST", p.prefix, "application/json", p.reduced(full))
	p.remove()
	p.send("empty", "POST", p.prefix, "application/json", p.text(object{"metadata": object{"name": metadata["name"]}}))
	p.remove()
}

// fill adds the fields that are missing.
func fill(value, from any) {
	switch value := value.(type) {
	case object:
		from, _ := from.(object)
		for name, field := range from {
			if value[name] == nil {
				value[name] = runtime.DeepCopyJSONValue(field)
			} else {
				fill(value[name], field)
			}
		}
	case []any:
		if from, _ := from.([]any); len(from) > 0 {
			for _, element := range value {
				fill(element, from[0])
			}
		}
	}
}

// reduced drops the fields that the server in memory refuses, until it accepts the object.
func (p *probe) reduced(full object) string {
	for range 300 {
		code, answer := p.both[1].send(p.T, "POST", p.prefix+"?dryRun=All", "application/json", p.text(full))
		if code == http.StatusCreated {
			return p.text(full)
		}
		details, _ := answer["details"].(object)
		causes, _ := details["causes"].([]any)
		dropped := false
		for _, cause := range causes {
			path, _ := cause.(object)["field"].(string)
			path = strings.Replace(path, "metadata.taints", "spec.taints", 1) // is what the server says
			dropped = reset(full, p.stubs["Stub"], segments.FindAllString(path, -1)) || dropped
		}
		if !dropped {
			p.Errorf("%s: nothing of the full object can be stored: %v", p.gvr.Resource, answer)
			break
		}
	}
	return p.text(full)
}

var segments = regexp.MustCompile(`[^.\[\]]+`)

// reset makes what is at a path, or the nearest around it, as it is in the stub. It reports whether
// there was a difference.
func reset(value, stub any, path []string) bool {
	if len(path) == 0 {
		return false
	}
	switch value := value.(type) {
	case object:
		inStub, _ := stub.(object)
		for name, field := range value {
			is := strings.HasPrefix(strings.ToLower(path[0]), strings.ToLower(name)) // clusterIPs is of clusterIP
			if !is || name == "metadata" && inStub["apiVersion"] != nil {
				continue
			}
			if reset(field, inStub[name], path[1:]) {
				return true
			}
			if !reflect.DeepEqual(field, inStub[name]) {
				if value[name] = runtime.DeepCopyJSONValue(inStub[name]); inStub[name] == nil {
					delete(value, name)
				}
				return true
			}
		}
	case []any:
		i, err := strconv.Atoi(path[0])
		if inStub, _ := stub.([]any); err == nil && i < len(value) {
			return reset(value[i], append(inStub, make([]any, i+1)...)[i], path[1:])
		}
	}
	return false
}
