package soak

import (
	"fmt"
	"math"
	"strings"
)

// The sizes of the picture and of its panels, in pixels.
const (
	panelWidth, panelHeight = 380, 190
	left, right             = 44, 12
	top, bottom             = 30, 26
)

// panel is a diagram of some figures over time.
type panel struct {
	title   string
	figures []string
}

var panels = []panel{
	{"memory in MiB: resident, and live heap", []string{"resident memory", "live heap"}},
	{"goroutines", []string{"goroutines"}},
	{"open connections", []string{"open connections"}},
	{"queue depth", []string{"queue depth"}},
}

var colours = []string{"#1f5fbf", "#2a8c4a"}

// draw returns a picture of the results, as SVG. It is white, like the other pictures in the pages,
// so that it can be read on a dark page, too.
func (r *Results) draw() []byte {
	const width, height = 2 * panelWidth, 2*panelHeight + 24
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d"
  width="%[1]d" height="%[2]d" font-family="sans-serif" font-size="11" fill="none">
<rect width="100%%" height="100%%" fill="#fff"/>
`, width, height)
	for i, panel := range panels {
		fmt.Fprintf(&b, "<g transform=\"translate(%d %d)\">\n", i%2*panelWidth, i/2*panelHeight)
		r.drawPanel(&b, panel)
		fmt.Fprintln(&b, "</g>")
	}
	fmt.Fprintf(&b, `<text x="%d" y="%d" fill="#000">Minutes. A vertical line: the API server was `+
		"killed. A dot: it was quiet; only these moments are compared.</text>\n</svg>\n",
		left, height-9)
	return []byte(b.String())
}

// scale maps minutes and values to pixels of a panel.
type scale struct{ minutes, most float64 }

func (s scale) x(minutes float64) float64 {
	return left + minutes/s.minutes*(panelWidth-left-right)
}

func (s scale) y(value float64) float64 {
	return panelHeight - bottom - value/s.most*(panelHeight-top-bottom)
}

func (r *Results) drawPanel(b *strings.Builder, p panel) {
	s := scale{minutes: r.minutes(), most: 1}
	var shown []figure
	for _, f := range figures {
		for _, name := range p.figures {
			if f.name == name {
				shown = append(shown, f)
				s.most = max(s.most, 1.1*f.most(r.Measurements))
			}
		}
	}
	fmt.Fprintf(b, `<text x="%d" y="18" fill="#000" font-size="13">%s</text>`+"\n", left, p.title)
	s.drawAxes(b)
	for _, kill := range r.Kills {
		fmt.Fprintf(b, `<path d="M%.1f %dV%d" stroke="#d9480f" stroke-opacity=".45"/>`,
			s.x(kill/60), top, panelHeight-bottom)
	}
	for i, f := range shown {
		r.drawLine(b, s, f, colours[i])
	}
}

// drawAxes draws the grid and the numbers at it.
func (s scale) drawAxes(b *strings.Builder) {
	const end = panelWidth - right
	for value, step := 0.0, step(s.most, 4); value <= s.most; value += step {
		fmt.Fprintf(b, `<path d="M%d %.1fH%d" stroke="#ddd"/>`+
			`<text x="%d" y="%.1f" fill="#000" text-anchor="end">%g</text>`,
			left, s.y(value), end, left-5, s.y(value)+4, value)
	}
	for minutes, step := 0.0, step(s.minutes, 7); minutes <= s.minutes; minutes += step {
		fmt.Fprintf(b, `<text x="%.1f" y="%d" fill="#000" text-anchor="middle">%g</text>`,
			s.x(minutes), panelHeight-bottom+15, minutes)
	}
}

// step returns a round distance of the numbers at an axis: about that many of them reach most.
func step(most float64, numbers int) float64 {
	least := most / float64(numbers)
	unit := math.Pow(10, math.Floor(math.Log10(least)))
	for _, times := range []float64{1, 2, 5} {
		if times*unit >= least {
			return max(times*unit, 0.5)
		}
	}
	return max(10*unit, 0.5)
}

// drawLine draws a figure over time, and dots where it was quiet.
func (r *Results) drawLine(b *strings.Builder, s scale, f figure, colour string) {
	var line, dots strings.Builder
	for i, measurement := range r.Measurements {
		x, y := s.x(measurement.Seconds/60), s.y(f.of(measurement))
		command := 'L'
		if i == 0 {
			command = 'M'
		}
		fmt.Fprintf(&line, "%c%.1f %.1f", command, x, y)
		if measurement.Settled > 0 {
			fmt.Fprintf(&dots, `<circle cx="%.1f" cy="%.1f" r="2.5"/>`, x, y)
		}
	}
	fmt.Fprintf(b, "\n"+`<path d="%s" stroke="%s"/>`+"\n"+`<g fill="%[2]s">%s</g>`+"\n",
		&line, colour, &dots)
}
