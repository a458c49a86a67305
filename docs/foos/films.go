package foos

import (
	"encoding/json"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"testing"
	"time"

	"example.com/sample-controller/explore"
	"example.com/sample-controller/internal/testing/must"
	"example.com/sample-controller/lens/film"
	"example.com/sample-controller/lens/model"
)

// films are shown by the chapters: a short history after which something is wrong.
var films = map[string]filmed{
	"tutorial/04-queue.md": {"04-deleted.js", "04-queue.js", "TestExplore/Crash/deleted",
		"A Deployment that nobody watches",
		"What the explorer finds in chapter 4: somebody deletes the Deployment."},
	"tutorial/05-owning.md": {"05-released.js", "05-owning.js", "TestExplore/Crash/released",
		"A Deployment that belongs to nobody any more",
		"What the explorer finds in chapter 5: the owner reference is taken off."},
	"tutorial/06-renaming.md": {"06-silent.js", "06-renaming.js", "TestExplore/Crash/create",
		"A Foo that says nothing",
		"What the explorer finds in chapter 6: all is well, and no user can know."},
	"tutorial/07-status.md": {"07-lost.js", "07-status.js", lost,
		"A lost Deployment, and a status that says nothing",
		"What the explorer finds in chapter 7: a watch is silent, and breaks too late."},
	"tutorial/08-errors.md": {"08-lost.js", "08-errors.js", lost,
		"A Deployment that the watch never shows",
		"The explorer's shortest history in which chapter 8's Foo has no Deployment in the end."},
}

const lost = "TestExplore/Event/deleted/deployments-ADDED-x-1/silence-from-here"

// filmed is a film of a case, for the list of recordings. Another one has the code of the program.
type filmed struct{ file, code, of, title, about string }

// expect compares the film with what happens in the case now. With -update, it writes the film.
func (f filmed) expect(t *testing.T, folder string, findings []explore.Finding) {
	t.Helper()
	var shots []explore.Shot
	for _, found := range findings {
		if found.Case != f.of || summary(found.Problem) == otherEnd || found.Problem[0] == '(' {
			continue
		}
		if shots == nil {
			shots = shorten(found.Film)
		}
		shots = append(shots, explore.Shot{At: shots[len(shots)-1].At, What: "wrong", Text: found.Problem})
	}
	if shots == nil {
		t.Fatalf("nothing is wrong in %s", f.of)
	}
	now := film.Record(f.title, f.about, shots)
	code := must.Get(model.ReadRecording(folder + f.code))(t)
	now.Program, now.Code = code.Program, code.Code
	then, err := model.ReadRecording(folder + f.file)
	switch {
	case err == nil && reflect.DeepEqual(says(t, now), says(t, then)) &&
		reflect.DeepEqual(now.Code, then.Code):
	case *update:
		must.Do(t, now.Write(folder+f.file))
	case err != nil:
		t.Error(err)
	default:
		t.Errorf("%s shows\n%q, but now the case has\n%q", f.file, says(t, then), says(t, now))
	}
}

// shorten leaves out the time after the last step in which nothing happens, and names only the
// steps of users.
func shorten(shots []explore.Shot) []explore.Shot {
	var last time.Time
	for _, s := range shots {
		if s.What == "step" {
			last = s.At
		}
	}
	return slices.DeleteFunc(slices.Clone(shots), func(s explore.Shot) bool {
		return s.At.Sub(last) > 5*time.Minute || s.What == "step" &&
			(s.Text == explore.CollectGarbage.Name || s.Text == explore.RollOut.Name)
	})
}

// always matches what does not depend on the order of goroutines.
var always = regexp.MustCompile(`^(You run|Here|The sync of|Another program|In the end)\b`)

// says returns what a recording always says in words.
func says(t *testing.T, r *model.Recording) []string {
	t.Helper()
	texts := map[string]bool{r.Title: true, r.About: true, r.Program: true}
	for _, step := range r.Steps {
		var s struct {
			Set map[string]struct{ Text string }
		}
		must.Do(t, json.Unmarshal(step, &s))
		for _, entity := range s.Set {
			if always.MatchString(entity.Text) {
				texts[entity.Text] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(texts))
}
