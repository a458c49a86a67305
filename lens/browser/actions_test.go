package browser

import (
	"context"
	"fmt"
	"maps"
	"regexp"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/sample-controller/internal/testing/must"
	"example.com/sample-controller/internal/testing/suite/audit"
)

// says waits until the list of what happens says something new: what it has said before is in mark.
func (p *page) says(t *testing.T, mark int, wants ...string) {
	t.Helper()
	for _, want := range wants {
		p.mustWait(t, fmt.Sprintf(`[...document.querySelectorAll("[role=log] [data-id]")].some(
			(note) => note.dataset.id.split("/")[1] > %d && new RegExp(%q).test(note.innerText))`, mark, want))
	}
}

// mark returns the number of the last entry in the list of what happens.
func (p *page) mark(t *testing.T) int {
	t.Helper()
	return mustRead[int](t, p, `Math.max(0, ...[...document.querySelectorAll("[role=log] [data-id]")].map(
		(note) => note.dataset.id.split("/")[1]))`)
}

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
	p.mustDo(t, chromedp.Evaluate[chromedp.Void](`lens.select("lens/example-foo"); zoom(100); undefined`))
	p.mustWait(t, `[...document.querySelectorAll(".timeline [data-cause]")].some(({ dataset }) =>
		[dataset.cause, dataset.effect].map((id) => lens.one(id).label).join() ===
			"create deployments example-foo,ADDED deployments example-foo")`)
	p.mustDo(t, chromedp.Evaluate[chromedp.Void](`lens.select("")`))
	p.mustWait(t, `/\d+ workers, \d+ idle/.test(document.querySelector(".picture").textContent)`)
	p.mustDo(t, chromedp.Click(chromedp.CSS("[data-part=handlers] .title")))
	p.mustWait(t, `document.querySelector(".code .file").innerText.endsWith(" addEventHandlers")`)
}

