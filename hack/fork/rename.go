package main

import (
	"bytes"
	"go/format"
	"path"
	"regexp"
	"slices"
	"strings"
	"unicode"
)

// word is an old name and its new one. fits reports whether it is that name between these texts.
type word struct {
	old, new string
	kind     bool // a name of the kind, which may follow an article
	fits     func(before, after string) bool
}

// renamer renames everything in one pass, so that it never renames a new name: Foo may become
// FooBar.
type renamer struct {
	words []word // the longest first
	image string // the module path, as a registry accepts it
	an    bool   // whether the new kind follows "an"
}

// newRenamer returns the renamer from one controller's names, or from those of several, to
// another's. aliases are the names
// under which Go files import packages: only they tell where the kind ends in fooscheme.
func newRenamer(old []names, new names, aliases []string) *renamer {
	r := &renamer{image: strings.ToLower(new.module), an: new.article == "an"}
	for _, old := range old {
		r.words = append(r.words, words(old, new, aliases)...)
	}
	r.sort()
	return r
}

// sort sorts the longest words first: one may contain another.
func (r *renamer) sort() {
	slices.SortStableFunc(r.words, func(a, b word) int { return len(b.old) - len(a.old) })
}

// words returns the words that become others.
func words(old, new names, aliases []string) []word {
	anything := func(string, string) bool { return true }
	oldKind, oldPlural := old.lower()
	newKind, newPlural := new.lower()
	words := []word{
		{old: old.module, new: new.module, fits: wholePath},
		{old: old.group, new: new.group, fits: wholeGroup},
		{old: old.name, new: new.name, fits: anything},
		{old: old.version, new: new.version, fits: versionOf(old)},
		{old: initial(old.version), new: initial(new.version), fits: noVersionGoesOn},
		{old: "shortName=" + old.short, new: "shortName=" + new.short, fits: wordEnds},
		{old: old.plural, new: new.plural, kind: true, fits: wordEnds},
		{old: old.kind, new: new.kind, kind: true, fits: wordEnds},
		{old: oldPlural, new: newPlural, kind: true, fits: wholeWord},
		{old: oldKind, new: newKind, kind: true, fits: wholeWord},
	}
	if old.goGroup != old.kind {
		words = append(words, word{old: old.pkg, new: new.pkg, fits: anything},
			word{old: old.goGroup, new: new.goGroup, fits: anything})
	}
	for _, alias := range aliases {
		if rest, ok := strings.CutPrefix(alias, oldKind); ok && rest != "" && alias != oldPlural {
			words = append(words, word{old: alias, new: newKind + rest, fits: wholeWord})
		}
	}
	return words
}

// initial returns the text with an upper-case initial.
func initial(text string) string { return strings.ToUpper(text[:1]) + text[1:] }

// lastRune and firstRune return what stands beside a word, 0 if nothing does.
func lastRune(text string) rune {
	for i := len(text) - 1; i >= 0 && i >= len(text)-4; i-- {
		if text[i] < 0x80 || text[i] >= 0xc0 { // where a character begins
			return firstRune(text[i:])
		}
	}
	return 0
}

func firstRune(text string) rune {
	for _, r := range text {
		return r
	}
	return 0
}

// wordEnds reports whether the word is not the beginning of a longer one.
func wordEnds(_, after string) bool { return !unicode.IsLower(firstRune(after)) }

// wholeWord reports whether the word is also not the end of one. A capital begins another word.
func wholeWord(before, after string) bool {
	return !unicode.IsLetter(lastRune(before)) && wordEnds(before, after)
}

func partOfName(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) || r == '-' }

func wholePath(before, after string) bool {
	return !partOfName(lastRune(before)) && lastRune(before) != '.' && !partOfName(firstRune(after))
}

// wholeGroup lets a dot stand before the group: foos.samplecontroller.k8s.io is our CRD.
func wholeGroup(before, after string) bool {
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

// rename renames the text of a file, or a path if file is "".
func (r *renamer) rename(file, text string) string {
	var renamed []byte
	done := 0
	for i := 0; i < len(text); {
		w := r.wordAt(text, i)
		if w == nil {
			i++
			continue
		}
		renamed = append(renamed, text[done:i]...)
		if w.kind && r.an && followsA(text[:i]) {
			end := len(bytes.TrimRight(renamed, spacing))
			if anchorA.Match(renamed) {
				end--
			}
			renamed = slices.Insert(renamed, end, 'n')
		}
		done = i + len(w.old)
		if r.isImage(file, w, text[done:]) {
			renamed = append(renamed, r.image...)
		} else {
			renamed = append(renamed, w.new...)
		}
		i = done
	}
	return string(renamed) + text[done:]
}

// wordAt returns the word that begins at this place.
func (r *renamer) wordAt(text string, i int) *word {
	for k := range r.words {
		w := &r.words[k]
		if strings.HasPrefix(text[i:], w.old) && w.fits(text[:i], text[i+len(w.old):]) {
			return w
		}
	}
	return nil
}

// isImage reports whether the module path stands for the image, whose name is lower case.
func (r *renamer) isImage(file string, w *word, after string) bool {
	if strings.ToLower(w.new) != r.image {
		return false
	}
	code := slices.Contains([]string{".go", ".mod", ".sum"}, path.Ext(file))
	return !code || strings.HasPrefix(after, ":")
}

// spacing is what may stand between an article and a kind, such as the end of a comment's line.
const spacing = " \n\t/#`*"

// anchorA matches the end of what stands before a kind in a link to a heading that says "a Foo".
var anchorA = regexp.MustCompile(`[#-]a-$`)

// ofA matches the end of a name in Go that says "a": TestStatusOfAFoo.
var ofA = regexp.MustCompile(`[a-z]A$`)

// followsA reports whether "a" stands before a kind.
func followsA(before string) bool {
	said := strings.TrimRight(before, spacing)
	if said == before {
		return ofA.MatchString(before) || anchorA.MatchString(before)
	}
	return strings.ContainsAny(before[len(said):], " \n") &&
		(strings.HasSuffix(said, "a") || strings.HasSuffix(said, "A")) &&
		!partOfName(lastRune(said[:len(said)-1]))
}

// renameFile renames the text of a file, formats Go code and tables again, and wraps what is too long
// now.
func (r *renamer) renameFile(file, text string) (string, error) {
	renamed := r.rename(file, text)
	if renamed == text {
		return text, nil
	}
	if path.Ext(file) != ".go" {
		return align(wrap(file, renamed)), nil
	}
	formatted, err := format.Source([]byte(wrapCode(renamed)))
	return wrap(file, string(formatted)), err
}
