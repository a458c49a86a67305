package check

import (
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// codeName matches a word that can only be a name in the code: syncHandler or RealFIFO.
var codeName = regexp.MustCompile(`\b[A-Za-z]+[a-z][A-Z]\w*`)

// othersNames are names of Kubernetes and client-go, not of this code.
var othersNames = []string{"ReplicaSet", "RealFIFO", "processLoop", "accTitle"}

func (p *page) pictures() (pictures []*block) {
	return slices.DeleteFunc(slices.Clone(p.blocks), func(b *block) bool { return b.language != "mermaid" })
}

func TestNamesInPicturesAreThoseOfTheCode(t *testing.T) {
	files := repositoryFiles(t, "*.go", ":!docs/check")
	sources := strings.Join(slices.Collect(maps.Values(files)), "\n")
	for _, p := range allPages(t) {
		for _, b := range p.pictures() {
			for _, name := range codeName.FindAllString(strings.Join(b.body[1:], "\n"), -1) {
				if !slices.Contains(othersNames, name) && !strings.Contains(sources, name) {
					t.Error(p.at(b, "%s is nowhere in the code", name))
				}
			}
		}
	}
}
