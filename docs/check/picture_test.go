package check

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"flag"
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
	"example.com/sample-controller/lens/browser"
)

var drawPictures = flag.Bool("pictures", false, "draw the pictures of all pages in a real Chromium, "+
	"with Mermaid from the npm registry; look at them in .local/pictures")

// GitHub draws pictures with Mermaid, too.
const (
	mermaidVersion = "11.12.1"
	mermaidHash    = "198b19442f86f0b46a17e56d3abf744c3a28a3427e66fa8dada3b589a77babcc" // SHA-256
)

// codeName matches a word that can only be a name in the code: syncHandler or RealFIFO.
var codeName = regexp.MustCompile(`\b[A-Za-z]+[a-z][A-Z]\w*`)

func (p *page) pictures() (pictures []*block) {
	for _, b := range p.blocks {
		if b.language == "mermaid" {
			pictures = append(pictures, b)
		}
	}
	return pictures
}

// checkPictures returns the names in a page's pictures that occur in none of the sources.
func checkPictures(p *page, sources string) (problems []string) {
	for _, b := range p.pictures() {
		for _, name := range codeName.FindAllString(strings.Join(b.body[1:], "\n"), -1) {
			if !othersNames[name] && !strings.Contains(sources, name) {
				problems = append(problems, p.at(b, "%s is nowhere in the code", name))
			}
		}
	}
	return problems
}

// othersNames are names of Kubernetes and client-go, not of this code.
var othersNames = map[string]bool{"ReplicaSet": true, "processLoop": true, "accTitle": true}

func TestNamesInPicturesAreThoseOfTheCode(t *testing.T) {
	files := trackedFiles(t, "*.go", ":!docs/check")
	sources, seen := strings.Join(slices.Collect(maps.Values(files)), "\n"), 0
	for _, p := range allPages(t) {
		report(t, checkPictures(p, sources))
		seen += len(p.pictures())
	}
	if seen == 0 {
		t.Error("there are no pictures")
	}
}

// mermaid returns the path of Mermaid, which it downloads once.
func mermaid() (string, error) {
	path, err := filepath.Abs(filepath.Join(root, ".local", "mermaid-"+mermaidVersion+".js"))
	if err != nil {
		return "", err
	}
	const download = `mkdir -p "${0%/*}" && { [ -s "$0" ] ||
		curl -fsS "$1" | tar -xzO package/dist/mermaid.min.js >"$0"; }`
	output, err := exec.Command("bash", "-c", download, path,
		"https://registry.npmjs.org/mermaid/-/mermaid-"+mermaidVersion+".tgz").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%w: %s", err, output)
	}
	script, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	if got := fmt.Sprintf("%x", sha256.Sum256(script)); got != mermaidHash {
		return "", errors.Join(fmt.Errorf("its SHA-256 is %s, want %s", got, mermaidHash), os.Remove(path))
	}
	return path, nil
}

// gallery is an HTML page that draws pictures, and notes those that it could not draw.
const gallery = `<!doctype html>
<meta charset="utf-8">
<style>body { font: 16px sans-serif; margin: 2em; background: BACKGROUND; color: gray }</style>
<script src="MERMAID"></script>
<script>
mermaid.initialize({startOnLoad: false, theme: "THEME"})
addEventListener("load", async () => {
  const problems = []
  for (const [i, {Page, Text}] of PICTURES.entries()) {
    document.body.append(Page)
    const place = document.createElement("div")
    document.body.append(place)
    try {
      place.innerHTML = (await mermaid.render("picture" + i, Text)).svg
    } catch (error) {
      problems.push(Page + ": " + error.message)
    }
  }
  document.body.dataset.problems = JSON.stringify(problems)
})
</script>
<body></body>
`

var galleryProblems = regexp.MustCompile(`data-problems="([^"]*)"`)

// draw draws pictures in a browser, in the colours of a theme, into .local/pictures, and returns
// those that it could not draw.
func draw(browser, mermaid, theme string, pictures []picture) (problems []string, err error) {
	folder, err := filepath.Abs(filepath.Join(root, ".local", "pictures"))
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return nil, err
	}
	list, err := json.Marshal(pictures)
	if err != nil {
		return nil, err
	}
	background := map[string]string{"default": "white", "dark": "#0d1117"}[theme]
	text := strings.NewReplacer("MERMAID", "file://"+mermaid, "THEME", theme,
		"BACKGROUND", background, "PICTURES", string(list)).Replace(gallery)
	path := filepath.Join(folder, theme+".html")
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		return nil, err
	}
	output, err := exec.Command(browser, "--headless", "--no-sandbox", "--disable-gpu",
		"--allow-file-access-from-files", "--virtual-time-budget=600000", "--dump-dom",
		"file://"+path).Output()
	if err != nil {
		return nil, err
	}
	match := galleryProblems.FindSubmatch(output)
	if match == nil {
		return nil, fmt.Errorf("the browser has not finished the page: %.1000s", output)
	}
	err = json.Unmarshal([]byte(html.UnescapeString(string(match[1]))), &problems)
	return problems, err
}

type picture struct{ Page, Text string }

func TestPicturesAreDrawn(t *testing.T) {
	if !*drawPictures {
		t.Skip("pictures are drawn only with -pictures")
	}
	chromium, err := browser.Chromium()
	if err != nil {
		t.Skipf("no picture is drawn: %v", err)
	}
	script, err := mermaid()
	if err != nil {
		t.Skipf("no picture is drawn: Mermaid is not available: %v", err)
	}
	var pictures []picture
	for _, p := range allPages(t) {
		for _, b := range p.pictures() {
			pictures = append(pictures, picture{
				Page: fmt.Sprintf("%s:%d", p.path, b.line), Text: strings.Join(b.body, "\n"),
			})
		}
	}
	for _, theme := range []string{"default", "dark"} {
		problems := must.Get(draw(chromium, script, theme, pictures))(t)
		report(t, problems)
	}
	wrong := []picture{{Page: "wrong", Text: "flowchart LR\n  a -->"}}
	expectProblem(t, must.Get(draw(chromium, script, "neutral", wrong))(t), "wrong")
}
