// Package anchors knows the anchors that GitHub gives to the headings of a page.
package anchors

import (
	"regexp"
	"slices"
	"strings"
)

var (
	heading = regexp.MustCompile(`(?m)^#+ +(.*)$`)
	leftOut = regexp.MustCompile(`\]\([^)]*\)|[^\p{L}\p{Nd}_ -]`)
)

// Has reports whether a page has the heading of an anchor.
func Has(page, anchor string) bool {
	return slices.ContainsFunc(heading.FindAllStringSubmatch(page, -1), func(h []string) bool {
		text := leftOut.ReplaceAllString(strings.ToLower(h[1]), "")
		return strings.ReplaceAll(text, " ", "-") == anchor
	})
}
