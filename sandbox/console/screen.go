// Package console shows a fleet to a person: as a picture that is redrawn in place on a terminal, or as lines where
// there is none.
package console

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"karpenter/sandbox/fleet"
	"karpenter/sandbox/timeline"
)

// Stamped is an entry and when it was seen.
type Stamped struct {
	timeline.Entry
	At time.Time
}

// Screen is all that a picture shows.
type Screen struct {
	Title    string
	Since    time.Time // when this run began
	Now      time.Time
	View     fleet.View
	Happened []Stamped // oldest first
	Hints    []string  // lines at the foot
}

// Style is what the terminal can do.
type Style struct {
	Color   bool
	Unicode bool
}

const (
	happenedAtLeast = 4  // lines kept for what happened, if the table is long
	happenedAtMost  = 12 // lines of it
	tableAtLeast    = 3  // lines kept for the table
)

// Render draws the screen in at most height lines of at most width columns each, every one ended by a newline.
func Render(s *Screen, width, height int, style Style) string {
	head := append(s.head(width, style), nil)
	foot := s.foot()
	if len(head)+len(foot)+tableAtLeast+happenedAtLeast > height {
		foot = nil
	}
	room := height - len(head) - len(foot) - 1 // one line between the table and what happened
	happened := min(len(s.Happened), happenedAtMost)
	table := s.table(width, max(tableAtLeast, room-min(happened, happenedAtLeast, room/3)), style)
	happened = max(0, min(happened, room-len(table)))

	lines := append(head, table...)
	if happened > 0 {
		lines = append(lines, nil)
	}
	for _, h := range s.Happened[len(s.Happened)-happened:] {
		lines = append(lines, h.line())
	}
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

func (s *Screen) head(width int, style Style) []line {
	room, used, pods := s.View.Totals()
	price := fmt.Sprintf("$%.3f/h", s.View.Price)
	spent := fmt.Sprintf("$%.4f spent, now ", s.View.Spent)
	title := line{{s.Title, bold}, {"  up " + age(s.Now.Sub(s.Since)), dim}}
	space := max(2, width-title.width()-len(spent)-len(price))
	title = append(title, span{strings.Repeat(" ", space), plain}, span{spent, dim}, span{price, bold})

	nodeCounts := line{{"nodes ", dim}, {fmt.Sprint(len(s.View.Machines)), bold}}
	for _, c := range []counted{
		{s.View.Count(fleet.Ready), "ready", green},
		{s.View.Count(fleet.Launching), "launching", blue}, {s.View.Count(fleet.Booting), "booting", yellow},
		{s.View.Count(fleet.NotReady), "not ready", red}, {s.View.Count(fleet.Removing), "removing", magenta},
	} {
		nodeCounts = c.line(nodeCounts)
	}
	podCounts := line{{"pods  ", dim}, {fmt.Sprint(pods.Pods()), bold}}
	for _, c := range []counted{
		{pods.Running, "running", green}, {pods.Waiting, "waiting", yellow}, {pods.Starting, "starting", blue},
		{pods.Stopping, "stopping", magenta}, {pods.Finished, "finished", dim},
	} {
		podCounts = c.line(podCounts)
	}
	lines := []line{title, nodeCounts, podCounts}
	if room.MilliCPU > 0 {
		lines = append(lines, totals(room, used, width, style))
	}
	for i := range s.View.Pools {
		lines = append(lines, poolLine(&s.View.Pools[i]))
	}
	return lines
}

type counted struct {
	n     int
	what  string
	color color
}

// line adds the count to l if there is anything to count.
func (c counted) line(l line) line {
	if c.n == 0 {
		return l
	}
	return append(l, span{fmt.Sprintf("  %d %s", c.n, c.what), c.color})
}

func totals(room, used fleet.Amount, width int, style Style) line {
	cpu := fmt.Sprintf("  %s of %s", cores(used.MilliCPU), cores(room.MilliCPU))
	memory := fmt.Sprintf("  %s of %s", gibibytes(used.Memory), gibibytes(room.Memory))
	each := max(10, min(30, (width-len("cpu   ")-len("   memory ")-len(cpu)-len(memory))/2))
	l := line{{"cpu   ", dim}}
	l = append(l, bar(used.MilliCPU, room.MilliCPU, each, style)...)
	l = append(l, span{cpu, plain}, span{"   memory ", dim})
	l = append(l, bar(used.Memory, room.Memory, each, style)...)
	return append(l, span{memory, plain})
}

func poolLine(p *fleet.Pool) line {
	l := line{{"pool  ", dim}, {p.Name, bold}}
	if !p.Ready {
		return append(l, span{"  not ready: " + cmp.Or(p.Reason, "nobody has looked at it yet"), red})
	}
	for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory, "nodes"} {
		limit, limited := p.Limits[name]
		used := p.Usage[name]
		text := fmt.Sprintf("  %s %s", name, amount(name, used.MilliValue()))
		if limited {
			text += " of " + amount(name, limit.MilliValue())
		}
		if limited || name != "nodes" {
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

func (s *Screen) foot() []line {
	if len(s.Hints) == 0 {
		return nil
	}
	lines := []line{nil}
	for _, hint := range s.Hints {
		lines = append(lines, line{{hint, dim}})
	}
	return lines
}

func (h *Stamped) line() line {
	kind := plain
	switch h.Kind {
	case timeline.Launch, timeline.Up:
		kind = green
	case timeline.Down, timeline.Gone:
		kind = magenta
	case timeline.Warning, timeline.Refused, timeline.Trouble:
		kind = red
	case timeline.Pods, timeline.Pool:
		kind = cyan
	}
	return line{{h.At.Format(time.TimeOnly) + " ", dim}, span{string(h.Kind), kind}.pad(8, false), {h.Text, plain}}
}
