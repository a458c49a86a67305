package main

import (
	"go/format"
	"path"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// word is an old name and its new one. fits reports whether it is that name between these texts.
type word struct {
	old, new string
	fits     func(before, after string) bool
}

// renamer has the words that become others, the longest first, because one may contain another. It
// renames everything in one pass, and so never renames a new name: Foo may become FooBar.
type renamer []word

// newRenamer returns the renamer from the names of one or more controllers to another's. aliases are
// the names under which Go files import packages: only they tell where the kind ends in fooscheme.
func newRenamer(old []names, new names, aliases []string) renamer {
	var r renamer
	for _, old := range old {
		r = append(r, words(old, new, aliases)...)
	}
	slices.SortStableFunc(r, func(a, b word) int { return len(b.old) - len(a.old) })
	return r
}

// imported matches an import under another name.
var imported = regexp.MustCompile(`(?m)^\t(\w+) "`)

// newName matches the name of an image in a kustomization. hack/home may have chosen another registry.
var newName = regexp.MustCompile(`(?m)^( *newName: ).*`)

// library is the folder whose module a fork has as it is, under its own import path.
const library = "explore"

// words returns the words that become others.
func words(old, new names, aliases []string) []word {
	oldKind, oldPlural := old.lower()
	newKind, newPlural := new.lower()
	anything := func(string, string) bool { return true }
	words := []word{
		{old.module + "/" + library, old.module + "/" + library, anything},
		{old.module, new.module, func(before, after string) bool {
			return wholePath(before, after) && lastRune(before) != '.'
		}},
		{old.group, new.group, wholePath},
		{old.name, new.name, anything},
		{old.version, new.version, versionOf(old)},
		{initial(old.version), initial(new.version), noVersionGoesOn},
		{"shortName=" + old.short, "shortName=" + new.short, wordEnds},
		{old.plural, new.plural, wordEnds},
		{old.kind, new.kind, wordEnds},
		{oldPlural, newPlural, wholeWord},
		{oldKind, newKind, wholeWord},
	}
	if old.goGroup != old.kind {
		words = append(words, word{old.pkg, new.pkg, anything}, word{old.goGroup, new.goGroup, anything})
	}
	for _, alias := range aliases {
		if rest, ok := strings.CutPrefix(alias, oldKind); ok && rest != "" && alias != oldPlural {
			words = append(words, word{alias, newKind + rest, wholeWord})
		}
	}
	return words
}

// lastRune and firstRune return what stands beside a word, or utf8.RuneError if nothing does.
func lastRune(text string) rune { r, _ := utf8.DecodeLastRuneInString(text); return r }

func firstRune(text string) rune { r, _ := utf8.DecodeRuneInString(text); return r }

// wordEnds reports whether the word is not the beginning of a longer one.
func wordEnds(_, after string) bool { return !unicode.IsLower(firstRune(after)) }

// wholeWord reports whether the word is also not the end of one. A capital begins another word.
func wholeWord(before, after string) bool {
	return !unicode.IsLetter(lastRune(before)) && wordEnds(before, after)
}

func partOfName(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) || r == '-' }

// wholePath lets a dot stand before a group: foos.samplecontroller.k8s.io is our CRD.
func wholePath(before, after string) bool {
	return !partOfName(lastRune(before)) && !partOfName(firstRune(after))
}

func noVersionGoesOn(_, after string) bool {
	return !unicode.IsDigit(firstRune(after)) && !unicode.IsLower(firstRune(after))
}

// versionOf recognizes the version of our API. After a slash, it is ours if our group or our
// package stands before that, and otherwise another API's, as in config.kwok.x-k8s.io/v1alpha1.
func versionOf(n names) func(before, after string) bool {
	owner := regexp.MustCompile(`([\w.-]+)/$`)
	return func(before, after string) bool {
		if partOfName(lastRune(before)) || !noVersionGoesOn(before, after) {
			return false
		}
		found := owner.FindStringSubmatch(before[max(0, len(before)-300):])
		return found == nil || found[1] == n.group || found[1] == n.pkg
	}
}

// rename renames a text or a path.
func (r renamer) rename(text string) string {
	var renamed strings.Builder
	done := 0
	for i := 0; i < len(text); i++ {
		for _, w := range r {
			if strings.HasPrefix(text[i:], w.old) && w.fits(text[:i], text[i+len(w.old):]) {
				renamed.WriteString(text[done:i] + w.new)
				done = i + len(w.old)
				i = done - 1
				break
			}
		}
	}
	return renamed.String() + text[done:]
}

// renameFiles renames files and what is in them, and formats Go code. Outside of Go, the module path
// is the name of the image, which has only small letters.
func renameFiles(files map[string]string, old []names, new names) (map[string]string, error) {
	var aliases []string
	for _, text := range files {
		for _, alias := range imported.FindAllStringSubmatch(text, -1) {
			aliases = append(aliases, alias[1])
		}
	}
	slices.Sort(aliases)
	aliases = slices.Compact(aliases)
	image := new
	image.module = strings.ToLower(new.module)
	inGo, elsewhere := newRenamer(old, new, aliases), newRenamer(old, image, aliases)
	article := regexp.MustCompile(`\b([aA])([\s/#*` + "`" + `]*\s[/#*` + "`" + `]*(?:` + new.kind + `|` +
		strings.ToLower(new.kind) + `)\b)`)
	all := map[string]string{}
	for file, text := range files {
		r := elsewhere
		if slices.Contains([]string{".go", ".mod", ".sum"}, path.Ext(file)) {
			r = inGo
		}
		text = newName.ReplaceAllString(r.rename(text), "${1}"+image.module)
		if needsAn(new.kind) {
			text = article.ReplaceAllString(text, "${1}n$2")
		}
		if path.Ext(file) == ".go" {
			formatted, err := format.Source([]byte(text))
			if err != nil {
				return nil, err
			}
			text = string(formatted)
		}
		all[inGo.rename(file)] = text
	}
	return all, nil
}
