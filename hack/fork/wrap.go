package main

import (
	"path"
	"regexp"
	"strings"
	"unicode/utf8"
)

// maxColumns is how long a line of text may be. New names may be longer than the old ones.
const maxColumns = 100

// proseLine matches a line of text, with the marker of a comment. Its groups are the indentation
// with that marker, the mark of a list item, and the text.
var (
	goProse       = regexp.MustCompile(`^(\t*// *)(- |)([^\s+].*)$`)
	hashProse     = regexp.MustCompile(`^( *# *)(- |)([^\s!].*)$`)
	markdownProse = regexp.MustCompile(`^( *)(- |[0-9]+\. |)([^\s|#<!].*)$`)
)

// wrap breaks the lines of paragraphs and comments that have become too long. It leaves code,
// tables and blocks as they are.
func wrap(file, text string) string {
	var prose *regexp.Regexp
	switch extension := path.Ext(file); {
	case extension == ".md":
		prose = markdownProse
	case extension == ".go":
		prose = goProse
	case extension == ".yaml", strings.HasPrefix(text, "#!"):
		prose = hashProse
	default:
		return text
	}
	lines := strings.Split(text, "\n")
	var wrapped []string
	inBlock := false
	for i := 0; i < len(lines); {
		if prose == markdownProse && strings.HasPrefix(strings.TrimSpace(lines[i]), "```") {
			inBlock = !inBlock
		}
		end := i + 1
		if !inBlock && tooLong(lines[i]) && prose.MatchString(lines[i]) {
			end = endOfParagraph(lines, i, prose)
			wrapped = append(wrapped, wrapParagraph(lines[i:end], prose)...)
		} else {
			wrapped = append(wrapped, lines[i])
		}
		i = end
	}
	return strings.Join(wrapped, "\n")
}

func tooLong(line string) bool { return utf8.RuneCountInString(line) > maxColumns }

// continuation returns with what the lines begin that continue a line of text.
func continuation(line string, prose *regexp.Regexp) string {
	parts := prose.FindStringSubmatch(line)
	return parts[1] + strings.Repeat(" ", len(parts[2]))
}

// endOfParagraph returns the number of the line after the paragraph of line i.
func endOfParagraph(lines []string, i int, prose *regexp.Regexp) int {
	begin := continuation(lines[i], prose)
	for i++; i < len(lines); i++ {
		parts := prose.FindStringSubmatch(lines[i])
		if parts == nil || parts[1] != begin || parts[2] != "" || strings.HasPrefix(parts[3], "```") {
			break
		}
	}
	return i
}

// wrapParagraph returns the lines with the same words, none of them too long if that can be.
func wrapParagraph(lines []string, prose *regexp.Regexp) (wrapped []string) {
	parts := prose.FindStringSubmatch(lines[0])
	line, next := parts[1]+parts[2], continuation(lines[0], prose)
	empty := true
	for _, paragraphLine := range lines {
		for word := range strings.FieldsSeq(prose.FindStringSubmatch(paragraphLine)[3]) {
			if !empty && tooLong(line+" "+word) {
				wrapped, line, empty = append(wrapped, line), next, true
			}
			if !empty {
				line += " "
			}
			line, empty = line+word, false
		}
	}
	return append(wrapped, line)
}
