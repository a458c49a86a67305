package model

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/textlogger"
)

// parseAll reads a log.
func parseAll(log string, read time.Time) []record {
	var records []record
	var l lines
	for line := range strings.Lines(log) {
		if r, ok := l.add(strings.TrimSuffix(line, "\n"), read); ok {
			records = append(records, r)
		}
	}
	return records
}

func TestWhatIsLoggedIsRead(t *testing.T) {
	values := []any{
		"foo", cache.NewObjectName("default", "a"), "deployment", klog.KRef("default", "web"),
		"because", `it said "no" = no`, "duration", 1200 * time.Microsecond, "retries", 3,
		"list", []string{"a b", "c"}, "struct", struct{ A, B string }{"x y", "}"},
		"empty", "", "odd", "one\n >",
	}
	want := map[string]string{
		"foo": "default/a", "deployment": "default/web", "because": `it said "no" = no`,
		"duration": "1.2ms", "retries": "3", "list": `["a b","c"]`, "struct": `{"A":"x y","B":"}"}`,
		"empty": "", "odd": "one\n >", "err": "first\n\tsecond = \"x\"\nthird",
	}
	err := errors.New("first\n\tsecond = \"x\"\nthird")

	var log bytes.Buffer
	logger := textlogger.NewLogger(textlogger.NewConfig(textlogger.Output(&log)))
	before := time.Now()
	logger.Info("Starting")
	logger.Error(err, "A \"message\"\nof two lines =<", values...)
	logger.Info("Stopping", "why", "because")

	records := parseAll("panic: oh\n\ngoroutine 1 [running]:\n\tmain.go:1\n"+log.String(), time.Now())
	if len(records) != 3 {
		t.Fatalf("got %d records of\n%s", len(records), log.String())
	}
	r := records[1]
	for name, value := range want {
		equal(t, name, r.values[name], value)
	}
	equal(t, "message", r.message, "A \"message\"\nof two lines =<")
	equal(t, "failed", [2]bool{r.failed, records[2].failed}, [2]bool{true, false})
	equal(t, "last value", records[2].values["why"], "because")
	if before.Sub(r.at) > time.Microsecond || r.at.After(time.Now()) {
		t.Errorf("got the time %v, want that after %v", r.at, before)
	}
}

func TestTheTimeOfALineHasTheDateOfItsReading(t *testing.T) {
	zone := time.FixedZone("", 3600)
	read := time.Date(2026, 1, 1, 0, 0, 1, 0, zone)
	for line, want := range map[string]time.Time{
		"I0101 00:00:00.500000   1 a.go:1] x": time.Date(2026, 1, 1, 0, 0, 0, 5e8, zone),
		"I1231 23:59:59.900000   1 a.go:1] x": time.Date(2025, 12, 31, 23, 59, 59, 9e8, zone),
		"I0101 05:00:00.000000   1 a.go:1] x": read, // another time zone
	} {
		r, ok := new(lines).add(line, read)
		if !ok || !r.at.Equal(want) {
			t.Errorf("%s: got %v, %v, want %v", line, r.at, ok, want)
		}
	}
}

func TestOtherLinesAreNoRecords(t *testing.T) {
	for _, line := range []string{
		"", "panic: oh", "goroutine 1 [running]:", "\t/src/main.go:12 +0x1d", "created by main] x",
		"{", `{"a": 1}`, "I0101 25:00:00.000000   1 a.go:1] x", "I0101 00:00:00.000000 a.go:1] x",
		"X0101 00:00:00.000000   1 a.go:1] x", "] ", "I0101",
	} {
		if r, ok := new(lines).add(line, start); ok {
			t.Errorf("%q: got the record %v", line, r)
		}
	}
	r, ok := new(lines).add("W0701 12:00:00.000000   1 a.go:1] plain text", start)
	equal(t, "an unstructured line", r.message, "plain text")
	equal(t, "it is a record", ok, true)
}

func TestAValueThatNeverEndsEndsWithTheNextRecord(t *testing.T) {
	log := "I0701 12:00:00.000000   1 a.go:1] \"one\" err=<\n\tfirst\n" +
		"I0701 12:00:00.000000   1 a.go:1] \"two\" foo=\"a\"\n" +
		"I0701 12:00:00.000000   1 a.go:1] \"three\" err=<\n\t" +
		strings.Repeat("long\n\t", maxRecord) + "\n > foo=\"b\"\n"
	records := parseAll(log, start)
	if len(records) != 2 || records[0].values["foo"] != "a" || records[1].message != "three" {
		t.Errorf("got %.1000v", records)
	}
	log = "I0701 12:00:00.000000   1 a.go:1] \"one\" err=<\n\tfirst\n >\n\tmain.go:1\n >\n"
	equal(t, "records before a stack trace", len(parseAll(log, start)), 1)
}
