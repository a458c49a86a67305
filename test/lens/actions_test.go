package lens

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/sample-controller/internal/suite/audit"
)

func TestCreatedFooIsFollowedOnItsWay(t *testing.T) {
	p := begin(t)
	mark := p.mark(t)
	p.press(t, "create")
	for _, way := range [][]string{
		{"You run: kubectl .* create", "watch of foos brings example-foo, which is new",
			"lens/example-foo goes into the queue: Foo added", `Worker \d+ starts to sync lens/example-foo`,
			"creates deployments example-foo"},
		{`Worker \d+ starts to sync`, "watch of deployments brings example-foo, which is new",
			"lens/example-foo .*Deployment added", `Worker \d+ starts to sync`,
			"updates foos/status example-foo"},
	} {
		p.says(t, mark, way...)
		text := mustRead[string](t, p, `document.querySelector("[role=log]").innerText`)
		if !regexp.MustCompile("(?s)" + strings.Join(way, ".*")).MatchString(text) {
			t.Errorf("the list does not say, in this order: %q", way)
		}
	}
	p.settle(t)
	p.checkTimeLine(t)
	p.mustWait(t, `/\d+ workers, \d+ idle/.test(document.querySelector(".picture").textContent)`)
	p.shoot(t, "create")
}

// bar is a bar of the time line, with the arrows that lead from it to its effects.
type bar struct {
	Label   string
	Begin   float64
	Effects []string
}

const readBars = `Object.fromEntries([...document.querySelectorAll(".timeline .bar")].map((e) =>
	[e.dataset.id, {Label: e.getAttribute("aria-label"),
		Begin: Number(e.querySelector("rect").getAttribute("x")),
		Effects: [...document.querySelectorAll(".timeline [data-cause='" + e.dataset.id + "']")].map(
			(arrow) => arrow.dataset.effect)}]))`

// checkTimeLine follows the way of a new Foo in the time line.
func (p *page) checkTimeLine(t *testing.T) {
	t.Helper()
	way := []string{"user: .*create -f", "watch: ADDED foos", "queue: Foo added", "sync: ",
		"request: create deployments", "watch: ADDED deployments", "queue: Deployment added", "sync: "}
	problem := follow(mustRead[map[string]bar](t, p, readBars), way)
	for range 10 {
		if problem == "" {
			return
		}
		p.mustDo(t, chromedp.Click(chromedp.CSS("[aria-label='Zoom out']"))) // it began longer ago
		problem = follow(mustRead[map[string]bar](t, p, readBars), way)
	}
	t.Error(problem)
}

// follow returns "" if arrows lead along way, and never back in time. Else it returns the problem.
func follow(bars map[string]bar, way []string) (problem string) {
	at := slices.Collect(maps.Keys(bars))
	at = slices.DeleteFunc(at, func(id string) bool { return !regexp.MustCompile(way[0]).MatchString(bars[id].Label) })
	for i, want := range way[1:] {
		var next, others []string
		for _, cause := range at {
			for _, effect := range bars[cause].Effects {
				switch to := bars[effect]; {
				case !strings.HasPrefix(to.Label, want):
					others = append(others, to.Label)
				case to.Begin < bars[cause].Begin:
					return fmt.Sprintf("%v begins before its cause %v", to, bars[cause])
				default:
					next = append(next, effect)
				}
			}
		}
		if len(next) == 0 {
			return fmt.Sprintf("no arrow leads from %q to %q, but to %q", way[i], want, others)
		}
		at = next
	}
	return ""
}

func TestPartShowsItsCode(t *testing.T) {
	p := begin(t)
	for part, name := range map[string]string{
		"workers": "syncHandler", "handlers": "handleObject", "queue": "processNextWorkItem",
	} {
		p.mustDo(t, chromedp.Click(chromedp.CSS("[data-part="+part+"] .title")))
		p.mustWait(t, fmt.Sprintf(`document.querySelector(".code .file").innerText.includes(%q)`, name))
		var file string
		var line int
		where := mustRead[string](t, p, `document.querySelector(".code .file").innerText`)
		if _, err := fmt.Sscanf(strings.Replace(where, ":", " ", 1), "%s %d", &file, &line); err != nil {
			t.Fatalf("%q: %v", where, err)
		}
		source, err := os.ReadFile(filepath.Join(root, file))
		if err != nil {
			t.Fatal(err)
		}
		text := mustRead[string](t, p, `document.querySelector(".code pre").textContent`)
		lines := strings.SplitAfter(string(source), "\n")
		if there := strings.Join(lines[min(line-1, len(lines)):], ""); !strings.HasPrefix(there, text) ||
			!strings.Contains(text, ") "+name+"(") {
			t.Errorf("%s: the page shows what is not at %s:\n%s", part, where, text)
		}
	}
}

