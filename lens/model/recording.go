package model

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// Recording is all that was seen of a program, and how a page shows it.
type Recording struct {
	Title   string            `json:"title"`
	About   string            `json:"about"`
	Program string            `json:"program"`
	Start   time.Time         `json:"start"`
	Steps   []json.RawMessage `json:"steps"`
	Seen    []json.RawMessage `json:"seen"`
	Code    map[string]*Code  `json:"code"` // by place
}

// Code is a declaration of a program.
type Code struct {
	File string `json:"file"` // from the root of the repository
	Line int    `json:"line"` // where the text begins
	Name string `json:"name"`
	Text string `json:"text"`
}

// A file of a recording is a classic script, so that a page from the disk can run it. Between
// these, it has compressed JSON, in base64.
const recordingBegin, recordingEnd = `lens.recording("`, "\");\n"

// Script returns the text of the file. Nothing fails in memory.
func (r *Recording) Script() []byte {
	var b bytes.Buffer
	b.WriteString(recordingBegin)
	encoder := base64.NewEncoder(base64.StdEncoding, &b)
	packed, _ := gzip.NewWriterLevel(encoder, gzip.BestCompression)
	_ = json.NewEncoder(packed).Encode(r)
	_ = packed.Close()
	_ = encoder.Close()
	b.WriteString(recordingEnd)
	return b.Bytes()
}

// Write writes the file, and the list of all recordings in the same folder.
func (r *Recording) Write(file string) error {
	const index, indexBegin = "index.js", "lens.recordings("
	other := filepath.Join(filepath.Dir(file), index)
	if text, err := os.ReadFile(other); err == nil && !bytes.HasPrefix(text, []byte(indexBegin)) {
		return fmt.Errorf("%s is no list of recordings: choose another folder", other)
	}
	if err := os.WriteFile(file, r.Script(), 0o644); err != nil {
		return err
	}
	files, err := filepath.Glob(filepath.Join(filepath.Dir(file), "*.js"))
	if err != nil {
		return err
	}
	var lines [][]byte
	for _, file := range files {
		name := filepath.Base(file)
		if name == index {
			continue
		}
		r, err := ReadRecording(file)
		if err != nil {
			return err
		}
		line, _ := json.Marshal( // never fails
			map[string]string{"file": name, "title": r.Title, "about": r.About})
		lines = append(lines, line)
	}
	list := fmt.Sprintf(indexBegin+"[\n%s\n]);\n", bytes.Join(lines, []byte(",\n")))
	return os.WriteFile(filepath.Join(filepath.Dir(file), index), []byte(list), 0o644)
}

// ReadRecording returns the recording that is in a file.
func ReadRecording(file string) (*Recording, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	text = bytes.TrimPrefix(text, []byte(recordingBegin))
	text = bytes.TrimSuffix(text, []byte(recordingEnd))
	r := &Recording{}
	packed, err := gzip.NewReader(base64.NewDecoder(base64.StdEncoding, bytes.NewReader(text)))
	if err == nil {
		err = json.NewDecoder(packed).Decode(r)
	}
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", file, err)
	}
	return r, nil
}

// Again returns what was seen, and the steps that a Model makes of it now.
func (r *Recording) Again() (all []Seen, steps []json.RawMessage, err error) {
	m := New(r.Start)
	for _, text := range r.Seen {
		var seen Seen
		if err := json.Unmarshal(text, &seen); err != nil {
			return nil, nil, err
		}
		all = append(all, seen)
		step := m.See(seen)
		if len(step.Set) == 0 && len(step.Drop) == 0 {
			continue
		}
		text, _ := json.Marshal(step) // never fails
		steps = append(steps, text)
	}
	return all, steps, nil
}
