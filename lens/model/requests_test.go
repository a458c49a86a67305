package model

import (
	"slices"
	"testing"
	"time"

	"example.com/sample-controller/lens/wire"
)

func TestARequestBelongsToASync(t *testing.T) {
	ownerless := deployment("new", "", "")
	ownerless.Selects = []string{"uid of a"}
	event := &wire.Object{Resource: "events.events.k8s.io", Kind: "Event", Namespace: "default",
		Name: "a.1", Owner: &wire.Owner{Kind: "Foo", Name: "a"}}
	for name, test := range map[string]struct {
		verb, resource, object string
		sent                   *wire.Object
		what, key, place       string
		worker                 bool
	}{
		"its status":           {"update", foos + "/status", "a", foo("a", "1"), "foos/status a", "default/a", "status", true},
		"it is read":           {"get", foos, "a", nil, "foos a", "default/a", "read", true},
		"it is patched":        {"patch", foos, "a", nil, "foos a", "default/a", "update", true},
		"what it owns is made": {"create", deployments, "", deployment("new", "", "a"), "deployments new", "default/a", "create", true},
		"it is made for it":    {"create", deployments, "", ownerless, "deployments new", "default/a", "create", true},
		"what it owns goes":    {"delete", deployments, "web", nil, "deployments web", "default/a", "delete", true},
		"an Event about it":    {"create", "events.events.k8s.io", "", event, "events", "default/a", "create", false},
		"another Foo's":        {"get", foos, "c", nil, "foos c", "default/c", "read", false},
		"something else":       {"get", "configmaps", "x", nil, "configmaps x", "", "read", false},
		"a list":               {"list", "configmaps", "", nil, "configmaps", "", "read", false},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLens(t, foos)
			l.stored("ADDED", foo("a", "2"))
			l.stored("ADDED", deployment("web", "3", "a"))
			l.log(`"Started syncing Foo" foo="default/b"`, started)
			answer := l.request(test.verb, test.resource, test.object, test.sent)

			r := get[Request](l, "request/1")
			equal(t, "what", r.Verb+" "+r.What, test.verb+" "+test.what)
			equal(t, "key", r.Key, test.key)
			equal(t, "state", r.State, "going")
			equal(t, "worker", get[Worker](l, "worker/2").Request == "request/1", test.worker)
			equal(t, "other worker", get[Worker](l, "worker/1").Request, "")
			equal(t, "it is no watch", get[Watch](l, "watch/"+test.resource).State == "", test.resource != foos)
			if test.key != "" {
				s := l.spans("request")[0]
				equal(t, "place", s.Place, test.place)
				equal(t, "has a cause", len(s.Causes) == 1, test.key == "default/a")
			}
			answer(200, "", nil)
			equal(t, "state", get[Request](l, "request/1").State, "answered")
			equal(t, "worker", get[Worker](l, "worker/2").Request, "")
			l.wait(linger + time.Millisecond)
			equal(t, "it goes", get[Request](l, "request/1"), Request{})
		})
	}
}

func TestWhoseRequestIsIt(t *testing.T) {
	l := newSync(t)
	l.request("get", "configmaps", "x", nil)
	equal(t, "of the only sync", get[Request](l, "request/1").Key, "default/a")
	l.log(`"Started syncing Foo" foo="default/b"`)
	l.request("create", deployments, "", deployment("web", "", "b"))(409, "AlreadyExists", nil)
	l.request("get", deployments, "web", nil)(200, "", deployment("web", "3", "a"))
	equal(t, "the read of the sync that asked before", get[Request](l, "request/3").Key, "default/b")
	l.request("create", deployments, "", deployment("web", "", "c")) // its sync is not known yet
	l.request("get", deployments, "web", nil)
	equal(t, "the create", get[Request](l, "request/4").Key, "default/c")
	equal(t, "the read after it", get[Request](l, "request/5").Key, "default/c")
	l.request("create", "configmaps", "", deployment("y", "", ""))(201, "", nil)
	equal(t, "the write of one of two", get[Request](l, "request/6").Key, "")
	l.log(finished)
	equal(t, "it may be that of a", slices.Contains(l.lessons(), "noop"), false)
}

func TestRequestsThatAreNoWorkAreNotShown(t *testing.T) {
	l := newLens(t)
	l.request("update", "leases.coordination.k8s.io", "x", nil)(200, "", nil)
	l.request("get", "", "", nil)(200, "", nil)
	l.request("create", "tokenreviews.authentication.k8s.io", "", nil)(201, "", nil)
	l.request("get", "pods", "x", nil)(200, "", nil)
	equal(t, "requests", l.m.numbers["request"], 1)
}

