package main

import (
	"strings"
	"testing"
)

func TestTextThatIsTooLongIsWrapped(t *testing.T) {
	words := func(n int) string { return strings.TrimSpace(strings.Repeat("word ", n)) } // of 5
	tests := []struct{ name, file, text, want string }{
		{"a paragraph", "a.md", words(21) + "\nmore\n\n" + words(2), words(20) + "\nword more\n\n" + words(2)},
		{"only from there on", "a.md", "a\n" + words(21), "a\n" + words(20) + "\nword"},
		{"a list item", "a.md", "- " + words(20) + "\n  more\n- b", "- " + words(19) + "\n  word more\n- b"},
		{"not the next item", "a.md", "1. " + words(20) + "\n2. b", "1. " + words(19) + "\n   word\n2. b"},
		{"no table", "a.md", "| " + words(21), "| " + words(21)},
		{"no block", "a.md", "```\n" + words(21) + "\n```", "```\n" + words(21) + "\n```"},
		{"not the block below", "a.md", words(21) + "\n```\na\n```", words(20) + "\nword\n```\na\n```"},
		{"a comment in Go", "a.go", "\t// " + words(20) + "\n\t// more\n\ta()",
			"\t// " + words(19) + "\n\t// word more\n\ta()"},
		{"a list in a comment", "a.go", "//   - " + words(20) + "\n//     more",
			"//   - " + words(18) + "\n//     word word more"},
		{"no code in a comment", "a.go", "// " + words(20) + "\n//\tcode", "// " + words(19) + "\n// word\n//\tcode"},
		{"no marker for a generator", "a.go", "// +" + words(21), "// +" + words(21)},
		{"no code", "a.go", "\t" + words(21), "\t" + words(21)},
		{"a comment in a script", "hack/a", "#!/bin/bash\n# " + words(20), "#!/bin/bash\n# " + words(19) + "\n# word"},
		{"a comment in YAML", "a.yaml", "  # " + words(20), "  # " + words(19) + "\n  # word"},
		{"a word that is too long", "a.md", strings.Repeat("a", 101) + " b", strings.Repeat("a", 101) + "\nb"},
		{"nothing else", "a.txt", words(21), words(21)},
	}
	for _, test := range tests {
		if got := wrap(test.file, test.text); got != test.want {
			t.Errorf("%s: got\n%s\nwant\n%s", test.name, got, test.want)
		}
	}
}

func TestCodeThatIsTooLongIsBroken(t *testing.T) {
	word := strings.Repeat("a", 30)
	long := "\t" + word + "(" + word + ", " + word + " + " + word + ")\n"
	for text, want := range map[string]string{
		long:           "\t" + word + "(" + word + ", " + word + " +\n" + word + ")\n",
		"b()\n" + long: "b()\n\t" + word + "(" + word + ", " + word + " +\n" + word + ")\n",
		"f(`" + word + word + word + word + "`)\n":   "f(\n`" + word + word + word + word + "`)\n",
		"var a = `" + word + word + word + "(, +`\n": "var a = `" + word + word + word + "(, +`\n",
	} {
		if got := wrapCode(text); got != want {
			t.Errorf("got\n%s\nwant\n%s", got, want)
		}
	}
}

func TestTablesAreAligned(t *testing.T) {
	const text = "$ kubectl events\nLAST SEEN   TYPE   OBJECT\n1s   Normal   DNSRecord/a\n10m   Warning   b\n\n" +
		"A b   C\nx   y\n"
	const want = "$ kubectl events\nLAST SEEN   TYPE      OBJECT\n1s          Normal    DNSRecord/a\n" +
		"10m         Warning   b\n\nA b   C\nx   y\n"
	if got := align(text); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}
