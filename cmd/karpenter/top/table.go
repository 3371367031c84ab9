// SPDX-License-Identifier: Apache-2.0

package top

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Order is what nodes are sorted by.
type Order string

// The orders.
const (
	ByName Order = "name"
	ByCost Order = "cost"
	ByAge  Order = "age"
	ByCPU  Order = "CPU"
)

// next returns the order that follows.
func (o Order) next() Order {
	all := []Order{ByName, ByCost, ByAge, ByCPU}
	return all[(slices.Index(all, o)+1)%len(all)]
}

// sorted returns the nodes in the order.
func (o Order) sorted(nodes []Node) []Node {
	out := slices.Clone(nodes)
	share := func(n *Node) float64 { return float64(n.Used.MilliCPU) / float64(max(1, n.Room.MilliCPU)) }
	slices.SortStableFunc(out, func(a, b Node) int {
		switch o {
		case ByCost:
			return cmp.Compare(b.Price, a.Price)
		case ByAge:
			return a.Since.Compare(b.Since)
		case ByCPU:
			return cmp.Compare(share(&a), share(&b))
		}
		return 0 // they are by name
	})
	return out
}

// column is one of a table's.
type column struct {
	title string
	right bool
	drop  int // the highest leave a narrow screen first; 0 never leaves
}

// row is one line of a table, before bars are drawn.
type row struct {
	cells      []span
	used, room Amount
	price      float64
	priced     bool
	why        string
}

const (
	barAtLeast = 9
	barAtMost  = 20
	priceWidth = 9
	whyAtLeast = 24
	dropFirst  = 4 // the highest column.drop
	gap        = "  "
	// spacious is how many columns a screen has that shows names whole.
	spacious = 120
)

// list draws the tab in at most height lines, titles included.
func (s *Screen) list(width, height int, style Style) []line {
	switch s.Tab {
	case PodsTab:
		return s.podList(width, height, style)
	case TypesTab:
		columns := []column{{"NODES", true, 0}, {"TYPE", false, 0}, {"CAPACITY", false, 3}, {"STATUS", false, 0}, {"PODS", true, 2}}
		return s.table(columns, s.typeRows(), tableSize{width, height}, style)
	}
	if len(s.View.Nodes) == 0 {
		return []line{{{"no nodes: no pod needs one", dim}}}
	}
	columns := []column{{"NODE", false, 0}, {"TYPE", false, 0}, {"ZONE", false, 4}, {"CAPACITY", false, 3}, {"STATUS", false, 0}, {"PODS", true, 2}}
	return s.table(columns, s.nodeRows(width), tableSize{width, height}, style)
}

// hosts returns what a narrow screen shows of the nodes' names: what comes before the
// first dot, as in ip-10-0-0-1 of ip-10-0-0-1.ec2.internal, unless two have that in
// common.
func hosts(nodes []Node) map[string]string {
	out, seen := map[string]string{}, map[string]bool{}
	for i := range nodes {
		host, _, _ := strings.Cut(nodes[i].Name, ".")
		if seen[host] {
			return nil
		}
		seen[host] = true
		out[nodes[i].Name] = host
	}
	return out
}

func (s *Screen) nodeRows(width int) []row {
	var rows []row
	short := map[string]string{}
	if width < spacious {
		short = hosts(s.View.Nodes)
	}
	for _, n := range s.Order.sorted(s.View.Nodes) {
		n.Name = cmp.Or(short[n.Name], n.Name)
		rows = append(rows, row{
			cells: []span{
				{n.Name, plain}, {n.Type, plain}, {n.Zone, dim}, capacityType(n.CapacityType),
				{string(n.State) + " " + age(s.View.Now.Sub(n.Since)), stateColour(n.State)}, {fmt.Sprint(n.Pods), plain},
			},
			used: n.Used, room: n.Room, price: n.Price, priced: n.Priced, why: n.Why,
		})
	}
	return rows
}

