package model

import (
	"encoding/json"
	"regexp"
	"strconv"
	"strings"
	"time"
)

const (
	maxRecord = 64 << 10 // bytes; what follows is cut off
	// maxSkew is how far the time in a line may be from the time when the line was read. If it is
	// more, the program has another time zone or another clock.
	maxSkew = time.Minute
)

// record is what was logged with one call.
type record struct {
	at      time.Time
	failed  bool // it is an error
	message string
	values  map[string]string
}

// lines reads the lines of a log.
type lines struct{ open []byte }

// add returns the record that ends with line, if one does. If a value has several
// lines, the first line ends with "=<", and each line of the value begins with a tab. The line
// after them begins with a space and ">".
func (l *lines) add(line string, read time.Time) (record, bool) {
	inside := len(l.open) > 0 && (strings.HasPrefix(line, "\t") || strings.HasPrefix(line, " >"))
	switch {
	case !inside:
		l.open = append(l.open[:0], line...)
	case len(l.open)+len(line) < maxRecord:
		l.open = append(append(l.open, '\n'), line...)
	}
	if inside && line[0] == '\t' || strings.HasSuffix(line, "=<") {
		return record{}, false
	}
	text := string(l.open)
	l.open = nil
	r, ok := parseText(text, read)
	if skew := r.at.Sub(read); skew < -maxSkew || skew > maxSkew {
		r.at = read
	}
	return r, ok
}

// header is that of klog: Immdd hh:mm:ss.uuuuuu threadid file:line] message. In a page, there is no
// threadid.
var header = regexp.MustCompile(`(?s)^([IWEF])\d{4} (\d\d:\d\d:\d\d\.\d{6})(?: +\d+| {8}) \S+:\d+\] (.*)$`)

// parseText reads a record of klog. Its time has neither year nor time zone.
func parseText(text string, read time.Time) (record, bool) {
	match := header.FindStringSubmatch(text)
	if match == nil {
		return record{}, false
	}
	at, err := time.ParseInLocation(time.DateTime,
		read.Format(time.DateOnly)+" "+match[2], read.Location())
	if err != nil {
		return record{}, false
	}
	if at.Sub(read) >= maxSkew { // it was read after midnight
		at = at.AddDate(0, 0, -1)
	}
	r := record{at: at, failed: match[1] == "E" || match[1] == "F", message: match[3]}
	if quoted, err := strconv.QuotedPrefix(match[3]); err == nil {
		r.message, _ = strconv.Unquote(quoted)
		r.values = parseValues(match[3][len(quoted):])
	}
	return r, true
}

// parseValues reads ` key="value" key=<\n\tline\n > key={"json": 1} key=5`.
func parseValues(text string) map[string]string {
	values := map[string]string{}
	for {
		key, rest, ok := strings.Cut(strings.TrimLeft(text, " "), "=")
		if !ok {
			return values
		}
		values[key], text = parseValue(rest)
	}
}

// parseValue returns the value at the beginning of text, and what follows it.
func parseValue(text string) (value, rest string) {
	if quoted, err := strconv.QuotedPrefix(text); err == nil {
		value, _ = strconv.Unquote(quoted)
		return value, text[len(quoted):]
	}
	if lines, ok := strings.CutPrefix(text, "<\n\t"); ok {
		value, rest, _ = strings.Cut(lines, "\n >")
		return strings.ReplaceAll(value, "\n\t", "\n"), rest
	}
	var raw json.RawMessage
	if decoder := json.NewDecoder(strings.NewReader(text)); decoder.Decode(&raw) == nil {
		return string(raw), text[decoder.InputOffset():]
	}
	value, rest, _ = strings.Cut(text, " ")
	return value, rest
}
