// SPDX-License-Identifier: Apache-2.0

// Pictures draws the charts of the documents from data in the repository:
//
//	cd docs/pictures && go run . ..
//
// Each chart has a background of its own, so that it can be read on light and on
// dark pages.
package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"image/color"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: pictures DOCS")
		os.Exit(2)
	}
	pictures, err := Draw(os.Args[1])
	for name, picture := range pictures {
		err = cmp.Or(err, os.WriteFile(filepath.Join(os.Args[1], "screens", name), picture, 0o644))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "pictures:", err)
		os.Exit(1)
	}
}

// Draw returns the charts by the names of their files, from the data that belongs to
// the documents in the folder.
func Draw(docs string) (map[string][]byte, error) {
	results, err := readResults(filepath.Join(docs, "..", "bench", "results.json"))
	if err != nil {
		return nil, err
	}
	day, err := readDay(filepath.Join(docs, "reliability.md"))
	if err != nil {
		return nil, err
	}
	out := map[string][]byte{}
	for name, p := range map[string]func() ([]byte, error){
		"price.svg": func() ([]byte, error) { return drawPrices(results) },
		"time.svg":  func() ([]byte, error) { return drawTimes(results) },
		"day.svg":   func() ([]byte, error) { return drawDay(day) },
	} {
		if out[name], err = p(); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	return out, nil
}

// Result is what one planner did with one workload.
type Result struct {
	Workload, Engine             string
	Pods, Scheduled              int
	PricePerHour, Bound, Seconds float64
}

// ours is the name of our planner in the results.
const ours = "ours"

func readResults(path string) ([]Result, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var out []Result
	return out, json.Unmarshal(text, &out)
}

// Day is what one policy did in the steady day.
type Day struct {
	Policy                       string
	Evictions, Launches, Dollars float64 // per hour
}

// readDay reads the first table below the heading A steady day.
func readDay(path string) ([]Day, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	_, section, _ := strings.Cut(string(text), "\n## A steady day\n")
	var head []string
	rows := map[string][]float64{}
	for line := range strings.Lines(section) {
		if !strings.HasPrefix(line, "|") {
			if head != nil {
				break
			}
			continue
		}
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		if head == nil {
			head = cells
			continue
		}
		for _, cell := range cells[1:] {
			number := regexp.MustCompile(`[\d.]+`).FindString(strings.ReplaceAll(cell, ",", ""))
			value, _ := strconv.ParseFloat(number, 64) // cells without a number are not used
			name := strings.TrimSpace(cells[0])
			rows[name] = append(rows[name], value)
		}
	}
	hours, evicted, launched, dollars := rows["hours counted"], rows["pods evicted, for each of those"], rows["instances launched"], rows["dollars per hour"]
	var out []Day
	for i, policy := range head {
		policy = strings.ReplaceAll(strings.TrimSpace(policy), "`", "")
		if policy != "now" && !strings.Contains(policy, "upstream") {
			continue
		}
		for _, row := range [][]float64{hours, evicted, launched, dollars} {
			if len(row) < i || row[i-1] == 0 {
				return nil, fmt.Errorf("%s: the table of the steady day lacks a number for %s", path, policy)
			}
		}
		out = append(out, Day{policy, evicted[i-1] / hours[i-1], launched[i-1] / hours[i-1], dollars[i-1]})
	}
	if len(out) < 2 {
		return nil, fmt.Errorf("%s: no table of the steady day", path)
	}
	return out, nil
}

var (
	blue   = color.NRGBA{0x1f, 0x5f, 0xbf, 0xff}
	orange = color.NRGBA{0xd9, 0x6b, 0x0b, 0xff}
	gray   = color.NRGBA{0x55, 0x55, 0x55, 0xff}
)

const (
	width = 21 * vg.Centimeter
	space = vg.Length(8)
)

// engineColor is the color of a planner in all charts.
func engineColor(engine string) color.Color {
	if engine == ours {
		return blue
	}
	return orange
}

func engineName(engine string) string {
	if engine == ours {
		return "this project"
	}
	return engine
}

func newPlot(title, x, y string) *plot.Plot {
	p := plot.New()
	p.Title.Text, p.X.Label.Text, p.Y.Label.Text = title, x, y
	p.Title.TextStyle.Font.Size, p.Title.Padding = 15, space
	for _, style := range []*draw.TextStyle{&p.X.Label.TextStyle, &p.Y.Label.TextStyle, &p.X.Tick.Label, &p.Y.Tick.Label, &p.Legend.TextStyle} {
		style.Font.Size = 12
	}
	p.Title.TextStyle.Font.Variant, p.Legend.TextStyle.Font.Variant = "Sans", "Sans"
	for _, style := range []*draw.TextStyle{&p.X.Label.TextStyle, &p.Y.Label.TextStyle, &p.X.Tick.Label, &p.Y.Tick.Label} {
		style.Font.Variant = "Sans"
	}
	return p
}

// render returns plots beside each other as SVG.
func render(height vg.Length, plots ...*plot.Plot) ([]byte, error) {
	canvas := vgsvg.New(width, height)
	tiles := draw.Tiles{Rows: 1, Cols: len(plots), PadX: 2 * space, PadTop: space, PadBottom: space, PadLeft: space, PadRight: 2 * space}
	all := draw.New(canvas)
	all.SetColor(color.White)
	all.Fill(all.Rectangle.Path())
	for i, p := range plots {
		p.Draw(tiles.At(all, i, 0))
	}
	var out bytes.Buffer
	_, err := canvas.WriteTo(&out)
	return out.Bytes(), err
}

// drawPrices draws how many times the proven lower bound the plans cost. It leaves
// out workloads that not all planners finished, and those of a single pod.
func drawPrices(results []Result) ([]byte, error) {
	var names []string
	values := map[string]plotter.XYs{}
	unfinished := map[string]bool{}
	for _, r := range results {
		unfinished[r.Workload] = unfinished[r.Workload] || r.Scheduled < r.Pods || r.Bound <= 0 || r.Pods < 2
	}
	results = slices.Clone(results)
	slices.Reverse(results) // the first at the top
	for _, r := range results {
		if unfinished[r.Workload] {
			continue
		}
		if !slices.Contains(names, r.Workload) {
			names = append(names, r.Workload)
		}
		at := plotter.XY{X: r.PricePerHour / r.Bound, Y: float64(slices.Index(names, r.Workload))}
		values[r.Engine] = append(values[r.Engine], at)
	}
	p := newPlot("Price of a plan, as a multiple of the lower bound that no plan can beat", "price ÷ lower bound (1 = proven optimal)", "")
	p.NominalY(names...)
	p.Add(plotter.NewGrid())
	for _, engine := range []string{"upstream", ours} {
		points, err := plotter.NewScatter(values[engine])
		if err != nil {
			return nil, err
		}
		points.GlyphStyle = draw.GlyphStyle{Color: engineColor(engine), Radius: 5, Shape: draw.CircleGlyph{}}
		p.Add(points)
		p.Legend.Add(engineName(engine), points)
	}
	p.X.Min, p.X.Max, p.Y.Min = 0.95, p.X.Max+0.2, -0.6
	p.Legend.Padding = space
	return render(vg.Length(len(names))*0.6*vg.Centimeter+3*vg.Centimeter, p)
}

// drawTimes draws how long plans of more and more pods take, of the workloads that
// there are in several sizes.
func drawTimes(results []Result) ([]byte, error) {
	size := regexp.MustCompile(`^(\w+)-\d+-(.*)$`)
	lines := map[string]plotter.XYs{}
	var names []string
	for _, r := range results {
		m := size.FindStringSubmatch(r.Workload)
		if m == nil || r.Scheduled < r.Pods || m[1] != "mixed" && m[1] != "topology" {
			continue
		}
		name := r.Engine + " " + m[1] + " " + m[2]
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
		lines[name] = append(lines[name], plotter.XY{X: float64(r.Pods), Y: r.Seconds})
	}
	p := newPlot("Time to plan for pending pods, from nothing", "pending pods", "seconds")
	p.X.Scale, p.Y.Scale = plot.LogScale{}, plot.LogScale{}
	p.X.Tick.Marker = plot.ConstantTicks{{Value: 1000, Label: "1,000"}, {Value: 5000, Label: "5,000"}, {Value: 10000, Label: "10,000"}}
	p.Y.Tick.Marker = plot.ConstantTicks{{Value: 0.01, Label: "0.01"}, {Value: 0.1, Label: "0.1"}, {Value: 1, Label: "1"}, {Value: 10, Label: "10"}, {Value: 100, Label: "100"}}
	p.Add(plotter.NewGrid())
	shown := map[string]bool{}
	for _, name := range names {
		if len(lines[name]) < 2 {
			continue
		}
		line, points, err := plotter.NewLinePoints(lines[name])
		if err != nil {
			return nil, err
		}
		engine, workload, _ := strings.Cut(name, " ")
		line.Color, line.Width = engineColor(engine), 2
		points.GlyphStyle = draw.GlyphStyle{Color: engineColor(engine), Radius: 4, Shape: draw.CircleGlyph{}}
		label := engineName(engine) + ", no pod affinity"
		if strings.HasPrefix(workload, "topology") {
			line.Dashes, points.Shape = []vg.Length{5, 4}, draw.SquareGlyph{}
			label = engineName(engine) + ", with spread and affinity"
		}
		p.Add(line, points)
		if !shown[label] {
			shown[label] = true
			p.Legend.Add(label, line, points)
		}
	}
	p.X.Min, p.X.Max, p.Y.Min, p.Y.Max = 900, 11000, 0.01, 3000 // the legend is above the lines
	p.Legend.Top, p.Legend.Left, p.Legend.Padding = true, true, space
	return render(11*vg.Centimeter, p)
}

// drawDay draws what consolidation costs in disruption and in dollars, by policy.
func drawDay(days []Day) ([]byte, error) {
	var plots []*plot.Plot
	for _, panel := range []struct {
		title string
		value func(Day) float64
	}{
		{"pods evicted per hour", func(d Day) float64 { return d.Evictions }},
		{"instances launched per hour", func(d Day) float64 { return d.Launches }},
		{"dollars per hour", func(d Day) float64 { return d.Dollars }},
	} {
		p := newPlot(panel.title, "", "")
		p.Title.TextStyle.Font.Size = 12
		var names []string
		for i, d := range days {
			bar, err := plotter.NewBarChart(plotter.Values{panel.value(d)}, 38)
			if err != nil {
				return nil, err
			}
			bar.XMin, bar.Color, bar.LineStyle.Width = float64(i), orange, 0
			name := strings.TrimSuffix(d.Policy, " of upstream")
			if d.Policy == "now" {
				bar.Color, name = blue, "this project"
			}
			name = strings.NewReplacer("WhenEmptyOrUnderutilized", "upstream\nWhenEmptyOr-\nUnderutilized", "Balanced", "upstream\nBalanced").Replace(name)
			names = append(names, name)
			label, err := plotter.NewLabels(plotter.XYLabels{
				XYs: plotter.XYs{{X: float64(i), Y: panel.value(d)}}, Labels: []string{strconv.FormatFloat(panel.value(d), 'f', 1, 64)},
			})
			if err != nil {
				return nil, err
			}
			label.TextStyle[0].XAlign, label.TextStyle[0].Font.Variant, label.Offset.Y = draw.XCenter, "Sans", 3
			p.Add(bar, label)
		}
		p.NominalX(names...)
		p.HideY()
		p.X.Tick.Label.Font.Size, p.X.Tick.Label.YAlign = 7.5, draw.YTop
		p.X.Min, p.X.Max = -0.6, float64(len(days))-0.4
		p.Y.Min, p.Y.Max = 0, 1.15*p.Y.Max
		plots = append(plots, p)
	}
	return render(7.5*vg.Centimeter, plots...)
}
