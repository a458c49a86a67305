package browser

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"example.com/sample-controller/internal/testing/must"
)

// TestPlay uses the page that needs no server but one for files.
func TestPlay(t *testing.T) {
	needsBrowser(t)
	folder := t.TempDir()
	build := exec.CommandContext(context.Background(), "go", "-C", "docs", "run", "./play", "-out", folder)
	build.Dir, build.Stdout, build.Stderr = root, os.Stderr, os.Stderr
	must.Do(t, build.Run())
	server := httptest.NewServer(http.FileServer(http.Dir(folder)))
	defer server.Close()
	t.Run("controller", func(t *testing.T) {
		p := openPlay(t, server.URL)
		p.showsCodeOf(t, ".")
		playScenario(t, p)
		playFoos(t, p)
		playFaults(t, p)
		playYAML(t, p)
		if streams := mustRead[int](t, p, "lens.epoch"); streams != 1 {
			t.Errorf("the page asked %d times for what happens, want once: each answer goes on", streams)
		}
		p.mustDo(t, chromedp.Evaluate[chromedp.Void](`window.longest = 0;
			new PerformanceObserver((list) => {
				for (const task of list.getEntries()) longest = Math.max(longest, task.duration);
			}).observe({ type: "longtask" })`))
		p.press(t, "burst")
		p.mustWait(t, `lens.of("object").size >= 500`) // all 2,000 take minutes on a busy machine
		t.Logf("the longest task of the page: %.0f ms", mustRead[float64](t, p, "longest"))
	})
	for chapter := range strings.FieldsSeq("04-queue 05-owning 06-renaming 07-status 08-errors") {
		t.Run(chapter, func(t *testing.T) {
			p := openPlay(t, server.URL+"/?program=docs/tutorial/"+chapter)
			p.press(t, "create")
			p.has(t, "deployments.apps/lens/example-foo", true)
			p.showsCodeOf(t, "docs/tutorial/"+chapter)
		})
	}
}

// openPlay opens the page and waits until the program in it runs.
func openPlay(t *testing.T, url string) *page {
	t.Helper()
	p := must.Get(openPage(url))(t)
	t.Cleanup(p.close)
	p.watch(t)
	p.mustWait(t, `lens.one("process").state === "running" && lens.of("watch").size > 0`)
	p.fast(t)
	p.quiet(t)
	return p
}

// quiet waits until nothing is under way.
func (p *page) quiet(t *testing.T) {
	t.Helper()
	p.mustWait(t, `[...lens.of("key").values()].every((key) => key.state === "delayed") &&
		lens.of("flight").size === 0 &&
		[...lens.of("request").values()].every((request) => request.state === "answered")`)
}

// has waits until the API server in the page has an object, or has it no more.
func (p *page) has(t *testing.T, object string, want bool) {
	t.Helper()
	p.mustWait(t, fmt.Sprintf(`Boolean(lens.one("object/%s").resourceVersion) === %v`, object, want))
}

// showsCodeOf waits until the page shows code of a file in that folder of the repository.
func (p *page) showsCodeOf(t *testing.T, folder string) {
	t.Helper()
	const place = `document.querySelector(".code .file").innerText`
	p.mustWait(t, place+`.includes(":")`)
	code := mustRead[[]string](t, p, // at once: it follows what happens
		"["+place+`, document.querySelector(".code pre").textContent]`)
	file, _, _ := strings.Cut(code[0], ":")
	if filepath.Dir(file) != folder {
		t.Errorf("the page shows code of %s, want it of a file in %s", file, folder)
	}
	written, err := os.ReadFile(filepath.Join(root, file))
	if err != nil { // the program was put together for the page
		assembled := strings.Replace(file, "docs/tutorial", "docs/.local", 1)
		written = must.Get(os.ReadFile(filepath.Join(root, assembled)))(t)
	}
	if len(code[1]) < 40 || !strings.Contains(string(written), strings.TrimSpace(code[1])) {
		t.Errorf("the page shows as %s what is not in that file:\n%s", file, code[1])
	}
}

// summary waits until what the page says of an object ends with that.
func (p *page) summary(t *testing.T, object, want string) {
	t.Helper()
	p.mustWait(t, fmt.Sprintf(`(lens.one("object/%s").summary ?? "").endsWith(%q)`, object, want))
}

const (
	foo        = "foos.samplecontroller.k8s.io/lens/example-foo"
	foreign    = "foos.samplecontroller.k8s.io/lens/foreign-foo"
	refused    = "foos.samplecontroller.k8s.io/lens/refused-foo"
	deployment = "deployments.apps/lens/example-foo"
	renamed    = "deployments.apps/lens/renamed-foo"
)

