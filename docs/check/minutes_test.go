package check

import (
	"math"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

var (
	estimate = regexp.MustCompile(`\*You will learn [^*]*?(\d+) minutes`)
	hours    = regexp.MustCompile(`(?m)^## I want to understand it · (\d+)(½?) hours`)
	row      = regexp.MustCompile(`(?m)^\| \[[^|]*\((tutorial/[^)]+)\) \|[^|]*\| (\d+) \|$`)
)

// checkMinutes returns where the map of all pages and the chapters estimate differently. minutes
// are the chapters' own, by path.
func checkMinutes(readme string, minutes map[string]string) (problems []string) {
	var sum float64
	for _, found := range row.FindAllStringSubmatch(readme, -1) {
		if own := minutes["docs/"+found[1]]; own != found[2] {
			problems = append(problems, found[1]+": "+own+" minutes, and "+found[2]+" in the table")
		}
		n, _ := strconv.ParseFloat(found[2], 64)
		sum += n / 60
	}
	total := hours.FindStringSubmatch(readme)
	if total == nil {
		return append(problems, "no heading says how many hours")
	}
	n, _ := strconv.ParseFloat(total[1]+strings.Replace(total[2], "½", ".5", 1), 64)
	if math.Abs(n-sum) > 0.25 {
		problems = append(problems, "the hours of the heading are not those of the table")
	}
	return problems
}

func TestMinutesAddUp(t *testing.T) {
	readme, minutes := "", map[string]string{}
	for _, p := range allPages(t) {
		if found := estimate.FindStringSubmatch(strings.Join(p.lines, " ")); found != nil {
			minutes[p.path] = found[1]
		}
		if p.path == "docs/README.md" {
			readme = p.prose()
		}
	}
	report(t, checkMinutes(readme, minutes))
	wrong := hours.ReplaceAllString(readme, "## I want to understand it · 99 hours")
	expectProblem(t, checkMinutes(wrong, minutes), "hours")
	expectProblem(t, checkMinutes(strings.Replace(readme, " 15 |\n", " 16 |\n", 1), minutes), "table")
}