func TestPageShowsWhatIsTrue(t *testing.T) {
	p := begin(t)
	logEnd, err := audit.End(controlPlane.AuditLog())
	if err != nil {
		t.Fatal(err)
	}
	first := mustRead[int](t, p, `Math.max(0, ...[...lens.of("span").keys()].map((id) => id.split("/")[1]))`)
	for _, action := range []string{"create", "scale", "scale-deployment", "rename", "delete"} {
		p.press(t, action)
		p.settle(t)
		p.shoot(t, action)
	}
	p.until(t, isEmpty)
	p.settle(t)
	p.until(t, func() error { // so does the audit log
		requests, _, err := audit.Read(controlPlane.AuditLog(), logEnd, "")
		if err != nil {
			return err
		}
		noted := map[string]int{}
		for _, r := range requests {
			own := strings.HasPrefix(r.UserAgent, "sample-controller/")
			if own && !r.IsWatch() && r.ObjectRef.Resource != "" {
				noted[r.What()]++
			}
		}
		shown := map[string]int{}
		for _, label := range mustRead[[]string](t, p, fmt.Sprintf(
			`[...lens.of("span")].filter(([id, span]) => id.split("/")[1] > %d && span.what === "request")
				.map(([, span]) => span.label)`, first)) {
			shown[strings.Join(strings.Fields(label)[:2], " ")]++
		}
		if len(noted) == 0 || !maps.Equal(noted, shown) {
			return fmt.Errorf("the page shows the requests %v, and the audit log has %v", shown, noted)
		}
		return nil
	})
}

// hasDeployment reports whether the example's Deployment is in the API server.
func hasDeployment(t *testing.T) bool {
	t.Helper()
	_, err := kubeClient.AppsV1().Deployments(namespace).Get(t.Context(), "example-foo", metav1.GetOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		t.Fatal(err)
	}
	return err == nil
}

// key presses a key while no button has the focus.
func (p *page) key(t *testing.T, key string) {
	t.Helper()
	p.mustDo(t, chromedp.Evaluate[chromedp.Void](`document.activeElement.blur()`), chromedp.KeyEvent(key))
}

// The keys are those of docs/lens.md.
func TestTimeIsStopped(t *testing.T) {
	p := begin(t)
	const heldEvent = `document.querySelector(".flight.held[aria-label*='ADDED foos']")`
	const heldCreate = `document.querySelector(".request.held[aria-label*='create deployments']")`
	p.key(t, " ")
	p.mustWait(t, `document.querySelector("[role=status]").innerText.includes("Paused")`)
	p.press(t, "create")
	p.mustWait(t, heldEvent)
	p.mustWait(t, `document.querySelector("[role=status]").innerText.includes("1 thing")`)
	p.mustWait(t, `document.querySelector("[data-layer=watches]").textContent.includes("foos, 1 event behind")`)
	p.shoot(t, "paused-event")

	p.key(t, kb.ArrowRight)
	p.mustWait(t, heldCreate)
	p.mustWait(t, "!"+heldEvent)
	p.shoot(t, "paused-request")
	if hasDeployment(t) {
		t.Error("there is a Deployment, but the page shows that its create is held")
	}
	p.key(t, kb.ArrowRight)
	p.until(t, func() error {
		if !hasDeployment(t) {
			return fmt.Errorf("no Deployment was created")
		}
		return nil
	})
	p.mustWait(t, "!"+heldCreate)
	p.key(t, " ")
	p.mustWait(t, `!document.querySelector("[role=status]").innerText.includes("Paused")`)
	p.settle(t)
}

func TestFaultsAreShownAndOvercome(t *testing.T) {
	p := begin(t)
	p.press(t, "create")
	p.settle(t)
	p.mustDo(t, chromedp.Evaluate[chromedp.Void](`window.conflict = {shown: 0, alone: 0};
		(function look() {
			const {classList, textContent} = parts.requests.lesson;
			conflict.now = classList.contains("now") && textContent === "conflict";
			if (conflict.now) conflict.shown++;
			if (conflict.now && !document.querySelector(".request.warn[data-id]")) conflict.alone++;
			requestAnimationFrame(look);
		})()`))
	for _, test := range []struct{ fault, then, lessons string }{
		{"conflict", "scale", "conflict backoff"},
		{"error", "delete-deployment", "backoff"},
		{"cut-deployments", "scale-deployment", "cut"},
		{"hold-deployments", "scale-deployment", "held"},
		{"expire-foos", "scale-deployment", "expired"},
	} {
		mark := p.mark(t)
		p.press(t, test.fault)
		p.press(t, test.then)
		for lesson := range strings.FieldsSeq(test.lessons) {
			p.mustWait(t, fmt.Sprintf(`[...document.querySelectorAll("[role=log] [data-lesson=%s]")].some(
				(note) => note.dataset.id.split("/")[1] > %d)`, lesson, mark))
		}
		p.shoot(t, "fault-"+test.fault)
		p.settle(t)
		p.until(t, func() error { return hasReplicas(t, 3) })
	}
	p.mustWait(t, "conflict.shown > 0 && !conflict.now")
	if alone := mustRead[int](t, p, "conflict.alone"); alone > 0 {
		t.Errorf("in %d frames, the label says conflict, and the request is gone", alone)
	}
}

