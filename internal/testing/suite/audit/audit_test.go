package audit

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"example.com/sample-controller/internal/testing/must"
)

func TestHalfLinesAndEndsOfWatchesAreNoRequests(t *testing.T) {
	begin := `{"stage":"ResponseStarted","verb":"watch","impersonatedUser":{"username":"me"}}` + "\n"
	end, half := strings.Replace(begin, "Started", "Complete", 1), strings.TrimSuffix(begin, "}}\n")
	text := begin + end + half + "\n" // what a killed API server leaves
	path := filepath.Join(t.TempDir(), "audit.log")
	must.Do(t, os.WriteFile(path, []byte(text+half), 0o600)) // the rest comes later
	requests, mark, err := Read(path, 0, "me")
	if err != nil || len(requests) != 1 || mark != Mark(len(text)) {
		t.Errorf("got %v up to %d, and error %v, want one up to %d", requests, mark, err, len(text))
	}
}
