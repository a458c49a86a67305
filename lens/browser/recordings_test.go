package browser

import (
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"example.com/sample-controller/internal/testing/must"
	"example.com/sample-controller/lens/model"
	"example.com/sample-controller/lens/wire"
)

func TestProgramWithoutLogAndKilledLens(t *testing.T) {
	begin(t)
	l := must.Get(startLens("-program", "docs/tutorial/02-informer"))(t)
	p := must.Get(l.open())(t)
	defer p.close()
	p.watch(t)
	const blank = `!document.querySelector("[data-layer=keys] [data-id]")`
	p.mustWait(t, blank)
	p.mustWait(t, `lens.one("gate").mode === "slow"`)
	p.press(t, "create-deployment")
	p.mustDo(t, chromedp.Click(chromedp.JSPath(byText("Skip"))))
	p.mustWait(t, `["handlers", "queue", "workers"].every((part) =>
		document.querySelector("[data-part=" + part + "]").textContent.includes("does not log this"))`)
	p.mustWait(t, blank)
	p.mustWait(t, `document.querySelector(
		"[data-layer=caches] [data-id='object/deployments.apps/lens/example-foo']")`)
	p.press(t, "delete-deployment")

	l.Kill()
	p.mustWait(t, `document.querySelector("[role=status]").innerText.includes("The lens does not answer")`)
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, message := range p.errors {
		if !strings.Contains(message, "net::ERR_") { // the browser says that the connection broke
			t.Error(message)
		}
	}
	p.errors = nil
}

// openPlayer opens the page of the recordings from the disk with one of them.
func openPlayer(t *testing.T, file string) *page {
	t.Helper()
	path := must.Get(filepath.Abs(root + "docs/lens/index.html"))(t)
	p := must.Get(openPage("file://" + path + "#" + file))(t)
	t.Cleanup(p.close)
	p.watch(t)
	p.mustWait(t, "lens.replay?.steps.length > 0")
	return p
}

// playToEnd plays a recording faster than a person wants it.
func (p *page) playToEnd(t *testing.T) {
	t.Helper()
	p.mustDo(t, chromedp.Click(chromedp.JSPath(byText("4×"))),
		chromedp.Evaluate[chromedp.Void](`lens.replay.speed = 100;
			lens.replay.playing = true; lens.draw("replay")`))
	p.mustWait(t, "!lens.replay.playing && lens.replay.index === lens.replay.steps.length")
	p.mustWait(t, `document.querySelectorAll("[role=log] [data-id]").length > 0`)
}

// The second request begins and ends while the first one is under way. So its text, which has no room
// inside, stands behind the bars of both.
func TestTextsOfTheTimeLineCoverNoBar(t *testing.T) {
	needsBrowser(t)
	p := openPlayer(t, "create.js")
	p.mustDo(t, chromedp.Evaluate[chromedp.Void](`lens.replay.playing = false;
		lens.reset(); lens.apply({at: 0, set: {
		"span/1": {what: "request", key: "lens/a", label: "create events", begin: 1e6, end: 30e6},
		"span/2": {what: "request", key: "lens/a", label: "update foos/status a", begin: 2e6, end: 3e6}}})`))
	p.mustWait(t, `(() => {
		const [first, second] = [1, 2].map((id) => document.querySelector(".timeline [data-id='span/" + id + "']"));
		const { x, width } = first?.querySelector("rect").getBBox() ?? {};
		const text = second?.querySelector("text");
		return text?.textContent.startsWith("1.0 ms") && text.getBBox().x > x + width;
	})()`)
}

func TestRecordingsArePlayedToTheirEnds(t *testing.T) {
	needsBrowser(t)
	files, err := filepath.Glob(root + "docs/lens/recordings/*.js")
	if err != nil || len(files) < 2 {
		t.Fatalf("there are no recordings (error: %v)", err)
	}
	index := must.Get(os.ReadFile(root + "docs/lens/recordings/index.js"))(t)
	for _, file := range files {
		name := filepath.Base(file)
		if name == "index.js" {
			continue
		}
		if !strings.Contains(string(index), name) {
			t.Errorf("index.js does not name %s", name)
		}
		t.Run(name, func(t *testing.T) {
			p := openPlayer(t, name)
			p.playToEnd(t)
			if name == "taken.js" { // in the end of which there are objects
				p.mustWait(t, `Object.keys((`+readShown+`).Stored).map((id) => id.split("/")[3])
					.sort().join() === "example-foo,second-foo"`)
			}
		})
	}
}

// The controller makes requests of the same kinds as when the recording was made: no others, and no
// fewer. How often it makes them depends on the time that the Pods take.
func TestControllerStillMakesTheRecordedRequests(t *testing.T) {
	const scenario = "create"
	p := begin(t)
	p.press(t, "stop") // the other lens has a controller of its own
	t.Cleanup(func() { p.press(t, "start") })
	file := filepath.Join(t.TempDir(), "recording.js")
	record := exec.Command(filepath.Join(controlPlane.Dir, "lens"), "-scenario", scenario,
		"-record", file, "--", controllerPath, "-v=5", "-metrics-bind-address=0",
		"-health-probe-bind-address=0")
	record.Dir = root
	record.Env = append(os.Environ(), "KUBECONFIG="+controlPlane.Kubeconfig())
	if output, err := record.CombinedOutput(); err != nil {
		t.Fatalf("recording: %v\n%s", err, output)
	}

	now := recordedRequests(t, file)
	then := recordedRequests(t, root+"docs/lens/recordings/"+scenario+".js")
	if len(then) < 5 || !maps.Equal(now, then) {
		t.Errorf("the controller makes the requests %v, the recording has %v; 'make lens-record' "+
			"records it anew", now, then)
	}
}

// recordedRequests returns the kinds of the requests in a recording.
func recordedRequests(t *testing.T, file string) map[string]bool {
	t.Helper()
	all, _, err := must.Get(model.ReadRecording(file))(t).Again()
	must.Do(t, err)
	kinds := map[string]bool{}
	for _, seen := range all {
		if e := seen.Wire; e != nil && e.Kind == wire.RequestArrived && e.Resource != "" {
			kinds[strings.TrimSpace(e.Verb+" "+e.Resource+" "+e.Subresource)] = true
		}
	}
	return kinds
}
