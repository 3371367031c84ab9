// SPDX-License-Identifier: Apache-2.0

package top

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// Tab is a list that the screen shows.
type Tab int

// The tabs.
const (
	NodesTab Tab = iota
	TypesTab     // nodes summed up by instance type
	PodsTab      // workloads with pods that wait
	tabs
)

// Bound compares the cost of the nodes with the least that their pods can cost.
type Bound struct {
	At      time.Time `json:"at"`                // of the situation that it is about
	Cost    float64   `json:"costPerHour"`       // dollars, of the nodes then
	Least   float64   `json:"leastPerHour"`      // no plan for these pods costs less
	Missing string    `json:"missing,omitempty"` // why there is no bound
}

// Screen is all that a picture shows.
type Screen struct {
	Title    string
	View     View
	Bound    Bound
	Happened []Entry // oldest first
	Hints    []string
	Trouble  string // why the picture may be out of date; "" = it is not

	Tab      Tab
	Order    Order // of the nodes
	Selected int   // row
	Detail   *Detail
	Help     bool
	Keys     bool // the picture is of a program that takes keys
}

// Detail is a text that covers the list.
type Detail struct {
	Title string
	Lines []string
	From  int // first line shown
}

// Style is what the terminal can do.
type Style struct {
	Colour  bool
	Unicode bool
}

const (
	leastHappened = 4 // lines kept for what happened, if the list is long
	leastList     = 3 // lines kept for the list
	// MostHappened is how many entries of what happened a Screen shows.
	MostHappened = 12
)

// Render draws the screen in at most height lines of at most width columns each,
// every one ended by a newline.
func Render(s *Screen, width, height int, style Style) string {
	head := append(s.head(width, style), nil)
	foot := s.foot(width)
	var lines []line
	switch {
	case s.Help:
		lines = append(head, helpLines()...)
	case s.Detail != nil:
		lines = append(head, s.detail(width, height-len(head)-len(foot))...)
	default:
		lines = append(head, s.body(width, height-len(head)-len(foot), style)...)
	}
	lines = lines[:max(0, min(len(lines), height-len(foot)))]
	for len(lines)+len(foot) < height && len(foot) > 0 {
		lines = append(lines, nil)
	}
	lines = append(lines, foot...)
	var picture strings.Builder
	for _, l := range lines[:min(len(lines), max(height, 0))] {
		l.write(&picture, width, style)
		picture.WriteByte('\n')
	}
	return picture.String()
}

// body draws the list, the reason of the row that is selected, and what happened.
func (s *Screen) body(width, height int, style Style) []line {
	room := height - 1 // one line between the list and what happened
	happened := min(len(s.Happened), MostHappened)
	lines := s.list(width, max(leastList, room-min(happened, leastHappened, room/3)), style)
	if why := s.why(width); why != nil && len(lines) < room {
		lines = append(lines, why)
	}
	happened = max(0, min(happened, room-len(lines)))
	if happened > 0 {
		lines = append(lines, nil)
	}
	for _, h := range s.Happened[len(s.Happened)-happened:] {
		lines = append(lines, h.line())
	}
	return lines
}

func (s *Screen) head(width int, style Style) []line {
	room, used, pods := s.View.Totals()
	price, monthly := s.View.hourly()+" ", "$"+thousands(s.View.Cost*hoursPerMonth)+"/month"
	if s.View.Cost == 0 && s.View.Unpriced > 0 {
		monthly = ""
	}
	title := line{{s.Title, bold}}
	if space := width - len(price) - len(monthly) - 2; title.width() > space {
		title[0].text = cut(s.Title, space, style)
	}
	space := max(2, width-title.width()-len(price)-len(monthly))
	title = append(title, span{strings.Repeat(" ", space), plain}, span{price, bold}, span{monthly, dim})

	nodeCounts := line{{"nodes ", dim}, {fmt.Sprint(len(s.View.Nodes)), bold}}
	for _, c := range []number{
		{s.View.Count(Ready), "ready", green},
		{s.View.Count(Launching), "launching", blue}, {s.View.Count(Booting), "booting", yellow},
		{s.View.Count(NotReady), "not ready", red}, {s.View.Count(Removing), "removing", magenta},
		{s.View.Unpriced, "without a known price", dim},
	} {
		nodeCounts = c.line(nodeCounts)
	}
	podCounts := line{{"pods  ", dim}, {fmt.Sprint(pods.pods()), bold}}
	for _, c := range []number{
		{pods.Running, "running", green}, {pods.Waiting, "waiting", yellow}, {pods.Starting, "starting", blue},
		{pods.Stopping, "stopping", magenta}, {pods.Finished, "finished", dim},
	} {
		podCounts = c.line(podCounts)
	}
	lines := []line{title, nodeCounts, podCounts}
	if room.MilliCPU > 0 {
		lines = append(lines, totals(room, used, width, style))
	}
	lines = append(lines, s.boundLine())
	for i := range s.View.Pools {
		lines = append(lines, poolLine(&s.View.Pools[i]))
	}
	if s.Trouble != "" {
		lines = append(lines, line{{s.Trouble, red}})
	}
	return lines
}

