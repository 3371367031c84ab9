package console

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"karpenter/sandbox/fleet"
)

// column is one of the table's, less the bars and the price, which every table has.
type column struct {
	title string
	right bool
	drop  int // the highest leave a narrow screen first; 0 never leaves
}

// row is one line of the table, before bars are drawn.
type row struct {
	cells      []span
	used, room fleet.Amount
	price      float64
}

const (
	barAtLeast = 9
	barAtMost  = 24
	priceWidth = 9
	dropFirst  = 4 // the highest column.drop
	gap        = "  "
)

// table draws the machines in at most height lines, title included: one by one if they fit, else by kind.
func (s *Screen) table(width, height int, style Style) []line {
	if len(s.View.Machines) == 0 {
		return []line{{{"no nodes: nothing needs one", dim}}}
	}
	columns := []column{{"NODE", false, 0}, {"TYPE", false, 0}, {"ZONE", false, 4}, {"CAPACITY", false, 3}, {"STATUS", false, 0}, {"PODS", true, 2}}
	rows := s.machineRows()
	if len(rows)+1 > height {
		columns = []column{{"NODES", true, 0}, {"TYPE", false, 0}, {"CAPACITY", false, 3}, {"STATUS", false, 0}, {"PODS", true, 2}}
		rows = s.kindRows()
	}
	more := 0
	if len(rows)+1 > height {
		keep := max(0, height-2)
		more = len(rows) - keep
		rows = rows[:keep]
	}
	lines := draw(columns, rows, width, style)
	if more > 0 {
		lines = append(lines, line{{fmt.Sprintf("and %d more", more), dim}})
	}
	return lines
}

func (s *Screen) machineRows() []row {
	var rows []row
	for i := range s.View.Machines {
		m := &s.View.Machines[i]
		rows = append(rows, row{
			cells: []span{
				{m.Name, plain}, {m.Type, plain}, {m.Zone, dim}, capacityType(m.CapacityType),
				{string(m.State) + " " + age(s.Now.Sub(m.Since)), stateColor(m.State)}, {fmt.Sprint(m.Pods), plain},
			},
			used: m.Used, room: m.Room, price: m.Price,
		})
	}
	return rows
}

// kindRows is one row for each type and capacity type, the dearest sum first.
func (s *Screen) kindRows() []row {
	type kind struct{ name, capacityType string }
	type sum struct {
		row
		nodes, pods int
		states      map[fleet.State]int
	}
	sums := map[kind]*sum{}
	var order []kind
	for i := range s.View.Machines {
		m := &s.View.Machines[i]
		k := kind{m.Type, m.CapacityType}
		if sums[k] == nil {
			sums[k] = &sum{states: map[fleet.State]int{}}
			order = append(order, k)
		}
		t := sums[k]
		t.nodes++
		t.pods += m.Pods
		t.states[m.State]++
		t.price += m.Price
		t.used.MilliCPU, t.used.Memory = t.used.MilliCPU+m.Used.MilliCPU, t.used.Memory+m.Used.Memory
		t.room.MilliCPU, t.room.Memory = t.room.MilliCPU+m.Room.MilliCPU, t.room.Memory+m.Room.Memory
	}
	slices.SortStableFunc(order, func(a, b kind) int { return cmp.Compare(sums[b].price, sums[a].price) })
	var rows []row
	for _, k := range order {
		t := sums[k]
		t.cells = []span{{fmt.Sprint(t.nodes), bold}, {k.name, plain}, capacityType(k.capacityType), states(t.states), {fmt.Sprint(t.pods), plain}}
		rows = append(rows, t.row)
	}
	return rows
}

func states(counts map[fleet.State]int) span {
	var parts []string
	shown := green
	for _, state := range []fleet.State{fleet.Launching, fleet.Booting, fleet.Ready, fleet.NotReady, fleet.Removing} {
		if counts[state] > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", counts[state], state))
			if state != fleet.Ready {
				shown = stateColor(state)
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

func stateColor(state fleet.State) color {
	switch state {
	case fleet.Ready:
		return green
	case fleet.Launching:
		return blue
	case fleet.Booting:
		return yellow
	case fleet.Removing:
		return magenta
	default:
		return red
	}
}

// layout says which columns there is room for, and how wide they are.
type layout struct {
	columns []column
	widths  []int
	gone    []bool
	bars    int // 2: CPU and memory; 1: CPU
	bar     int // width of one
}

// fit finds the layout for a width: when it gets narrow the bar of memory goes, then columns in their order.
func fit(columns []column, rows []row, width int) layout {
	l := layout{columns: columns, widths: make([]int, len(columns)), gone: make([]bool, len(columns)), bars: 2}
	for i, c := range columns {
		l.widths[i] = len(c.title)
		for _, r := range rows {
			l.widths[i] = max(l.widths[i], r.cells[i].width())
		}
	}
	if l.room(width) < l.bars*barAtLeast {
		l.bars = 1
	}
	for drop := dropFirst; l.room(width) < l.bars*barAtLeast && drop > 0; drop-- {
		for i, c := range columns {
			l.gone[i] = l.gone[i] || c.drop == drop
		}
	}
	l.bar = max(barAtLeast, min(barAtMost, l.room(width)/l.bars))
	return l
}

// room returns what is left for bars.
func (l *layout) room(width int) int {
	left := width - priceWidth - l.bars*len(gap)
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

// draw returns the table's lines, title first.
func draw(columns []column, rows []row, width int, style Style) []line {
	l := fit(columns, rows, width)
	titles := make([]span, len(columns))
	for i, c := range columns {
		titles[i] = span{c.title, dim}
	}
	title := append(l.cells(titles), span{"CPU", dim}.pad(l.bar+len(gap), false))
	if l.bars == 2 {
		title = append(title, span{"MEMORY", dim}.pad(l.bar+len(gap), false))
	}
	lines := []line{append(title, span{"$/H", dim}.pad(priceWidth, true))}
	for _, r := range rows {
		drawn := append(l.cells(r.cells), bar(r.used.MilliCPU, r.room.MilliCPU, l.bar, style)...)
		drawn = append(drawn, span{gap, plain})
		if l.bars == 2 {
			drawn = append(drawn, bar(r.used.Memory, r.room.Memory, l.bar, style)...)
			drawn = append(drawn, span{gap, plain})
		}
		lines = append(lines, append(drawn, span{fmt.Sprintf("%.4f", r.price), plain}.pad(priceWidth, true)))
	}
	return lines
}
