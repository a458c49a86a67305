package main

import (
	"errors"
	"flag"
	"io"
	"regexp"
	"strings"
	"testing"
)

func TestBadFlagsAreRefusedWithOneLine(t *testing.T) {
	for args, want := range map[string]string{
		"--nope":            "flag provided but not defined: -nope",
		"--workers=0":       "--workers must be at least 1, not 0",
		"--kube-api-qps=0":  "--kube-api-qps must be positive, or -1 for no limit",
		"--kube-api-qps=-3": "--kube-api-qps must be positive, or -1 for no limit",
		"--namespace=Foos": `--namespace: "Foos" cannot be the name of a namespace: a lowercase RFC ` +
			"1123 label must consist of lower case alphanumeric characters or '-', and must start and " +
			"end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for " +
			"validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')",
		"--kube-api-burst=0":     "--kube-api-burst must be at least 1, not 0",
		"--resync=0":             "--resync must be positive, not 0s",
		"--cache-sync-timeout=0": "--cache-sync-timeout must be positive, not 0s",
		"websites":               `unexpected argument "websites"`,
	} {
		_, err := parseFlags(strings.Fields(args), io.Discard)
		if want += "; --help lists all flags"; err == nil || err.Error() != want {
			t.Errorf("%s: got error %v, want %q", args, err, want)
		}
	}
}

func TestHelpListsTheFlags(t *testing.T) {
	var help strings.Builder
	if _, err := parseFlags([]string{"--help"}, &help); !errors.Is(err, flag.ErrHelp) {
		t.Errorf("--help: got error %v, want flag.ErrHelp", err)
	}
	for _, name := range []string{"registry", "resync", "leader-elect", "v", "logging-format"} {
		if !regexp.MustCompile(`(?m)^  -` + name + `\b`).MatchString(help.String()) {
			t.Errorf("--help does not list -%s", name)
		}
	}
}