// playScenario does what the recording create.js shows.
func playScenario(t *testing.T, p *page) {
	p.press(t, "create")
	p.summary(t, deployment, "1 of 1 available")
	p.summary(t, foo, "Ready")
	t.Logf("the first Foo is Ready %.1f s after the page was opened",
		mustRead[float64](t, p, "performance.now() / 1000"))
	p.quiet(t)
	p.press(t, "scale")
	p.summary(t, deployment, "3 of 3 available")
	p.quiet(t)
	p.press(t, "rename")
	p.summary(t, renamed, "3 of 3 available")
	p.has(t, deployment, false)
	p.quiet(t)
	p.press(t, "delete")
	p.has(t, foo, false)
	p.has(t, renamed, false)
}

// playFoos does what a user does, as docs/behaviour.md says it ends.
func playFoos(t *testing.T, p *page) {
	p.press(t, "create")
	p.summary(t, foo, "Ready")
	p.says(t, 0, `Worker \d+ starts to sync lens/example-foo`) // the program's log is read, too
	p.press(t, "scale")
	p.summary(t, deployment, "3 of 3 available")
	p.press(t, "scale-deployment")
	p.summary(t, deployment, "3 of 3 available")
	p.press(t, "delete-deployment")
	p.summary(t, deployment, "3 of 3 available")
	mark := p.mark(t)
	p.press(t, "terminate-deployment")
	p.says(t, mark, "creates deployments example-foo") // the one that goes looks the same until then
	p.summary(t, deployment, "3 of 3 available")
	for _, does := range []struct{ action, object, ends string }{
		{"apply", deployment, "3 of 3 available"}, {"restart-deployment", foo, "Ready"}, {"unlabel", foo, "Ready"},
		{"disown", foo, "DeploymentNameTaken"}, {"delete-deployment", foo, "Ready"},
		{"foreign", foreign, "DeploymentNameTaken"}, {"delete-foreign", foreign, "Ready"},
		{"refuse", refused, "DeploymentRejected"}, {"allow", refused, "Ready"},
	} {
		p.press(t, does.action)
		p.quiet(t)
		p.summary(t, does.object, does.ends)
	}
	p.mustDo(t, chromedp.Evaluate[chromedp.Void](
		`document.querySelector("[data-action=bad-spec]").click()`))
	p.mustWait(t, `document.querySelector(".output").innerText.includes("replicas: Invalid value: -1: ")`)
	p.press(t, "rename")
	p.has(t, renamed, true)
	p.has(t, deployment, false)
	p.press(t, "hold-foo")
	p.press(t, "release-foo")
	p.has(t, foo, false)
	p.has(t, renamed, false)
	p.press(t, "two")
	p.mustWait(t, `[...lens.of("object").values()].some((object) =>
		/^(example|second)-foo$/.test(object.name) && object.summary?.includes("DeploymentNameTaken"))`)
	p.press(t, "delete-all")
	p.mustWait(t, `[...lens.of("object").values()].every((object) => !object.resourceVersion)`)
}

// playFaults breaks things, and looks whether the controller gets over it.
func playFaults(t *testing.T, p *page) {
	for _, fault := range []string{"conflict", "error", "hold-foos", "cut-deployments", "expire-foos"} {
		p.press(t, fault)
		p.press(t, "create")
		p.summary(t, foo, "Ready")
		p.press(t, "delete")
		p.has(t, deployment, false)
	}
	for _, end := range []string{"kill", "stop"} {
		p.press(t, end)
		p.mustWait(t, `lens.one("process").state === "exited"`)
		p.press(t, "create")
		p.press(t, "start")
		p.summary(t, foo, "Ready")
		p.press(t, "delete")
		p.has(t, deployment, false)
	}
}

// playYAML types a Foo that the CustomResourceDefinition refuses, and one that it takes.
func playYAML(t *testing.T, p *page) {
	apply := func(old, replacement, want string) {
		t.Helper()
		p.mustDo(t, chromedp.Evaluate[chromedp.Void](fmt.Sprintf(`{
			const yaml = document.querySelector("textarea");
			yaml.closest("details").open = true;
			yaml.value = yaml.value.replace(%q, %q);
		} undefined`, old, replacement)), chromedp.Click(chromedp.JSPath(byText("Apply"))))
		p.mustWait(t, fmt.Sprintf(`document.querySelector(".output").innerText.includes(%q)`, want))
	}
	apply("replicas: 2", "replicas: -2", "spec.replicas: Invalid value: -2: ")
	apply("replicas: -2", "replicas: 2", "foo.samplecontroller.k8s.io/my-foo serverside-applied")
	p.summary(t, "deployments.apps/lens/my-foo", "2 of 2 available")
	apply("deploymentName: my-foo", "deploymentName: My_Foo", `The Foo "my-foo" is invalid: spec.deploymentName: `)
}
