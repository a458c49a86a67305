package main

import (
	"cmp"
	"slices"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/plotutil"
	"gonum.org/v1/plot/vg"
)

const plotWidth, plotHeight = 16 * vg.Centimeter, 9 * vg.Centimeter

// chart is a plot of lines, one for each contender.
type chart struct {
	title, x, y string
	lines       []line
	points      bool // draw a mark at each point
}

type line struct {
	contender contender
	points    plotter.XYs
}

// write writes the chart as SVG.
func (c chart) write(path string) error {
	p := plot.New()
	p.Title.Text, p.X.Label.Text, p.Y.Label.Text = c.title, c.x, c.y
	p.X.Min, p.Y.Min = 0, 0
	p.Title.Padding, p.Legend.Padding = vg.Millimeter, vg.Millimeter
	p.Legend.YOffs = vg.Millimeter // at the bottom right, where there is no line
	p.Add(plotter.NewGrid())
	for i, line := range c.lines {
		l, points, err := plotter.NewLinePoints(line.points)
		if err != nil {
			return err
		}
		l.Color, points.Color, points.Shape = plotutil.Color(i), plotutil.Color(i), plotutil.Shape(i)
		l.Width = vg.Points(1.5)
		if line.contender.isReference() {
			l.Dashes = plotutil.Dashes(1)
		}
		p.Add(l)
		p.Legend.Add(line.contender.title, l)
		if c.points {
			p.Add(points)
		}
	}
	return p.Save(plotWidth, plotHeight, path)
}

// plots returns the charts of the page, by the names of their files.
func plots(short, long *Results) map[string]chart {
	backlog := chart{
		title: "Deployments made of Foos that were there before",
		x:     "seconds since the first request", y: "Deployments",
	}
	cpu := chart{
		title: "CPU time of the controller for each Foo of a burst, others paused",
		x:     "Foos", y: "ms", points: true,
	}
	memory := chart{
		title: "Resident memory of the controller after a burst, others paused",
		x:     "Foos", y: "MiB", points: true,
	}
	for _, c := range contenders {
		if c.defaults {
			continue
		}
		if runs := short.repetitions(c.id, modePaused, 0); len(runs) > 0 {
			slices.SortFunc(runs, func(a, b Result) int {
				const rate = "backlog/Deployments per second"
				return cmp.Compare(a.Figures[rate], b.Figures[rate])
			})
			backlog.lines = append(backlog.lines, line{c, curvePointsOf(runs[len(runs)/2])})
		}
		if c.isReference() {
			continue
		}
		const mib = 1 << 20
		cpu.lines = append(cpu.lines,
			line{c, long.series(c.id, "burst/cpu ms per Foo/controller", 1)})
		memory.lines = append(memory.lines, line{c, long.series(c.id, "memory/idle", mib)})
	}
	return map[string]chart{"backlog": backlog, "cpu": cpu, "memory": memory}
}

// curvePointsOf returns the curve of a run, with numbers of Deployments.
func curvePointsOf(run Result) plotter.XYs {
	points := plotter.XYs{{}}
	for i, seconds := range run.Curve {
		deployments := float64(run.Foos*(i+1)) / float64(len(run.Curve))
		points = append(points, plotter.XY{X: seconds, Y: deployments})
	}
	return points
}

// series returns a figure, in that unit, by the number of Foos, with the others paused.
func (r *Results) series(contender, figure string, unit float64) (points plotter.XYs) {
	for _, foos := range r.sizes() {
		if value, ok := r.median(contender, modePaused, foos, figure); ok {
			points = append(points, plotter.XY{X: float64(foos), Y: value / unit})
		}
	}
	return points
}
