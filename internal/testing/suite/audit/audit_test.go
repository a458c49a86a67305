package audit

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"example.com/sample-controller/internal/testing/must"
)

const line = `{"stage":"ResponseComplete","verb":"create","impersonatedUser":{"username":"bench-a"},` +
	`"objectRef":{"resource":"deployments","name":"x"},"responseStatus":{"code":201},` +
	`"requestReceivedTimestamp":"2026-01-02T03:04:05.000001Z",` +
	`"stageTimestamp":"2026-01-02T03:04:05.002001Z"}` + "\n"

func TestLogIsReadFromItsEndAndInWholeLines(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.log")
	write := func(text string) {
		t.Helper()
		file := must.Get(os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600))(t)
		defer file.Close()
		must.Get(file.WriteString(text))(t)
	}
	write(line)
	mark, err := End(path)
	must.Do(t, err)
	watch := strings.Replace(line, "create", "watch", 1)
	for _, step := range []struct {
		text string
		want int
	}{
		{"", 0}, // what was there before is not read
		{line + line[:100], 1},
		{line[100:], 1},
		{strings.Replace(line, "bench-a", "somebody", 1), 0},
		{strings.Replace(line, `"x"`, `"bench-a"`, 1), 1},
		{strings.Replace(strings.Replace(line, "bench-a", "somebody", 1), `"x"`, `"bench-a"`, 1), 0},
		{watch, 0}, // its end
		{strings.Replace(watch, "ResponseComplete", "ResponseStarted", 1), 1},
		{line[:100] + "\n" + line, 1}, // half a line of a server that was killed
	} {
		write(step.text)
		var requests []Request
		if requests, mark, err = Read(path, mark, "bench-"); err != nil {
			t.Fatal(err)
		}
		if len(requests) != step.want {
			t.Errorf("after %q: got %d requests, want %d", step.text, len(requests), step.want)
		}
		for _, r := range requests {
			took := r.StageTimestamp.Sub(r.RequestReceivedTimestamp)
			if r.User() != "bench-a" || took.Milliseconds() != 2 {
				t.Errorf("got a request of %s that took %v, want bench-a and 2ms", r.User(), took)
			}
		}
	}
}
