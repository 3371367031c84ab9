// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"html"
	"io"
)

// Sizes of the picture of the frontier in pixels: panels stand in a grid, each with
// a plot of the nodes of a workload's plans against what these cost.
const (
	frontierColumns = 4
	frontierWidth   = 270
	frontierHeight  = 190
	frontierLeft    = 56
	frontierTop     = 34
	frontierPlotW   = 190
	frontierPlotH   = 110
	frontierHead    = 50
)

// frontierPicture draws for each workload how many nodes plans have that cost a
// little more than the cheapest. Both axes are relative to the plan without a
// premium.
func frontierPicture(out io.Writer, all []Cost) error {
	panels := frontiers(all)
	rows := (len(panels) + frontierColumns - 1) / frontierColumns
	width, height := frontierColumns*frontierWidth+20, frontierHead+rows*frontierHeight
	var failed error
	print := func(format string, args ...any) {
		if failed == nil {
			_, failed = fmt.Fprintf(out, format+"\n", args...)
		}
	}
	print(`<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %d %d" font-family="sans-serif" font-size="11" fill="#222">`, width, height, width, height)
	print(`<rect width="100%%" height="100%%" fill="#fff"/>`)
	print(`<text x="16" y="22" font-size="15">Nodes of a plan against its cost above the cheapest plan found</text>`)
	print(`<text x="16" y="40" fill="#666">Points from left to right: --node-count-premium 0, 0.005, 0.01 and 0.02</text>`)
	for i, points := range panels {
		left := float64(i%frontierColumns*frontierWidth + frontierLeft)
		top := float64(frontierHead + i/frontierColumns*frontierHeight + frontierTop)
		most, nodes := 0.02, 1.0
		for _, c := range points {
			most, nodes = max(most, above(c, points[0])), max(nodes, float64(c.Nodes))
		}
		x := func(c Cost) float64 { return left + frontierPlotW*above(c, points[0])/most }
		y := func(c Cost) float64 { return top + frontierPlotH*(1-float64(c.Nodes)/nodes) }
		print(`<text x="%.0f" y="%.0f" font-weight="bold">%s</text>`, left, top-10, html.EscapeString(points[0].Workload))
		print(`<path d="M%.0f %.0fv%dh%d" fill="none" stroke="#888"/>`, left, top, frontierPlotH, frontierPlotW)
		print(`<text x="%.0f" y="%.0f" text-anchor="end">%.0f nodes</text>`, left-4, top+4, nodes)
		print(`<text x="%.0f" y="%d" text-anchor="end">0</text>`, left-4, int(top)+frontierPlotH+4)
		print(`<text x="%.0f" y="%d">+0%%</text>`, left-6, int(top)+frontierPlotH+16)
		print(`<text x="%.0f" y="%d" text-anchor="end">+%.1f%%</text>`, left+frontierPlotW, int(top)+frontierPlotH+16, 100*most)
		path := ""
		for j, c := range points {
			path += fmt.Sprintf("%c%.1f %.1f", "ML"[min(j, 1)], x(c), y(c))
		}
		print(`<path d="%s" fill="none" stroke="#1f5fbf" stroke-width="2"/>`, path)
		for _, c := range points {
			print(`<circle cx="%.1f" cy="%.1f" r="3.5" fill="#1f5fbf"><title>%d nodes, $%.3f/h</title></circle>`, x(c), y(c), c.Nodes, c.Price)
		}
	}
	print(`</svg>`)
	return failed
}

// above returns how much more a plan costs than the one without a premium, as a
// fraction; a plan that happens to be cheaper costs nothing more.
func above(c, cheapest Cost) float64 {
	if cheapest.Price == 0 {
		return 0
	}
	return max(c.Price/cheapest.Price-1, 0)
}
