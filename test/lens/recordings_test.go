package lens

import (
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/chromedp/chromedp"

	"example.com/sample-controller/lens/model"
	"example.com/sample-controller/lens/wire"
)

func TestProgramWithoutLogAndKilledLens(t *testing.T) {
	begin(t)
	l, err := startLens("-program", "docs/tutorial/02-informer")
	if err != nil {
		t.Fatal(err)
	}
	p, err := l.open()
	if err != nil {
		t.Fatal(err)
	}
	defer p.close()
	p.watch(t)
	const blank = `!document.querySelector("[data-layer=keys] [data-id]")`
	p.mustWait(t, blank)
	p.press(t, "create-deployment")
	p.mustWait(t, `["handlers", "queue", "workers"].every((part) =>
		document.querySelector("[data-part=" + part + "]").textContent.includes("does not log this"))`)
	p.mustWait(t, blank)
	p.mustWait(t, `document.querySelector(
		"[data-layer=caches] [data-id='object/deployments.apps/lens/example-foo']")`)
	p.shoot(t, "no-log")
	p.press(t, "delete-deployment")

	if err := l.stop(syscall.SIGKILL); err != nil {
		t.Error(err)
	}
	p.mustWait(t, `document.querySelector("[role=status]").innerText.includes("The lens does not answer")`)
	p.shoot(t, "lens-killed")
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, message := range p.errors {
		if !strings.Contains(message, "net::ERR_") { // the browser says that the connection broke
			t.Error(message)
		}
	}
	p.errors = nil
}

// The page of a recording shows in the end what the page of the lens has shown.
func TestRecordingShowsWhatWasSeen(t *testing.T) {
	p := begin(t)
	p.press(t, "two")
	p.settle(t)
	var recording []byte
	var want map[string]string
	p.until(t, func() error { // nothing is written while the recording is made
		want = mustRead[map[string]string](t, p, `(`+readShown+`).Stored`)
		response, err := http.Get(mustRead[string](t, p, `location.href`) + "recording")
		if err != nil {
			return err
		}
		defer response.Body.Close()
		if recording, err = io.ReadAll(response.Body); err != nil {
			return err
		}
		now := mustRead[map[string]string](t, p, `(`+readShown+`).Stored`)
		if !maps.Equal(now, want) {
			return fmt.Errorf("the page showed %v and now shows %v", want, now)
		}
		return nil
	})

	folder := t.TempDir()
	player, err := os.ReadFile(root + "docs/lens/index.html")
	if err != nil {
		t.Fatal(err)
	}
	web, err := filepath.Abs(root + "lens/web")
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"docs/lens/index.html":          string(player),
		"docs/lens/recordings/seen.js":  string(recording),
		"docs/lens/recordings/index.js": `lens.recordings([{"file": "seen.js", "title": "seen"}])`,
	} {
		name = filepath.Join(folder, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(folder, "lens"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(web, filepath.Join(folder, "lens/web")); err != nil {
		t.Fatal(err)
	}
	played := play(t, filepath.Join(folder, "docs/lens/index.html"))
	p.until(t, func() error { // the page draws the last steps after it has read them
		got := mustRead[map[string]string](t, played, `(`+readShown+`).Stored`)
		if len(want) != 3 || !maps.Equal(got, want) {
			return fmt.Errorf("in the end, the recording shows %v, want %v", got, want)
		}
		return nil
	})
}

// play plays a recording from the disk to its end.
func play(t *testing.T, path string) *page {
	t.Helper()
	p, err := openPage("file://" + path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.close)
	p.watch(t)
	p.mustWait(t, "lens.replay?.steps.length > 0")
	p.mustDo(t, chromedp.Click(chromedp.JSPath(byText("4×"))))
	p.mustDo(t, chromedp.Evaluate[chromedp.Void](`lens.replay.speed = 100`)) // faster than a person wants it
	p.mustWait(t, "!lens.replay.playing && lens.replay.index === lens.replay.steps.length")
	p.mustWait(t, `document.querySelectorAll("[role=log] [data-id]").length > 0`)
	return p
}

func TestSavedRecordingIsOpened(t *testing.T) {
	if noBrowser != nil {
		t.Skipf("nothing is shown: %v", noBrowser)
	}
	path, err := filepath.Abs(root + "docs/lens")
	if err != nil {
		t.Fatal(err)
	}
	p, err := openPage("file://" + path + "/index.html#02-informer.js")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.close)
	p.watch(t)
	p.mustWait(t, `lens.replay?.program === "docs/tutorial/02-informer"`)
	p.mustDo(t, chromedp.SetUploadFiles(chromedp.CSS("input[type=file]"),
		[]string{path + "/recordings/04-queue.js"}))
	p.mustWait(t, `lens.replay.program === "docs/tutorial/04-queue"`)
}

func TestRecordingsArePlayedToTheirEnds(t *testing.T) {
	if noBrowser != nil {
		t.Skipf("nothing is shown: %v", noBrowser)
	}
	files, err := filepath.Glob(root + "docs/lens/recordings/*.js")
	if err != nil || len(files) == 0 {
		t.Fatalf("there are no recordings (error: %v)", err)
	}
	index, err := os.ReadFile(root + "docs/lens/recordings/index.js")
	if err != nil {
		t.Fatal(err)
	}
	player, err := filepath.Abs(root + "docs/lens/index.html")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		name := filepath.Base(file)
		if name == "index.js" {
			continue
		}
		if !strings.Contains(string(index), name) {
			t.Errorf("index.js does not name %s", name)
		}
		t.Run(name, func(t *testing.T) { play(t, player+"#"+name).close() })
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
		"-record", file, "--", *controllerPath, "-v=5", "-metrics-bind-address=0",
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
	recording, err := model.ReadRecording(file)
	if err != nil {
		t.Fatal(err)
	}
	all, _, err := recording.Again()
	if err != nil {
		t.Fatal(err)
	}
	kinds := map[string]bool{}
	for _, seen := range all {
		if e := seen.Wire; e != nil && e.Kind == wire.RequestArrived && e.Resource != "" {
			kinds[strings.TrimSpace(e.Verb+" "+e.Resource+" "+e.Subresource)] = true
		}
	}
	return kinds
}
