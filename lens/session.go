package main

import (
	"context"
	"crypto/rand"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"

	"example.com/sample-controller/lens/model"
	"example.com/sample-controller/lens/wire"
)

// stopTimeout is how long the program may take to end after a signal.
const stopTimeout = 15 * time.Second

// awaitExit waits until exited is closed, which says that the program has ended.
func awaitExit(exited <-chan struct{}) error {
	select {
	case <-exited:
		return nil
	case <-time.After(stopTimeout):
		return fmt.Errorf("the program has not ended within %v", stopTimeout)
	}
}

// options holds what the command line sets.
type options struct {
	root       string
	program    string
	command    []string
	burst      int
	anyCluster bool
	scenario   *scenario
	record     string
}

// session watches a program on a cluster.
type session struct {
	root, source string // the repository, and the folder of the program's source in it
	files        fs.FS  // of the repository
	folder       string // for files of this session
	token        string // who knows it may use the page and the proxy
	cluster      *cluster
	client       dynamic.Interface
	table        []action
	lens         *lens
	proxy        *wire.Proxy
	program      *program
	follow       func(watched) // set by start

	creating sync.Mutex // the namespace
	mu       sync.Mutex
	watches  []watched // what the program watches, or has watched
}

// newSession prepares a session of p. It makes no request and starts nothing.
func newSession(o *options, c *cluster, folder string, p *program) (*session, error) {
	s := &session{
		root: o.root, source: o.program, files: os.DirFS(o.root), folder: folder, token: rand.Text(),
		cluster: c, program: p, lens: newLens(),
	}
	s.lens.records = o.record != ""
	p.secret = "/" + s.token
	p.logged = func(line string) { s.lens.see(model.Seen{Log: line}) }
	p.changed = func(change model.Program) { s.lens.see(model.Seen{Program: &change}) }
	var err error
	if s.table, err = readActions(o.burst); err != nil {
		return nil, err
	}
	if s.client, err = dynamic.NewForConfig(c.config); err != nil {
		return nil, err
	}
	s.proxy, err = wire.New(c.config, s.observe)
	return s, err
}

// observe sees what has happened on the wire. What the program watches, the lens follows, too.
func (s *session) observe(e wire.Event) {
	s.lens.see(model.Seen{Wire: &e})
	if w, ok := watchOf(&e); ok && s.addWatch(w) {
		s.follow(w)
	}
}

// start starts the proxy and then the program, and looks at the API server until ctx is done. end
// ends the program and the proxy.
func (s *session) start(ctx context.Context) (end func(), err error) {
	config := rest.CopyConfig(s.cluster.config)
	config.NegotiatedSerializer = scheme.Codecs
	asker, err := rest.UnversionedRESTClientFor(config)
	if err != nil {
		return nil, err
	}
	endProxy, err := s.connect()
	if err != nil {
		return nil, err
	}
	s.follow = func(w watched) { go s.lens.follow(ctx, s.client, w) }
	end = func() {
		s.proxy.Open() // the program may wait for something that is held
		s.program.stop()
		endProxy()
	}
	go s.lens.askServer(ctx, asker, config.Host)
	go wait.UntilWithContext(ctx, func(context.Context) { s.lens.see(model.Seen{}) }, tick)

	if err = s.program.start(); err != nil {
		end()
	}
	return end, err
}

// addWatch returns false if it knows that watch already.
func (s *session) addWatch(w watched) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if slices.Contains(s.watches, w) {
		return false
	}
	s.watches = append(s.watches, w)
	return true
}

// watching returns the resources that the program watches.
func (s *session) watching() (resources []schema.GroupResource) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, w := range s.watches {
		if resource := w.resource.GroupResource(); !slices.Contains(resources, resource) {
			resources = append(resources, resource)
		}
	}
	return resources
}

// onlyNamespace returns the namespace in which the program watches, or "" if there are several.
func (s *session) onlyNamespace() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.watches) == 0 || slices.ContainsFunc(s.watches, func(w watched) bool {
		return w.namespace != s.watches[0].namespace
	}) {
		return ""
	}
	return s.watches[0].namespace
}