// boundLine says how far the nodes are from the least that their pods can cost.
func (s *Screen) boundLine() line {
	b := s.Bound
	l := line{{"least ", dim}}
	switch {
	case b.Missing != "":
		return append(l, span{"not known: " + b.Missing, dim})
	case b.At.IsZero():
		return append(l, span{"being proven", dim})
	case b.Least <= 0:
		return append(l, span{"$0: no pod needs a node", plain})
	}
	over := 100 * (b.Cost/b.Least - 1)
	l = append(l, span{fmt.Sprintf("$%.3f/h", b.Least), bold}, span{" is proven; the nodes cost ", plain})
	shown := green
	if over > 15 {
		shown = yellow
	}
	text := fmt.Sprintf("%.0f%% more", max(0, over))
	if over < -0.5 { // pods wait, so nodes for them are not launched yet
		text, shown = "less: pods wait", yellow
	}
	l = append(l, span{text, shown})
	if old := s.View.Now.Sub(b.At); old >= time.Second {
		l = append(l, span{"  " + age(old) + " ago", dim})
	}
	return l
}

type number struct {
	n      int
	what   string
	colour colour
}

// line adds the number to l if there is anything to count.
func (c number) line(l line) line {
	if c.n == 0 {
		return l
	}
	return append(l, span{fmt.Sprintf("  %d %s", c.n, c.what), c.colour})
}

func totals(room, used Amount, width int, style Style) line {
	cpu := fmt.Sprintf("  %s of %s", cores(used.MilliCPU), cores(room.MilliCPU))
	memory := fmt.Sprintf("  %s of %s", gibibytes(used.Memory), gibibytes(room.Memory))
	each := max(10, min(30, (width-len("cpu   ")-len("   memory ")-len(cpu)-len(memory))/2))
	l := line{{"cpu   ", dim}}
	l = append(l, bar(used.MilliCPU, room.MilliCPU, each, style)...)
	l = append(l, span{cpu, plain}, span{"   memory ", dim})
	l = append(l, bar(used.Memory, room.Memory, each, style)...)
	return append(l, span{memory, plain})
}

func poolLine(p *Pool) line {
	l := line{{"pool  ", dim}, {p.Name, bold}}
	if !p.Ready {
		return append(l, span{"  not ready: " + cmp.Or(p.Reason, "waiting for first reconcile"), red})
	}
	for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory, nodesResource} {
		limit, limited := p.Limits[name]
		used := p.Usage[name]
		text := fmt.Sprintf("  %s %s", name, amount(name, used.MilliValue()))
		if limited {
			text += " of " + amount(name, limit.MilliValue())
		}
		if limited || name != nodesResource {
			l = append(l, span{text, plain})
		}
	}
	return l
}

// amount prints thousandths of a resource.
func amount(name corev1.ResourceName, milli int64) string {
	if name == corev1.ResourceMemory {
		return gibibytes(milli / 1000)
	}
	return cores(milli)
}

// foot is the hints and the keys.
func (s *Screen) foot(width int) []line {
	var lines []line
	if len(s.Hints) > 0 && !s.Help && s.Detail == nil {
		lines = append(lines, nil)
	}
	for _, hint := range s.Hints {
		if !s.Help && s.Detail == nil {
			lines = append(lines, line{{hint, dim}})
		}
	}
	if !s.Keys {
		return lines
	}
	keys := "↑↓ select  enter explain  tab " + s.following() + "  s sort: " + string(s.Order) + "  ? help  q quit"
	switch {
	case s.Help:
		keys = "any key goes back"
	case s.Detail != nil:
		keys = "↑↓ scroll  esc back  q quit"
	case s.Tab == TypesTab:
		keys = "tab " + s.following() + "  ? help  q quit"
	case s.Tab == PodsTab:
		keys = "↑↓ select  enter explain  tab " + s.following() + "  ? help  q quit"
	}
	return append(lines, line{{keys, dim}})
}

// following names the next tab.
func (s *Screen) following() string {
	return []string{"nodes", "types", "pods"}[(s.Tab+1)%tabs]
}

func helpLines() []line {
	var out []line
	for _, k := range [][2]string{
		{"↑ ↓, k j", "select a node or a workload"},
		{"PgUp PgDn, Home End", "the same, faster"},
		{"enter", "explain why the node stays or goes, or why the pods wait"},
		{"tab", "nodes, instance types, pods that wait"},
		{"s", "sort nodes by name, cost, age, CPU"},
		{"space", "hold the picture, or let it go on"},
		{"esc", "back"},
		{"q, Ctrl-C", "quit"},
	} {
		out = append(out, line{span{k[0], bold}.pad(22, false), {k[1], plain}})
	}
	return append(out, nil,
		line{{"least", bold}, {" is a proven lower bound: no plan for the same pods costs less.", plain}},
		line{{"Karpenter changes a node only if it saves enough and disrupts little.", plain}})
}

// detail draws the text that covers the list.
func (s *Screen) detail(width, height int) []line {
	d := s.Detail
	out := []line{{{d.Title, bold}}, nil}
	wrapped := d.wrapped(width)
	from := max(0, min(d.From, len(wrapped)-(height-2)))
	for _, text := range wrapped[from:min(len(wrapped), max(from, from+height-2))] {
		out = append(out, line{{text, plain}})
	}
	return out
}

// wrapped returns the lines, those that are too long as several.
func (d *Detail) wrapped(width int) []string {
	var out []string
	for _, text := range d.Lines {
		out = append(out, wrap(text, width)...)
	}
	return out
}

func (e *Entry) line() line {
	shown := plain
	switch e.Kind {
	case Launched, Started:
		shown = green
	case Draining, Gone:
		shown = magenta
	case Warned, Trouble:
		shown = red
	case PodsKind, PoolKind:
		shown = cyan
	}
	return line{{e.At.Format(time.TimeOnly) + " ", dim}, span{string(e.Kind), shown}.pad(8, false), {e.Text, plain}}
}