// typeRows is one row for each type and capacity type, the highest sum first.
func (s *Screen) typeRows() []row {
	type kind struct{ name, capacityType string }
	type sum struct {
		row
		nodes, pods int
		states      map[State]int
	}
	sums := map[kind]*sum{}
	var order []kind
	for i := range s.View.Nodes {
		n := &s.View.Nodes[i]
		k := kind{n.Type, n.CapacityType}
		if sums[k] == nil {
			sums[k] = &sum{states: map[State]int{}}
			order = append(order, k)
		}
		t := sums[k]
		t.nodes, t.pods = t.nodes+1, t.pods+n.Pods
		t.states[n.State]++
		t.price, t.priced = t.price+n.Price, t.priced || n.Priced
		t.used.add(n.Used)
		t.room.add(n.Room)
	}
	slices.SortStableFunc(order, func(a, b kind) int {
		return cmp.Or(cmp.Compare(sums[b].price, sums[a].price), cmp.Compare(a.name, b.name), cmp.Compare(a.capacityType, b.capacityType))
	})
	var rows []row
	for _, k := range order {
		t := sums[k]
		t.cells = []span{{fmt.Sprint(t.nodes), bold}, {k.name, plain}, capacityType(k.capacityType), states(t.states), {fmt.Sprint(t.pods), plain}}
		rows = append(rows, t.row)
	}
	return rows
}

func states(n map[State]int) span {
	var parts []string
	shown := green
	for _, state := range []State{Launching, Booting, Ready, NotReady, Removing} {
		if n[state] > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n[state], state))
			if state != Ready {
				shown = stateColour(state)
			}
		}
	}
	return span{strings.Join(parts, ", "), shown}
}

func capacityType(name string) span {
	if name == "spot" {
		return span{name, cyan}
	}
	return span{name, plain}
}

func stateColour(state State) colour {
	switch state {
	case Ready:
		return green
	case Launching:
		return blue
	case Booting:
		return yellow
	case Removing:
		return magenta
	default:
		return red
	}
}

// podList draws the workloads with pods that wait, and why.
func (s *Screen) podList(width, height int, style Style) []line {
	waiting := s.View.Waiting()
	if len(waiting) == 0 {
		return []line{{{"no pod waits for a node", dim}}}
	}
	name := len("WORKLOAD")
	for _, w := range waiting {
		name = max(name, len(w.Namespace)+1+len(w.Name))
	}
	lines := []line{{span{"WORKLOAD", dim}.pad(name+2+len(gap), false), span{"WAITING", dim}.pad(7, true), {gap + "WHY", dim}}}
	from, to := window(s.Selected, len(waiting), height-1)
	for i, w := range waiting[from:to] {
		l := line{s.cursor(from+i, style), span{w.Namespace + "/" + w.Name, plain}.pad(name+len(gap), false),
			span{fmt.Sprint(w.Waiting), yellow}.pad(7, true), {gap + cmp.Or(w.Why, "Karpenter has published no reason yet"), plain}}
		lines = append(lines, l)
	}
	return lines
}

// window returns which rows are shown so that the one that is selected is.
func window(selected, rows, height int) (from, to int) {
	height = max(1, height)
	from = max(0, min(selected-height/2, rows-height))
	return from, min(rows, from+height)
}

// cursor marks the row that is selected.
func (s *Screen) cursor(row int, style Style) span {
	if !s.Keys || row != s.Selected || s.Tab == TypesTab {
		return span{"  ", plain}
	}
	if style.Unicode {
		return span{"▸ ", bold}
	}
	return span{"> ", bold}
}

// why says why the node that is selected was launched or is removed, where the
// table has no column for it.
func (s *Screen) why(width int) line {
	if s.Tab != NodesTab || !s.Keys || s.Selected >= len(s.View.Nodes) {
		return nil
	}
	n := s.Order.sorted(s.View.Nodes)[s.Selected]
	if n.Why == "" || width >= wideScreen {
		return nil
	}
	return line{{"  " + n.Why, dim}}
}

// wideScreen is the width from which on the table says why each node is there.
const wideScreen = 120

type tableSize struct{ width, height int }

