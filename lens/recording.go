package main

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/yaml"

	"example.com/sample-controller/lens/model"
)

const (
	// quietInterval is how often a scenario looks whether the program is quiet. It has to be so
	// several times in a row, because what happens next may be on its way.
	quietInterval = 100 * time.Millisecond
	quietTimes    = 5
	// sceneTimeout limits how long a scene may take.
	sceneTimeout = 3 * time.Minute
)

// scenario is what a recording shows.
type scenario struct {
	Name   string  `json:"name"`
	Title  string  `json:"title"`
	About  string  `json:"about"`
	Scenes []scene `json:"scenes"`
}

type scene struct {
	Do    string `json:"do"`    // the ID of an action
	Until string `json:"until"` // what kubectl waits for, because the action is to lead to it
	Fails bool   `json:"fails"` // the action is to fail
}

//go:embed scenarios.yaml
var scenariosFile []byte

// readScenarios returns the scenarios that are in the file.
func readScenarios() (all []scenario, err error) {
	return all, yaml.UnmarshalStrict(scenariosFile, &all)
}

// findScenario returns the scenario of that name.
func findScenario(name string) (*scenario, error) {
	all, err := readScenarios()
	i := slices.IndexFunc(all, func(script scenario) bool { return script.Name == name })
	if err == nil && i < 0 {
		err = fmt.Errorf("there is no scenario %q", name)
	}
	if err != nil {
		return nil, err
	}
	return &all[i], nil
}

// play does what a scenario says.
func (s *session) play(ctx context.Context, script *scenario) error {
	scenes := append([]scene{{}}, script.Scenes...) // at first, the program has to start
	for _, scene := range scenes {
		fmt.Fprintf(os.Stderr, "lens: %s: %s\n", script.Name, scene.Do)
		ctx, cancel := context.WithTimeout(ctx, sceneTimeout)
		err := s.playScene(ctx, scene)
		cancel()
		if err != nil {
			return fmt.Errorf("%s: %s: %w", script.Name, scene.Do, err)
		}
	}
	return nil
}

func (s *session) playScene(ctx context.Context, scene scene) error {
	if scene.Do != "" {
		a, ok := s.action(scene.Do)
		if !ok {
			return errors.New("there is no such action for this program")
		}
		if done := s.do(ctx, a); (done.Error != "") != scene.Fails {
			return fmt.Errorf("got error %q, and it says: %s", done.Error, done.Output)
		}
	}
	if scene.Until != "" {
		until, err := s.inNamespace(ctx, "kubectl wait --timeout=2m "+scene.Until, &result{})
		if err != nil {
			return err
		}
		if output, err := s.shell(ctx, until); err != nil {
			return fmt.Errorf("%s: %w: %s", until, err, output)
		}
	}
	return s.lens.waitQuiet(ctx)
}

// waitQuiet waits until the program has nothing to do.
func (l *lens) waitQuiet(ctx context.Context) error {
	busy, times := "", 0
	isQuiet := func(context.Context) (bool, error) {
		times++
		if busy = findBusy(l.all()); busy != "" {
			times = 0
		}
		return times == quietTimes, nil
	}
	if err := wait.PollUntilContextCancel(ctx, quietInterval, true, isQuiet); err != nil {
		return fmt.Errorf("the program is not quiet: %s: %w", busy, err)
	}
	return nil
}

// findBusy returns the ID of something in a picture that is under way: a request, a watch event, a
// key that is not delayed. Without a program or an API server, nothing is.
func findBusy(picture map[string]model.Entity) string {
	process, _ := picture["process"].(model.Process)
	server, _ := picture["server"].(model.Server)
	switch {
	case process.State == "exited", server.State == "down":
		return ""
	case process.State != "running":
		return "process"
	}
	watches := 0
	for id, entity := range picture {
		busy := false
		switch e := entity.(type) {
		case model.Watch:
			watches++
			busy = e.State != "open" || e.Behind > 0
		case model.Flight:
			busy = e.State == "held"
		case model.Key:
			busy = e.State != "delayed" || e.Dirty
		case model.Request:
			busy = e.State != "answered"
		}
		if busy {
			return id
		}
	}
	if watches == 0 {
		return "the program watches nothing yet"
	}
	return ""
}

// recording returns all that was seen so far.
func (s *session) recording(title, about string) *model.Recording {
	code := map[string]*model.Code{}
	for place := range functions {
		if found, err := findCode(s.files, s.source, place); err == nil && found != nil {
			code[place] = found
		}
	}
	l := s.lens
	l.show()
	l.mu.Lock()
	defer l.mu.Unlock()
	r := &model.Recording{
		Title: title, About: about, Program: s.source, Start: l.start,
		Seen: slices.Clone(l.seen), Code: code,
	}
	_, r.Steps, _ = r.Again() // it reads what the lens has written
	return r
}