func TestWhatIsAnswered(t *testing.T) {
	for name, test := range map[string]struct {
		code     int
		reason   string
		injected bool
		lessons  []string
		text     string
	}{
		"ok":         {200, "", false, nil, "The API server answers 200."},
		"conflict":   {409, "Conflict", false, []string{"conflict"}, "The API server answers 409: another program wrote in between."},
		"exists":     {409, "AlreadyExists", false, []string{"taken"}, "The API server answers 409: it exists already."},
		"error":      {500, "InternalError", false, nil, "The API server answers 500."},
		"no answer":  {0, "EOF", false, nil, "Nobody answers that: the connection broke."},
		"held back":  {0, "EOF", false, []string{"timeout"}, "Nobody answers that: the lens held it back, and after 10s the program waits no longer."},
		"a fault":    {500, "", true, nil, "The lens answers 500."},
		"a 409 here": {409, "", true, []string{"conflict"}, "The lens answers 409, as if another program had written in between."},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLens(t)
			l.log(started)
			e := wire.Event{Verb: "update", Resource: deployments, Namespace: "default", Name: "web",
				Object: deployment("web", "1", "a"), Code: test.code, Reason: test.reason, Injected: test.injected}
			l.wire(e, wire.RequestArrived)
			l.wait(10 * time.Second)
			held := name == "held back"
			if !held && !test.injected {
				l.wire(e, wire.RequestPassed)
			}
			l.wire(e, wire.Answered)
			l.log(finished)
			failed := test.code != 200
			equal(t, "failed", l.spans("request")[0].Failed, failed && !held)
			equal(t, "lessons", l.lessons(), test.lessons)
			contains(t, "notes", l.texts(), "The sync of default/a updates deployments web. "+test.text)
			r := get[Request](l, "request/1")
			equal(t, "answer", [4]any{r.Code, r.Reason, r.Injected, r.Held},
				[4]any{test.code, test.reason, test.injected, held})
			l.wait(linger + time.Millisecond)
			equal(t, "what is refused stays", get[Request](l, "request/1") != Request{}, failed)
			l.wait(lingerRefused)
			equal(t, "it goes", get[Request](l, "request/1"), Request{})
		})
	}
}

func TestAProgramWithoutLogSaysSo(t *testing.T) {
	l := newLens(t)
	l.see(Seen{Program: &Program{Command: "go run .", Running: true}})
	equal(t, "state", get[Process](l, "process").State, "starting")
	l.watch(foos)
	l.request("get", foos, "a", nil)(200, "", nil)
	equal(t, "note after a read", get[Process](l, "process").Note, "")
	l.request("update", foos+"/status", "a", foo("a", "2"))(200, "", foo("a", "3"))
	p := get[Process](l, "process")
	equal(t, "it says so", p.Note != "" && !p.HasLog && p.State == "running", true)
	l.log(started) // only the first lines were late
	p = get[Process](l, "process")
	equal(t, "it has a log", p.Note == "" && p.HasLog, true)
}

func TestThePrimaryResource(t *testing.T) {
	for name, test := range map[string]struct {
		watched []string
		log     string
		want    string
	}{
		"the only one":            {[]string{"pods"}, "", "pods"},
		"no built-in":             {[]string{deployments, foos}, "", foos},
		"the built-in with a dot": {[]string{"events.events.k8s.io", "foos.example.com"}, "", "foos.example.com"},
		"as the log says":         {[]string{foos, "pods"}, `"Started syncing pod" pod="default/x"`, "pods"},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLens(t)
			for _, resource := range test.watched {
				l.wire(wire.Event{Verb: "watch", Resource: resource}, wire.RequestArrived)
			}
			l.stored("ADDED", &wire.Object{Resource: "pods", Kind: "Pod"})
			l.log(test.log)
			equal(t, "primary", get[Process](l, "process").Primary, test.want)
		})
	}
}

func TestTheFirstSyncsLinesAreReadLate(t *testing.T) {
	l := newLens(t, foos)
	l.log(`"Starting the workers" count=2`)
	l.event("ADDED", foo("a", "2"))
	created := deployment("web", "", "")
	created.Selects = []string{"uid of a"}
	l.wire(wire.Event{Verb: "create", Resource: deployments, Namespace: "default", Object: created,
		Code: 500, Injected: true}, wire.RequestArrived, wire.Answered)
	l.late(2, started)
	l.log(finished)
	contains(t, "notes", l.texts(), "Worker 1 has finished with default/a.",
		"The sync of default/a creates deployments web. The lens answers 500.")
}

func TestLinesThatAreReadLate(t *testing.T) {
	l := newLens(t, foos)
	l.event("ADDED", foo("a", "2"))
	l.log(started)
	l.at += 10 * time.Millisecond
	// The first sync ends, and the second one begins and writes. Then the lines are read.
	l.request("update", foos+"/status", "a", foo("a", "2"))(200, "", foo("a", "3"))
	l.late(8, finished)
	l.late(8, started)
	l.log(finished)
	equal(t, "lessons", l.lessons(), []string{"noop"}) // of the first one
	syncs := l.spans("sync")
	equal(t, "the write's cause", l.entities[l.spans("request")[0].Causes[0]], Entity(syncs[1]))
	equal(t, "the worker waits for nothing", get[Worker](l, "worker/1").Request, "")
}