func TestPageShowsWhatIsTrue(t *testing.T) {
	p := begin(t)
	logEnd := must.Get(audit.End(controlPlane.AuditLog()))(t)
	first := mustRead[int](t, p, `Math.max(0, ...[...lens.of("span").keys()].map((id) => id.split("/")[1]))`)
	for _, action := range []string{"create", "scale", "scale-deployment", "rename", "delete"} {
		p.press(t, action)
		p.settle(t)
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

func hasReplicas(want int32) error {
	d, err := kubeClient.AppsV1().Deployments(namespace).Get(context.Background(), "example-foo", metav1.GetOptions{})
	if err == nil && *d.Spec.Replicas != want {
		err = fmt.Errorf("the Deployment has %d replicas, want %d", *d.Spec.Replicas, want)
	}
	return err
}

// key presses a key while no button has the focus.
func (p *page) key(t *testing.T, key string) {
	t.Helper()
	p.mustDo(t, chromedp.Evaluate[chromedp.Void](`document.activeElement.blur()`), chromedp.KeyEvent(key))
}

func TestFirstFooIsGuided(t *testing.T) {
	p := begin(t)
	p.press(t, "create")
	p.mustDo(t, chromedp.Reload())
	p.mustWait(t, `lens.one("gate").mode === "open"`)
	p.mustDo(t, chromedp.Click(chromedp.JSPath(byText("Slow"))))
	p.mustWait(t, `lens.one("gate").mode === "slow" && document.querySelector("[data-action=create]")`)
	p.mustDo(t, chromedp.Click(chromedp.CSS("[data-action=create]")))
	p.mustWait(t, `document.querySelector(".output.failed")?.innerText.includes("already exists") &&
		document.querySelector(".explained").innerText.startsWith("The command failed") &&
		lens.one("gate").mode === "slow" && !document.querySelector("[data-action=create]").disabled`)
	p.press(t, "delete")
	p.until(t, isEmpty)
	p.settle(t)
	p.mustDo(t, chromedp.Evaluate[chromedp.Void](`var passed = false, realFetch = fetch; fetch = (url, ...more) => {
		passed ||= url === "gate/step"; return realFetch(url, ...more); }
		var held; lens.drawers.push(() => { if (guided === 7) held ??=
			[...lens.of("request").values()].some((request) => request.state === "held"); })`))
	p.press(t, "create")
	for i, shown := range [][2]string{{"server", "newDeployment"}, {"watches", "newInformerFactories"},
		{"caches", "newInformerFactories"}, {"handlers", "addEventHandlers"}, {"queue", "processNextWorkItem"},
		{"workers", "syncHandler"}, {"requests", "createDeployment"}} {
		p.mustWait(t, fmt.Sprintf(`(%[3]d > 6 || !passed) && document.querySelector(".guided").dataset.part === %[1]q &&
			codePlace === parts[%[1]q].place && document.querySelector(".code .file").innerText.endsWith(" %[2]s") &&
			document.querySelector(".explained").innerText.startsWith("%[3]d of 7")`, shown[0], shown[1], i+1))
		p.mustDo(t, chromedp.Click(chromedp.JSPath(byText("Next"))))
	}
	p.mustWait(t, `lens.one("gate").mode === "slow" && !document.querySelector(".guided") &&
		document.querySelector(".explained").innerText.startsWith("The tour is over")`)
	if !mustRead[bool](t, p, "held") {
		t.Error("part 7 was explained before there was a request to look at")
	}
	p.settle(t)
}

// The keys are those of docs/lens.md.
func TestTimeIsStopped(t *testing.T) {
	p := begin(t)
	const heldEvent = `document.querySelector(".flight.held[aria-label*='ADDED foos']")`
	const heldCreate = `document.querySelector(".request.held[aria-label*='create deployments']")`
	p.key(t, " ")
	p.mustWait(t, `document.querySelector("[role=status]").innerText.includes("Paused")`)
	mark := p.mark(t)
	p.press(t, "create")
	p.mustWait(t, heldEvent)
	p.mustWait(t, `[...document.querySelectorAll(".bar.watch")].some((bar) =>
		/ADDED foos.*, [\d.]+ s$/.test(bar.getAttribute("aria-label")))`) // its bar grows
	p.mustWait(t, `document.querySelector("[role=status]").innerText.includes("1 thing")`)
	p.mustWait(t, `document.querySelector("[data-layer=watches]").textContent.includes("foos, 1 event behind")`)

	p.key(t, kb.ArrowRight)
	p.mustWait(t, heldCreate)
	p.mustWait(t, `document.querySelector(".request.timeout[aria-label*='create deployments']")`) // after 10 s
	p.says(t, mark, "creates deployments example-foo. Nobody answers that: the lens held it back")
	p.mustWait(t, heldCreate) // the next try
	p.mustWait(t, "!"+heldEvent)
	if err := hasReplicas(1); !apierrors.IsNotFound(err) {
		t.Errorf("the page shows that the create of the Deployment is held, but: %v", err)
	}
	p.key(t, kb.ArrowRight)
	p.until(t, func() error { return hasReplicas(1) })
	p.mustWait(t, "!"+heldCreate)
	p.until(t, func() error {
		p.key(t, kb.ArrowRight)
		said := mustRead[string](t, p, `document.querySelector("[role=status]").innerText`)
		if !strings.Contains(said, "nothing to step") {
			return fmt.Errorf("after each step: %s", said)
		}
		return nil
	})
	p.key(t, " ")
	p.mustWait(t, `!document.querySelector("[role=status]").innerText.includes("Paused")`)
	p.settle(t)
}

func TestFaultsAreShownAndOvercome(t *testing.T) {
	p := begin(t)
	p.press(t, "create")
	p.settle(t)
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
		p.settle(t)
		p.until(t, func() error { return hasReplicas(3) })
	}
}

func TestWhatIsGoneIsSaidAndComesBack(t *testing.T) {
	p := begin(t)
	p.press(t, "create")
	p.settle(t)
	const status = `document.querySelector("[role=status]").innerText`
	const exited, silent = status + `.includes("The program has exited")`,
		status + `.includes("The API server does not answer")`
	p.press(t, "kill")
	p.mustWait(t, exited)
	p.mustWait(t, `parts.queue.text.textContent.includes("gone") &&
		getComputedStyle(document.querySelector(".flow")).opacity < 1 &&
		!["handlers", "slots", "flights", "keys", "requests"].some((layer) =>
			document.querySelector("[data-layer=" + layer + "] [data-id]"))`)
	p.press(t, "start")
	p.mustWait(t, "!"+exited)
	p.settle(t)
	must.Do(t, controlPlane.Kill("kube-apiserver"))
	p.mustWait(t, silent)
	must.Do(t, controlPlane.Mend())
	p.mustWait(t, "!"+silent)
	p.settle(t)
	p.press(t, "scale")
	p.until(t, func() error { return hasReplicas(3) })
	p.settle(t)
}

func TestNothingMovesIfThatIsNotWanted(t *testing.T) {
	p := begin(t)
	for _, preference := range []string{"no-preference", "reduce"} {
		p.preferMotion(t, preference)
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
	p.preferMotion(t, "")
}
