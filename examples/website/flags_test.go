package main

import (
	"errors"
	"flag"
	"io"
	"strings"
	"testing"
)

func TestOwnFlags(t *testing.T) {
	const want = "--resync must be positive, not 0s; --help lists all flags"
	if _, err := parseFlags([]string{"--resync=0"}, io.Discard); err == nil || err.Error() != want {
		t.Errorf("got error %v, want %q", err, want)
	}
	var help strings.Builder
	_, err := parseFlags([]string{"--help"}, &help)
	if !errors.Is(err, flag.ErrHelp) || !strings.Contains(help.String(), "-registry URL\n") ||
		!strings.Contains(help.String(), "-leader-elect\n") {
		t.Errorf("--help: got error %v, and\n%s", err, help.String())
	}
}
