// Package shell runs lines of bash in the tests of chapters 13 and 14 of the tutorial.
package shell

import (
	"fmt"
	"os"
	"os/exec"
	"testing"
	"time"
)

// functions are for the lines. DIR is a folder that each test has.
const functions = `set -eE -o pipefail
trap 'echo "failed: $BASH_COMMAND" >&2' ERR
eventually() { # eventually COMMAND...: try until it succeeds
  local end=$((SECONDS + PATIENCE))
  until "$@" &>"$DIR/tried"; do
    ((SECONDS < end)) || { echo "waited ${PATIENCE}s: $(<"$DIR/tried")" >&2 && return 1; }
    sleep 0.1
  done
}
prints() { # prints TEXT COMMAND...: the output contains the text
  local output
  output=$("${@:2}" 2>&1) || :
  [[ $output == *"$1"* ]] || { echo "${*:2}: got: $output; want: $1" >&2 && return 1; }
}
accepts() { # accepts COMMAND...: it succeeds, without a warning
  local output
  output=$("$@" 2>&1) && [[ $output != *"Warning: "* ]] ||
    { echo "$*: got: $output; want no refusal" >&2 && return 1; }
}
refuses() { # refuses TEXT COMMAND...: it fails, or warns, and says the text
  local output
  if output=$("${@:2}" 2>&1) && [[ $output != *"Warning: "* ]] || [[ $output != *"$1"* ]]; then
    echo "${*:2}: got: $output; want a refusal: $1" >&2
    return 1
  fi
}
`

// Shell runs lines in a folder, with the functions above and with some more.
type Shell struct {
	Dir       string // $DIR
	Functions string
	Patience  time.Duration // of eventually
}

// Run runs lines as far as they succeed. It fails the test if one does not.
func (s *Shell) Run(t *testing.T, lines string) {
	t.Helper()
	command := exec.Command("bash", "-c", functions+s.Functions+lines)
	command.Env = append(os.Environ(), "DIR="+s.Dir, fmt.Sprintf("PATIENCE=%.0f", s.Patience.Seconds()))
	if output, err := command.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", lines, err, output)
	}
}
