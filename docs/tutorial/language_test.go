package tutorial

import (
	"fmt"
	"go/parser"
	"go/token"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// longest is how many words a sentence may have. A colon or semicolon ends a sentence, too.
const longest = 30

// mostPassive is how many passives make a chain, in which a reader does not see who does what.
const mostPassive = 3

var (
	paragraphs = regexp.MustCompile(`(?:\n\s*)+(?:[-*]|\d+\.) |\n\s*\n|\n#|\n?\|`)
	sentences  = regexp.MustCompile(`[.!?:;]\)?\s+`)
	whoClause  = regexp.MustCompile(`^\W*(Who|Whoever) .*[^?]$`)
	htmlNote   = regexp.MustCompile(`<!--.*?-->`)
	// codeInComment is indented, as gofmt has it.
	codeInComment = regexp.MustCompile(`(?m)^\t.*$`)
	passive       = regexp.MustCompile(`\b(is|are|was|were|be|been|being) ((\w+ly|not|also|still|then|` +
		`never|always|only) )*(\w+ed|made|done|seen|sent|read|written|kept|set|found|known|given|taken|` +
		`told|said|held|built|run|lost|gone|shown|left|put|cut|met)\b`)
)

// checkLanguage returns the sentences of a page that are hard to read: those that are too long,
// those that are chains of passives, and those that say "Who does X" for "If you do X".
func checkLanguage(p *page) (problems []string) {
	prose := htmlNote.ReplaceAllString(p.prose(), "")
	prose = linkText.ReplaceAllString(prose, "$1")
	prose = inlineCode.ReplaceAllString(prose, "X")
	for _, paragraph := range paragraphs.Split(prose, -1) {
		text := strings.Join(strings.Fields(strings.NewReplacer(">", " ", "**", "").Replace(paragraph)), " ")
		for _, sentence := range sentences.Split(text, -1) {
			if n := len(strings.Fields(sentence)); n > longest {
				problems = append(problems, fmt.Sprintf("%s: a sentence of %d words, want at most %d: %s",
					p.path, n, longest, sentence))
			}
			if n := len(passive.FindAllString(sentence, -1)); n >= mostPassive {
				problems = append(problems, fmt.Sprintf("%s: %d passives: %s", p.path, n, sentence))
			}
			if whoClause.MatchString(sentence) && len(strings.Fields(sentence)) > 4 {
				problems = append(problems, fmt.Sprintf(`%s: say "if you", not "who": %s`, p.path, sentence))
			}
		}
	}
	return problems
}

func TestSentencesAreEasyToRead(t *testing.T) {
	for _, p := range allPages(t) {
		report(t, checkLanguage(p))
	}
}

func TestCommentsAreEasyToRead(t *testing.T) {
	sources := trackedFiles(t, "*.go", ":!pkg/generated", ":!examples/website/pkg/generated",
		":!docs/tutorial/13-versions/pkg/generated")
	for _, path := range slices.Sorted(maps.Keys(sources)) {
		report(t, checkComments(path, sources[path]))
	}
}

// checkComments is checkLanguage for the comments of a Go file.
func checkComments(path, source string) (problems []string) {
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, path, source, parser.ParseComments)
	if err != nil {
		return []string{err.Error()}
	}
	for _, comment := range file.Comments {
		at := fmt.Sprintf("%s:%d", path, files.Position(comment.Pos()).Line)
		text := codeInComment.ReplaceAllString(comment.Text(), "\n")
		problems = append(problems, checkLanguage(&page{path: at, lines: strings.Split(text, "\n")})...)
	}
	return problems
}

func TestCommentsThatAreHardToReadAreNoticed(t *testing.T) {
	long := strings.Repeat("and on ", 14) + "and on"
	code := "package a\n\n// a is short.\n//\n//\t" + long + "\n//\t" + long + "\n//\n// It goes " + long +
		".\nvar a int\n"
	expectProblem(t, checkComments("a.go", code), "a.go:3: a sentence of 32 words")
}

func TestSentencesThatAreHardToReadAreNoticed(t *testing.T) {
	long := strings.Repeat("and on ", 14) + "and on"
	for _, test := range []struct{ text, want string }{
		{"It goes " + long + ".", "32 words"},
		{"Who may edit Foos can do this.", "if you"},
		{"It is stopped, a Foo is quickly made, and the rest is not seen.", "3 passives"},
		{"It is short. It is short, too:\n\n- " + long + "\n- " + long, ""},
		{"Who owns the object?", ""},
	} {
		problems := checkLanguage(brokenPage(t, test.text))
		if test.want == "" && len(problems) > 0 {
			t.Errorf("%s: got %q, want no problem", test.text, problems)
		}
		if test.want != "" {
			expectProblem(t, problems, test.want)
		}
	}
}