// layout says which columns there is space for, and how wide they are.
type layout struct {
	columns []column
	widths  []int
	gone    []bool
	bars    int // 2: CPU and memory; 1: CPU
	bar     int // width of one
	why     int // width of the reason; 0 = there is none
}

// fit finds the layout for a width: when it gets narrow the bar of memory goes,
// then columns in their order.
func fit(columns []column, rows []row, width int) layout {
	l := layout{columns: columns, widths: make([]int, len(columns)), gone: make([]bool, len(columns)), bars: 2}
	longest := 0
	for i, c := range columns {
		l.widths[i] = len(c.title)
		for _, r := range rows {
			l.widths[i] = max(l.widths[i], r.cells[i].width())
			longest = max(longest, len([]rune(r.why)))
		}
	}
	if width >= wideScreen && longest > 0 {
		l.why = min(max(longest, len("WHY")), max(whyAtLeast, l.space(width)-l.bars*(barAtLeast+3)-len(gap)))
	}
	if l.space(width) < l.bars*barAtLeast {
		l.bars = 1
	}
	for drop := dropFirst; l.space(width) < l.bars*barAtLeast && drop > 0; drop-- {
		for i, c := range columns {
			l.gone[i] = l.gone[i] || c.drop == drop
		}
	}
	l.bar = max(barAtLeast, min(barAtMost, l.space(width)/l.bars))
	return l
}

// space returns what is left for bars.
func (l *layout) space(width int) int {
	left := width - 2 - priceWidth - l.bars*len(gap)
	if l.why > 0 {
		left -= l.why + len(gap)
	}
	for i := range l.columns {
		if !l.gone[i] {
			left -= l.widths[i] + len(gap)
		}
	}
	return left
}

func (l *layout) cells(cells []span) line {
	var drawn line
	for i, c := range l.columns {
		if !l.gone[i] {
			drawn = append(drawn, cells[i].pad(l.widths[i], c.right), span{gap, plain})
		}
	}
	return drawn
}

// table returns the table's lines, titles first, as many rows as there is space
// for.
func (s *Screen) table(columns []column, rows []row, size tableSize, style Style) []line {
	l := fit(columns, rows, size.width)
	titles := make([]span, len(columns))
	for i, c := range columns {
		titles[i] = span{c.title, dim}
	}
	title := append(line{{"  ", plain}}, l.cells(titles)...)
	title = append(title, span{"CPU", dim}.pad(l.bar+len(gap), false))
	if l.bars == 2 {
		title = append(title, span{"MEMORY", dim}.pad(l.bar+len(gap), false))
	}
	title = append(title, span{"$/HOUR", dim}.pad(priceWidth, true))
	if l.why > 0 {
		title = append(title, span{gap + "WHY", dim})
	}
	lines := []line{title}
	space := max(1, size.height-1)
	if len(rows) > space {
		space = max(1, space-1)
	}
	from, to := window(s.Selected, len(rows), space)
	for i, r := range rows[from:to] {
		lines = append(lines, l.row(s.cursor(from+i, style), r, style))
	}
	if rest := len(rows) - (to - from); rest > 0 {
		lines = append(lines, line{{fmt.Sprintf("  %d to %d of %d", from+1, to, len(rows)), dim}})
	}
	return lines
}

func (l *layout) row(cursor span, r row, style Style) line {
	drawn := append(line{cursor}, l.cells(r.cells)...)
	drawn = append(drawn, bar(r.used.MilliCPU, r.room.MilliCPU, l.bar, style)...)
	drawn = append(drawn, span{gap, plain})
	if l.bars == 2 {
		drawn = append(drawn, bar(r.used.Memory, r.room.Memory, l.bar, style)...)
		drawn = append(drawn, span{gap, plain})
	}
	price := fmt.Sprintf("%.4f", r.price)
	if !r.priced {
		price = "?"
	}
	drawn = append(drawn, span{price, plain}.pad(priceWidth, true))
	if l.why > 0 {
		drawn = append(drawn, span{gap + r.why, dim})
	}
	return drawn
}
