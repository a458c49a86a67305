package lens

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"example.com/sample-controller/internal/testing/must"
)

// tableRow matches a row of the table of the parts in docs/lens.md.
var tableRow = regexp.MustCompile(`(?m)^\| \d \| ([^|]+) \| ([^|]+) \|`)

func TestLegendSaysWhatThePageOfTheLensSays(t *testing.T) {
	p := begin(t)
	text := must.Get(os.ReadFile(root + "docs/lens.md"))(t)
	var want []string
	for _, row := range tableRow.FindAllStringSubmatch(string(text), -1) {
		want = append(want, row[1]+": "+row[2])
	}
	got := mustRead[[]string](t, p, `[...document.querySelectorAll(".legend table:first-child tr")].map(
		(row) => [...row.children].slice(1).map((cell) => cell.textContent).join(": "))`)
	if len(got) != 7 || !slices.Equal(got, want) {
		t.Errorf("the legend says\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}

	p.mustDo(t, chromedp.Focus(chromedp.CSS(".legend summary")), chromedp.KeyEvent(" "))
	p.mustWait(t, `document.querySelector(".legend").open`)
	p.mustDo(t, chromedp.KeyEvent(kb.Escape))
	p.mustWait(t, `!document.querySelector(".legend").open`)
	if mustRead[string](t, p, `lens.one("gate").mode`) != "open" {
		t.Error("the space that has opened the legend has paused the lens, too")
	}
}
