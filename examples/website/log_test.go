package main

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"k8s.io/klog/v2"
	"k8s.io/klog/v2/ktesting"
)

// captureLog captures what the program logs at -v=5 until the test ends. The returned function
// returns the different lines so far that contain text, without what varies: times and versions.
func captureLog(t *testing.T) func(text string) []string {
	t.Helper()
	logger := ktesting.NewLogger(ktesting.NopTL{},
		ktesting.NewConfig(ktesting.Verbosity(5), ktesting.BufferLogs(true)))
	t.Cleanup(klog.CaptureState().Restore)
	klog.SetLoggerWithOptions(logger, klog.ContextualLogger(true))
	buffer := logger.GetSink().(ktesting.Underlier).GetBuffer()
	varies := regexp.MustCompile(`"1[0-9]m[0-9.]+s"| resourceVersion=.*`)
	return func(text string) (found []string) {
		for line := range strings.Lines(buffer.String()) {
			line = varies.ReplaceAllString(strings.TrimSpace(line), "")
			if strings.Contains(line, text) && !slices.Contains(found, line) {
				found = append(found, line)
			}
		}
		slices.Sort(found)
		return found
	}
}

func TestLogTellsTheWayOfAWebsite(t *testing.T) {
	bubble(t, func(t *testing.T, h *harness) {
		log := captureLog(t)
		h.start()
		h.createServed("web")
		h.deleteWebsite("web")

		const queueing = `INFO Queueing Website website="default/web" because=`
		want := []string{
			queueing + `"Deployment updated" object="default/web"`,
			queueing + `"Website added" object="default/web"`,
			queueing + `"Website deleted" object="default/web"`,
			queueing + `"Website updated" object="default/web"`,
		}
		for _, kind := range childKinds {
			want = append(want, queueing+`"`+kind+` added" object="default/web"`)
		}
		slices.Sort(want)
		if got := log("Queueing Website website"); !slices.Equal(got, want) {
			t.Errorf("queued: got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
		want = []string{`INFO Queueing Website again website="default/web" after= ` +
			`because="the registry may have lost it by then"`}
		if got := log("registry"); !slices.Equal(got, want) {
			t.Errorf("queued again: got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
		want = []string{
			`INFO Finished syncing Website website="default/web" duration="0s"`,
			`INFO Started syncing Website website="default/web"`,
		}
		if got := log("syncing Website"); !slices.Equal(got, want) {
			t.Errorf("synced: got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	})
}
