package main

import (
	"cmp"
	"go/scanner"
	"go/token"
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

// canBreak has the tokens of Go after which a line may end. A parenthesis is the last resort.
var canBreak = map[token.Token]bool{
	token.COMMA: true, token.LAND: true, token.LOR: true, token.ADD: true, token.LPAREN: true,
}

// wrapCode breaks the lines of Go that have become too long. It leaves alone what it cannot break,
// such as imports.
func wrapCode(text string) string {
	for {
		place := placeToBreak(text)
		if place == 0 {
			return text
		}
		text = text[:place] + "\n" + strings.TrimLeft(text[place:], " ")
	}
}

// placeToBreak returns where the first line should end that is too long and can be broken, or 0.
func placeToBreak(text string) int {
	file := token.NewFileSet().AddFile("", -1, len(text))
	var s scanner.Scanner
	s.Init(file, []byte(text), nil, 0)
	begin, end, place, paren := 0, 0, 0, 0 // of the line
	var before token.Token
	for {
		position, what, _ := s.Scan()
		offset := file.Offset(position)
		if found := cmp.Or(place, paren); offset >= end && found > 0 || what == token.EOF {
			return found
		}
		if offset >= end {
			begin = strings.LastIndexByte(text[:offset], '\n') + 1
			end = offset + strings.IndexByte(text[offset:]+"\n", '\n')
		}
		after := offset + len(what.String())
		if canBreak[what] && tooLong(text[begin:end]) && !tooLong(text[begin:after]) && after < end {
			switch {
			case what != token.LPAREN:
				place = after
			case before != token.FUNC:
				paren = after
			}
		}
		before = what
	}
}

// A table that kubectl prints: a line of headings, and lines below it.
var (
	headings = regexp.MustCompile(`^[A-Z][A-Z -]+ {3,}[A-Z -]+$`)
	between  = regexp.MustCompile(` {3,}`)
)

// align aligns the columns of tables again that kubectl has printed, unless a cell is empty.
func align(text string) string {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		if columns := len(between.Split(line, -1)); columns > 1 && headings.MatchString(line) {
			end := i + 1
			for end < len(lines) && len(between.Split(lines[end], -1)) == columns {
				end++
			}
			alignTable(lines[i:end])
		}
	}
	return strings.Join(lines, "\n")
}

func alignTable(lines []string) {
	var widths []int
	for _, line := range lines {
		for i, cell := range between.Split(line, -1) {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	for k, line := range lines {
		lines[k] = ""
		for i, cell := range between.Split(line, -1) {
			lines[k] += cell + strings.Repeat(" ", widths[i]+3-utf8.RuneCountInString(cell))
		}
		lines[k] = strings.TrimRight(lines[k], " ")
	}
}
