// SPDX-License-Identifier: Apache-2.0

package survey

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
)

// Sizes of the picture in pixels: panels stand in a grid, each with a plot.
const (
	columns     = 4
	panelWidth  = 310
	panelHeight = 250
	plotLeft    = 60
	plotTop     = 30
	plotWidth   = 240
	plotHeight  = 170
	titleHeight = 64
)

// picture draws lines on logarithmic axes.
type picture struct {
	w           io.Writer
	lines       []line
	families    []string
	nodes       []int // numbers of existing nodes, each with a style of line
	few, many   float64
	short, long float64 // seconds, powers of ten
	left, top   float64 // of the plot being drawn
	failed      error
	description string
	sizes       []int
}

// Picture writes an SVG with a plot for each family: the CPU time of the first
// decision, or of the slowest one about disruption, against the number of
// Deployments.
func Picture(w io.Writer, all []*Measurement, description string) error {
	p := &picture{w: w, lines: lines(all), few: math.Inf(1), short: 0.1, long: 1, description: description}
	for _, l := range p.lines {
		if !slices.Contains(p.families, l.family) {
			p.families = append(p.families, l.family)
		}
		if !slices.Contains(p.nodes, l.nodes) {
			p.nodes = append(p.nodes, l.nodes)
		}
		for _, at := range l.points {
			n := float64(at.deployments)
			p.few, p.many = min(p.few, n), max(p.many, n)
			if !slices.Contains(p.sizes, at.deployments) {
				p.sizes = append(p.sizes, at.deployments)
			}
			for at.cpu < p.short && p.short > 1e-4 {
				p.short /= 10
			}
			for at.cpu > p.long {
				p.long *= 10
			}
		}
	}
	slices.Sort(p.nodes)
	slices.Sort(p.sizes)
	p.draw()
	return p.failed
}

func (p *picture) print(format string, args ...any) {
	if p.failed == nil {
		_, p.failed = fmt.Fprintf(p.w, format+"\n", args...)
	}
}

func (p *picture) draw() {
	rows := (len(p.families) + columns - 1) / columns
	width, height := min(len(p.families), columns)*panelWidth+20, titleHeight+rows*panelHeight
	width = max(width, 2*panelWidth)
	p.print(`<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %d %d" font-family="sans-serif" font-size="11" fill="#222">`, width, height, width, height)
	p.print(`<rect width="100%%" height="100%%" fill="#fff"/>`)
	p.print(`<text x="16" y="22" font-size="15">CPU time of a decision against the number of Deployments</text>`)
	p.legend()
	for i, family := range p.families {
		p.left = float64(i%columns*panelWidth + plotLeft)
		p.top = float64(titleHeight + i/columns*panelHeight + plotTop)
		p.axes(family)
		for _, l := range p.lines {
			if l.family == family {
				p.line(l)
			}
		}
	}
	p.print(`</svg>`)
}

// legend says which line is which, below the title.
func (p *picture) legend() {
	x := 16.0
	entry := func(text, sample string, args ...any) {
		p.print(sample, args...)
		p.print(`<text x="%.0f" y="44">%s</text>`, x+26, escape(text))
		x += 40 + 6.3*float64(len(text))
	}
	for _, l := range p.lines {
		if l.nodes == p.nodes[0] && l.family == p.families[0] {
			entry(l.engine, `<path d="M%.0f 40h22" stroke="%s" stroke-width="2"/>`, x, color(l.engine))
		}
	}
	for _, n := range p.nodes {
		entry(fmt.Sprintf("%d existing nodes", n), `<path d="M%.0f 40h22" stroke="#555" stroke-width="1.5" stroke-dasharray="%s"/>`, x, p.dashes(n))
	}
	entry("no plan within the limit", `<path d="M%.0f 44l4 -8l4 8z" fill="none" stroke="#555"/>`, x+6)
	p.print(`<text x="16" y="60" fill="#666">%s</text>`, escape(p.description))
}

func color(engine string) string {
	if engine == Ours {
		return "#1f5fbf"
	}
	return "#d2601a"
}

func (p *picture) dashes(nodes int) string {
	styles := []string{"none", "6 3", "2 3", "8 3 2 3"}
	return styles[slices.Index(p.nodes, nodes)%len(styles)]
}

func (p *picture) x(deployments float64) float64 {
	if p.many == p.few {
		return p.left + plotWidth/2
	}
	return p.left + plotWidth*math.Log(deployments/p.few)/math.Log(p.many/p.few)
}

func (p *picture) y(cpu float64) float64 {
	share := math.Log(max(cpu, p.short)/p.short) / math.Log(p.long/p.short)
	return p.top + plotHeight*(1-share)
}

// axes draws the frame of a plot, its grid and its labels.
func (p *picture) axes(family string) {
	p.print(`<text x="%.0f" y="%.0f" font-size="13" font-weight="bold">%s</text>`, p.left, p.top-10, escape(family))
	for s := p.short; s <= p.long*1.01; s *= 10 {
		p.print(`<path d="M%.1f %.1fh%d" stroke="#ddd"/><text x="%.1f" y="%.1f" text-anchor="end">%.4g s</text>`, p.left, p.y(s), plotWidth, p.left-5, p.y(s)+4, s)
	}
	for _, n := range p.sizes {
		x := p.x(float64(n))
		p.print(`<path d="M%.1f %.1fv%d" stroke="#eee"/><text x="%.1f" y="%.1f" text-anchor="middle">%d</text>`, x, p.top, plotHeight, x, p.top+plotHeight+14, n)
	}
	p.print(`<rect x="%.1f" y="%.1f" width="%d" height="%d" fill="none" stroke="#999"/>`, p.left, p.top, plotWidth, plotHeight)
	p.print(`<text x="%.1f" y="%.1f" text-anchor="middle" fill="#666">Deployments</text>`, p.left+plotWidth/2, p.top+plotHeight+28)
	x, y := p.left-42, p.top+plotHeight/2
	p.print(`<text x="%.1f" y="%.1f" text-anchor="middle" fill="#666" transform="rotate(-90 %.1f %.1f)">CPU time</text>`, x, y, x, y)
}

// line draws one line with a mark for each size.
func (p *picture) line(l line) {
	var path strings.Builder
	for i, at := range l.points {
		fmt.Fprintf(&path, "%c%.1f %.1f", "ML"[min(i, 1)], p.x(float64(at.deployments)), p.y(at.cpu))
	}
	p.print(`<path d="%s" fill="none" stroke="%s" stroke-width="1.6" stroke-dasharray="%s"/>`, path.String(), color(l.engine), p.dashes(l.nodes))
	for _, at := range l.points {
		x, y := p.x(float64(at.deployments)), p.y(at.cpu)
		if at.over {
			p.print(`<path d="M%.1f %.1fl5 -9l5 9z" fill="#fff" stroke="%s"/>`, x-5, y+4, color(l.engine))
			continue
		}
		p.print(`<circle cx="%.1f" cy="%.1f" r="2.6" fill="%s"><title>%s, %d Deployments, %d nodes: %.3g s</title></circle>`,
			x, y, color(l.engine), escape(l.engine), at.deployments, l.nodes, at.cpu)
	}
}

func escape(text string) string {
	return strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;").Replace(text)
}