// hasReplicas returns nil if the example's Deployment has that many replicas.
func hasReplicas(t *testing.T, want int32) error {
	d, err := kubeClient.AppsV1().Deployments(namespace).Get(t.Context(), "example-foo", metav1.GetOptions{})
	if err == nil && *d.Spec.Replicas != want {
		err = fmt.Errorf("the Deployment has %d replicas, want %d", *d.Spec.Replicas, want)
	}
	return err
}

func TestWhatIsGoneIsSaidAndComesBack(t *testing.T) {
	p := begin(t)
	p.press(t, "create")
	p.settle(t)
	for _, test := range []struct{ end, says, begin string }{
		{"kill", "The program has exited", "start"},
		{"kill-server", "The API server does not answer", "start-server"},
	} {
		status := fmt.Sprintf(`document.querySelector("[role=status]").innerText.includes(%q)`, test.says)
		p.press(t, test.end)
		p.mustWait(t, status)
		p.shoot(t, test.end)
		if test.end == "kill" {
			p.mustWait(t, `parts.queue.text.textContent.includes("gone") &&
				getComputedStyle(document.querySelector(".flow")).opacity < 1 &&
				!["handlers", "slots", "flights", "keys", "requests"].some((layer) =>
					document.querySelector("[data-layer=" + layer + "] [data-id]"))`)
		}
		p.press(t, test.begin)
		p.mustWait(t, "!"+status)
		p.settle(t)
	}
	p.press(t, "scale")
	p.until(t, func() error { return hasReplicas(t, 3) })
	p.settle(t)
}

// A program that begins another watch gets buttons for it. The others may be in use.
func TestOtherWatchLeavesTheButtonsInUse(t *testing.T) {
	const ids = `[...document.querySelectorAll(".actions [data-action]")].map((b) => b.dataset.action)`
	p := begin(t)
	p.press(t, "cut-foos")
	want := mustRead[[]string](t, p, ids)
	p.mustDo(t, chromedp.Evaluate[chromedp.Void](`{ // as if another watch had been there before
		const other = document.querySelector("[data-action=hold-foos]");
		other.dataset.action = "hold-others";
		window.inUse = [...document.querySelectorAll(".actions *")].filter((e) => e !== other);
		actionsFor = -1;
		lens.draw("actions");
	}`))
	p.mustWait(t, `!document.querySelector("[data-action=hold-others]")`)
	if got := mustRead[[]string](t, p, ids); !slices.Equal(got, want) {
		t.Errorf("the buttons are %q, want %q", got, want)
	}
	anew := mustRead[[]string](t, p,
		`inUse.filter((e) => !e.isConnected).map((e) => e.dataset.action ?? e.localName)`)
	if len(anew) > 0 {
		t.Errorf("the page has made these anew: %q", anew)
	}
	open := mustRead[[]string](t, p,
		`[...document.querySelectorAll(".actions [open] > summary")].map((group) => group.innerText)`)
	if want := []string{"Break something"}; !slices.Equal(open, want) {
		t.Errorf("the open groups are %q, want that of the button: %q", open, want)
	}
	p.settle(t)
}

func TestNothingMovesIfThatIsNotWanted(t *testing.T) {
	p := begin(t)
	for _, preference := range []string{"no-preference", "reduce"} {
		p.emulate(t, "prefers-reduced-motion", preference)
		p.mustWait(t, "document.getAnimations().length === 0") // what moved before
		p.mustDo(t, chromedp.Evaluate[chromedp.Void](`window.moved = 0; window.watching = true;
			(function look() {
				moved = Math.max(moved, document.getAnimations().length);
				if (watching) requestAnimationFrame(look);
			})()`))
		p.press(t, "create")
		p.settle(t)
		p.press(t, "delete")
		p.settle(t)
		moved := mustRead[int](t, p, `watching = false, moved`)
		if (moved > 0) != (preference == "no-preference") {
			t.Errorf("%s: %d things have moved at a time", preference, moved)
		}
	}
	p.emulate(t, "", "")
}
