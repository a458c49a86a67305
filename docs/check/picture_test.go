package check

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"example.com/sample-controller/internal/testing/must"
	"example.com/sample-controller/internal/testing/setting"
	"example.com/sample-controller/lens/browser"
)

// GitHub draws pictures with Mermaid, too.
const (
	mermaidVersion = "11.12.1"
	mermaidHash    = "198b19442f86f0b46a17e56d3abf744c3a28a3427e66fa8dada3b589a77babcc" // SHA-256
)

// codeName matches a word that can only be a name in the code: syncHandler or RealFIFO.
var codeName = regexp.MustCompile(`\b[A-Za-z]+[a-z][A-Z]\w*`)

// othersNames are names of Kubernetes and client-go, not of this code.
var othersNames = map[string]bool{"ReplicaSet": true, "RealFIFO": true, "processLoop": true, "accTitle": true}

func (p *page) pictures() (pictures []*block) {
	return slices.DeleteFunc(slices.Clone(p.blocks), func(b *block) bool { return b.language != "mermaid" })
}

func TestNamesInPicturesAreThoseOfTheCode(t *testing.T) {
	files := trackedFiles(t, "*.go", ":!docs/check")
	sources := strings.Join(slices.Collect(maps.Values(files)), "\n")
	for _, p := range allPages(t) {
		for _, b := range p.pictures() {
			for _, name := range codeName.FindAllString(strings.Join(b.body[1:], "\n"), -1) {
				if !othersNames[name] && !strings.Contains(sources, name) {
					t.Error(p.at(b, "%s is nowhere in the code", name))
				}
			}
		}
	}
}

// mermaid returns the path of Mermaid, which it downloads once.
func mermaid() (string, error) {
	const download = `mkdir -p "${0%/*}" && { [ -s "$0" ] ||
		curl -fsS "$1" | tar -xzO package/dist/mermaid.min.js >"$0"; }`
	path, err := filepath.Abs(filepath.Join(root, ".local", "mermaid-"+mermaidVersion+".js"))
	if err != nil {
		return "", err
	}
	output, err := exec.Command("bash", "-c", download, path,
		"https://registry.npmjs.org/mermaid/-/mermaid-"+mermaidVersion+".tgz").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%w: %s", err, output)
	}
	script, err := os.ReadFile(path)
	if got := fmt.Sprintf("%x", sha256.Sum256(script)); err == nil && got != mermaidHash {
		err = errors.Join(fmt.Errorf("its SHA-256 is %s, want %s", got, mermaidHash), os.Remove(path))
	}
	return path, err
}

// gallery is an HTML page that draws pictures on a light and on a dark page, as GitHub does, and notes
// those that it could not draw.
const gallery = `<!doctype html>
<meta charset="utf-8">
<style>body { font: 16px sans-serif; margin: 0; color: gray } section { padding: 2em }</style>
<script src="%s"></script>
<script>
addEventListener("load", async () => {
  const problems = []
  for (const [theme, background] of [["default", "white"], ["dark", "#0d1117"]]) {
    mermaid.initialize({startOnLoad: false, theme})
    const section = document.body.appendChild(document.createElement("section"))
    section.style.background = background
    for (const [i, {Page, Text}] of %s.entries()) {
      section.append(Page)
      const place = section.appendChild(document.createElement("div"))
      try {
        place.innerHTML = (await mermaid.render(theme + i, Text)).svg
      } catch (error) {
        problems.push(Page + ": " + error.message)
      }
    }
  }
  document.body.dataset.problems = JSON.stringify(problems)
})
</script>
<body></body>
`

var galleryProblems = regexp.MustCompile(`data-problems="([^"]*)"`)

type picture struct{ Page, Text string }

func TestPicturesAreDrawn(t *testing.T) {
	setting.Long(t)
	chromium, err := browser.Chromium()
	if err != nil {
		t.Skipf("no picture is drawn: %v", err)
	}
	script, err := mermaid()
	if err != nil {
		t.Skipf("no picture is drawn: Mermaid is not available: %v", err)
	}
	const wrong = "a picture that cannot be drawn"
	pictures := []picture{{Page: wrong, Text: "flowchart LR\n  a -->"}}
	for _, p := range allPages(t) {
		for _, b := range p.pictures() {
			pictures = append(pictures, picture{
				Page: fmt.Sprintf("%s:%d", p.path, b.line), Text: strings.Join(b.body, "\n"),
			})
		}
	}
	path := must.Get(filepath.Abs(filepath.Join(root, ".local", "pictures.html")))(t)
	page := fmt.Sprintf(gallery, "file://"+script, must.Get(json.Marshal(pictures))(t))
	must.Do(t, os.WriteFile(path, []byte(page), 0o644))
	output := must.Get(exec.Command(chromium, "--headless", "--no-sandbox", "--disable-gpu",
		"--allow-file-access-from-files", "--virtual-time-budget=600000", "--dump-dom", "file://"+path).Output())(t)
	match := galleryProblems.FindSubmatch(output)
	if match == nil {
		t.Fatalf("the browser has not finished the page: %.1000s", output)
	}
	var problems []string
	must.Do(t, json.Unmarshal([]byte(html.UnescapeString(string(match[1]))), &problems))
	noticed := 0
	for _, problem := range problems {
		if strings.HasPrefix(problem, wrong) {
			noticed++
			continue
		}
		t.Error(problem)
	}
	if noticed != 2 {
		t.Errorf("got %d problems with the picture that cannot be drawn, want one on each page", noticed)
	}
}
