package main

import (
	"bytes"
	"cmp"
	"context"
	_ "embed"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/yaml"

	"example.com/sample-controller/lens/model"
)

const (
	// ownNamespace is where kubectl works, unless the program watches only another namespace.
	ownNamespace = "lens"
	// holdTime is how long a watch is held.
	holdTime = 5 * time.Second
	// actionTimeout limits what a button does.
	actionTimeout = 5 * time.Minute
	// namespaceNote is a file in the lens's folder, which tells cleanUp what namespace was created.
	namespaceNote = "namespace"
)

// action is something that a button of the page does. actions.yaml explains the fields.
type action struct {
	ID       string   `json:"id"`
	Title    string   `json:"title"`
	Group    string   `json:"group"`
	Explain  string   `json:"explain"`
	Does     string   `json:"does,omitempty"`
	Commands []string `json:"commands,omitempty"`

	who   string // under which name it stands in the file
	watch string // the resource whose watch it breaks
}

//go:embed actions.yaml
var actionsFile []byte

// readActions returns the actions that are in the file.
func readActions(burst int) (all []action, err error) {
	text := bytes.ReplaceAll(actionsFile, []byte("BURST"), []byte(strconv.Itoa(burst)))
	var table map[string][]action
	if err := yaml.UnmarshalStrict(text, &table); err != nil {
		return nil, err
	}
	for _, who := range []string{"foos", "plain", "deployments", "all", "watches"} {
		for _, a := range table[who] {
			a.who = who
			all = append(all, a)
		}
	}
	return all, nil
}

// actions returns what can be done now. As long as the program watches nothing, it supposes Foos.
func (s *session) actions() (all []action) {
	watching := s.watching()
	has := func(name string) bool {
		return slices.ContainsFunc(watching, func(r schema.GroupResource) bool {
			return r.Resource == name
		})
	}
	foos := len(watching) == 0 || has("foos")
	fits := map[string]bool{
		"foos": foos, "deployments": foos || has("deployments"), "plain": !foos && has("deployments"),
		"all": true,
	}
	for _, a := range s.table {
		a.Group = "Do something"
		if a.Does != "" {
			a.Group = "Break something"
		}
		if fits[a.who] {
			all = append(all, a)
		}
		if a.who == "watches" {
			for _, resource := range watching {
				all = append(all, a.ofWatch(resource))
			}
		}
	}
	return all
}

// ofWatch returns a as it is for the watch of that resource.
func (a action) ofWatch(resource schema.GroupResource) action {
	a.watch = resource.String()
	for _, text := range []*string{&a.ID, &a.Title} {
		*text = strings.ReplaceAll(*text, "WATCH", resource.Resource)
	}
	return a
}

// action returns the action of that ID, if it can be done now.
func (s *session) action(id string) (action, bool) {
	for _, a := range s.actions() {
		if a.ID == id {
			return a, true
		}
	}
	return action{}, false
}

// result is what an action has done.
type result struct {
	Commands []string `json:"commands"`
	Output   string   `json:"output"`
	Error    string   `json:"error"`
}

// do runs an action to its end, even if nobody waits for it any more.
func (s *session) do(ctx context.Context, a action) result {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), actionTimeout)
	defer cancel()
	r := result{Commands: []string{}}
	err := s.breaks(a)
	for _, command := range a.Commands {
		if err == nil {
			command, err = s.inNamespace(ctx, command, &r)
		}
		if err == nil {
			err = s.asUser(ctx, command, &r)
		}
	}
	if err != nil {
		r.Error = err.Error()
	}
	return r
}

// breaks does what the lens does itself.
func (s *session) breaks(a action) error {
	switch a.Does {
	case "hold":
		s.proxy.HoldWatch(a.watch, holdTime)
	case "cut":
		s.proxy.CutWatches(a.watch)
	case "expire":
		s.proxy.ExpireWatches(a.watch)
	case "conflict":
		s.proxy.FailNextWrite(http.StatusConflict)
	case "error":
		s.proxy.FailNextWrite(http.StatusInternalServerError)
	case "kill":
		return s.program.signal(syscall.SIGKILL)
	case "stop":
		return s.program.signal(syscall.SIGTERM)
	case "start":
		return s.program.start()
	}
	return nil
}

// asUser runs a command as the user does.
func (s *session) asUser(ctx context.Context, command string, r *result) error {
	r.Commands = append(r.Commands, command)
	s.lens.see(model.Seen{User: &model.User{Command: command}})
	output, err := s.shell(ctx, command)
	r.Output += output
	return err
}

// inNamespace tells kubectl in which namespace to work: in that which the program watches or, if it
// watches several, in that of the lens, which it creates if it is not there.
func (s *session) inNamespace(ctx context.Context, command string, r *result) (string, error) {
	const kubectl = "kubectl "
	if !strings.Contains(command, kubectl) {
		return command, nil
	}
	namespace := s.onlyNamespace()
	if namespace == "" {
		namespace = ownNamespace
		if err := s.createNamespace(ctx, r); err != nil {
			return "", fmt.Errorf("creating the namespace %s: %w", ownNamespace, err)
		}
	}
	return strings.ReplaceAll(command, kubectl, kubectl+"-n "+namespace+" "), nil
}

// createNamespace creates the namespace of the lens, unless it is there.
func (s *session) createNamespace(ctx context.Context, r *result) error {
	s.creating.Lock()
	defer s.creating.Unlock()
	namespaces := s.client.Resource(schema.GroupVersionResource{Version: "v1", Resource: "namespaces"})
	// Another lens may just be removing it.
	isStable := func(ctx context.Context) (bool, error) {
		found, err := namespaces.Get(ctx, ownNamespace, metav1.GetOptions{})
		return err != nil || found.GetDeletionTimestamp() == nil, err
	}
	err := wait.PollUntilContextTimeout(ctx, quietInterval, time.Minute, true, isStable)
	if !apierrors.IsNotFound(err) {
		return err
	}
	if err := s.noteNamespace(ownNamespace); err != nil {
		return err
	}
	err = s.asUser(ctx, "kubectl create namespace "+ownNamespace, r)
	if err != nil && (strings.Contains(r.Output, "AlreadyExists") || strings.Contains(r.Output, "Forbidden")) {
		return cmp.Or(s.noteNamespace(""), err) // it is not ours
	}
	return err
}
