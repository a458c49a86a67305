package apiserver

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"

	"example.com/sample-controller/explore/apiserver"
)

type object = map[string]any

// side is one of the two servers, with what it has answered in a sequence.
type side struct {
	client    *http.Client
	host      string
	namespace string
	seen      map[string][]object // the versions of an object, by resource/name
	uids      []string            // those in answers, in order
	versions  []int64
	watches   []*stream
}

// sides returns both servers, with a namespace that is new. They have no objects there.
func sides(t *testing.T, namespace string) [2]*side {
	t.Helper()
	memory := apiserver.New(crds...)
	both := [2]*side{
		{client: realServer, host: realHost, namespace: namespace},
		{client: &http.Client{Transport: memory.Config(nil).Transport}, host: "http://memory", namespace: namespace},
	}
	for _, s := range both {
		s.seen = map[string][]object{}
		body := `{"metadata": {"name": "` + namespace + `"}}`
		code, answer := s.do(t.Context(), "POST", "/api/v1/namespaces", "application/json", body)
		if code != http.StatusCreated {
			t.Fatal(s.host, answer)
		}
	}
	return both
}

func (s *side) do(ctx context.Context, method, path, media, body string) (int, object) {
	response, err := s.send(ctx, method, path, media, body)
	if err != nil {
		return 0, object{"error": err.Error()}
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	answer := object{}
	if err == nil {
		err = json.Unmarshal(text, &answer)
	}
	if err != nil {
		answer["error"] = err.Error() + ": " + string(text)
	}
	return response.StatusCode, answer
}

func (s *side) send(ctx context.Context, method, path, media, body string) (*http.Response, error) {
	path = strings.ReplaceAll(path, "$NS", s.namespace)
	body = strings.ReplaceAll(body, "$NS", s.namespace)
	request, err := http.NewRequestWithContext(ctx, method, s.host+path, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	if body != "" {
		request.Header.Set("Content-Type", media)
	}
	request.Header.Set("User-Agent", "test/1")
	request.Header.Set("Accept", "application/json")
	return s.client.Do(request)
}

// run sends the request of a step, and returns its answer in normal form.
func (s *side) run(t *testing.T, st step) (int, object) {
	key := st.Resource + "/" + st.Name
	body := st.Body
	if st.Method == http.MethodPut {
		base := merge(resources[st.Resource].valid, `{"metadata": {"name": "`+st.objectName()+`"}}`)
		if seen := s.seen[key]; len(seen) > 0 {
			text, _ := json.Marshal(seen[max(0, len(seen)-1-st.Behind)])
			if base = string(text); st.Behind > 0 { // before the first apply, that in memory has none
				base = merge(base, `{"metadata": {"managedFields": null}}`)
			}
		}
		body = merge(base, st.Body)
	}
	body = s.substitute(body, key, st.Behind)
	path := s.substitute(st.path(), key, st.Behind)
	if strings.Contains(st.Query, "resourceVersion=0") { // lets the real server's cache catch up
		all := step{Method: "GET", Resource: st.Resource}
		s.do(t.Context(), "GET", all.path()+"?limit=1", "", "")
	}
	if st.Method == "WATCH" {
		path = s.substitute(strings.ReplaceAll(st.path(), "$RV", "$SEEN"), key+"a", st.Behind)
		if st.Resource == "events" { // see watch
			first := step{Method: "POST", Resource: "events", Name: "first"}
			s.do(t.Context(), "POST", first.path(), "application/json", merge(resources["events"].valid,
				`{"metadata": {"name": "first", "labels": {"app": "a"}}}`))
		}
		s.watches = append(s.watches, s.watch(t, st, path))
		return 0, nil
	}
	code, answer := s.do(t.Context(), st.Method, path, st.Media, body)
	s.remember(st, key, answer)
	return code, s.normal(answer)
}

// substitute puts in what the server has said of an object.
func (s *side) substitute(text, key string, behind int) string {
	version, uid, since := "1", "00000000-0000-0000-0000-00000000000f", "0"
	if seen := s.seen[key]; len(seen) > 0 {
		metadata := seen[max(0, len(seen)-1-behind)]["metadata"].(object)
		version, uid = metadata["resourceVersion"].(string), metadata["uid"].(string)
		since = version
	}
	return strings.NewReplacer("$SEEN", since, "$RV", version, "$UID", uid).Replace(text)
}

func (s *side) remember(st step, key string, answer object) {
	metadata, _ := answer["metadata"].(object)
	if metadata["uid"] == nil || metadata["resourceVersion"] == nil || st.Name == "" {
		return
	}
	seen := s.seen[key]
	if n := len(seen); n == 0 || metadata["resourceVersion"] !=
		seen[n-1]["metadata"].(object)["resourceVersion"] {
		s.seen[key] = append(seen, runtime.DeepCopyJSON(answer))
	}
}

// normal replaces what differs between servers: UIDs by numbers, times, and resourceVersions by
// their order. It removes what is not compared.
func (s *side) normal(value object) object {
	if items, ok := value["items"].([]any); ok {
		delete(value["metadata"].(object), "resourceVersion") // others write, too
		delete(value["metadata"].(object), "continue")        // the real server says that it is empty
		for i := range items {
			items[i] = s.normal(items[i].(object))
			delete(items[i].(object), "kind") // the real server leaves them out
			delete(items[i].(object), "apiVersion")
		}
		return value
	}
	if metadata, ok := value["metadata"].(object); ok {
		s.normalMetadata(metadata)
	}
	if value["kind"] == "Status" {
		message, _ := value["message"].(string)
		value["message"] = s.normalText(message)
		if code := value["code"]; code == float64(400) || code == float64(415) || code == float64(404) ||
			code == float64(409) || code == float64(422) && value["details"] != nil {
			delete(value, "message") // says how the request was read, or the same as the causes
		}
		if details, ok := value["details"].(object); ok {
			if uid, ok := details["uid"].(string); ok {
				details["uid"] = s.uid(uid)
			}
			delete(details, "retryAfterSeconds")
			causes, _ := details["causes"].([]any) // the real server has some twice
			for _, cause := range causes {
				if cause.(object)["field"] == "patch" || cause.(object)["reason"] == "FieldManagerConflict" {
					delete(cause.(object), "message") // has the whole object, or a manager
				}
			}
			var once []any
			for _, cause := range causes {
				if !slices.ContainsFunc(once, func(other any) bool { return reflect.DeepEqual(cause, other) }) {
					once = append(once, cause)
				}
			}
			details["causes"] = once
		}
	}
	return value
}

func (s *side) normalMetadata(metadata object) {
	for _, name := range []string{"creationTimestamp", "deletionTimestamp"} {
		if metadata[name] != nil {
			metadata[name] = "T"
		}
	}
	if uid, ok := metadata["uid"].(string); ok {
		metadata["uid"] = s.uid(uid)
	}
	if version, ok := metadata["resourceVersion"].(string); ok {
		metadata["resourceVersion"] = s.version(version)
	}
	finalizers, _ := metadata["finalizers"].([]any)
	slices.SortFunc(finalizers, func(a, b any) int { // the real server shuffles those of a Namespace
		return strings.Compare(fmt.Sprint(a), fmt.Sprint(b))
	})
	managed, _ := metadata["managedFields"].([]any)
	managed = slices.DeleteFunc(managed, func(entry any) bool {
		entry.(object)["time"] = "T"
		return entry.(object)["operation"] != "Apply" // in memory, before-first-apply has them
	})
	if metadata["managedFields"] = managed; len(managed) == 0 {
		delete(metadata, "managedFields")
	}
	slices.SortFunc(managed, func(a, b any) int { // their order is that of the times
		return strings.Compare(fmt.Sprint(a), fmt.Sprint(b))
	})
}

func (s *side) uid(uid string) string {
	i := slices.Index(s.uids, uid)
	if i < 0 {
		i = len(s.uids)
		s.uids = append(s.uids, uid)
	}
	return "uid " + strconv.Itoa(i)
}

// version says how a resourceVersion compares with each that there was before.
func (s *side) version(text string) string {
	version, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return text
	}
	less := 0
	for _, other := range s.versions {
		if other < version {
			less++
		}
	}
	isNew := !slices.Contains(s.versions, version)
	if isNew {
		s.versions = append(s.versions, version)
	}
	return fmt.Sprintf("after %d, new: %v", less, isNew)
}

var numbers = regexp.MustCompile(`\b[0-9]+\b`)

// normalText replaces UIDs and resourceVersions in a message.
func (s *side) normalText(text string) string {
	text = strings.ReplaceAll(text, s.namespace, "$NS")
	for i, uid := range s.uids {
		text = strings.ReplaceAll(text, uid, "uid "+strconv.Itoa(i))
	}
	return numbers.ReplaceAllString(text, "N")
}
