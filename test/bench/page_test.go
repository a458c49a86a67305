package main

import (
	"os"
	"strings"
	"testing"

	"example.com/sample-controller/internal/testing/must"
)

func TestPageShowsTheFigures(t *testing.T) {
	text := must.Get(os.ReadFile(page))(t)
	want := must.Get(fill(string(text)))(t)
	if string(text) != want {
		t.Errorf("the tables of %s are not those of the results; 'go -C test/bench run . -draw' "+
			"updates it", page)
	}
	if n := strings.Count(want, "<!-- bench:"); n != len(marked.FindAllString(want, -1)) {
		t.Errorf("one of the %d marks does not match %s", n, marked)
	}
}

func TestUnknownTableIsAnError(t *testing.T) {
	for _, what := range []string{"short nothing", "nothing machine"} {
		if _, err := fill("<!-- bench: " + what + " -->\n<!-- end of bench -->"); err == nil {
			t.Errorf("%s gives no error", what)
		}
	}
}
