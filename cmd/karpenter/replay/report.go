// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	v1 "karpenter/api/v1"
	"karpenter/cmd/karpenter/plan"
	"karpenter/cmd/karpenter/recording"
)

// Outcome has the totals of a run or of the recording. It counts only nodes of NodePools,
// and no pods of DaemonSets.
type Outcome struct {
	Cost          float64        `json:"cost"` // dollars
	CostPerHour   float64        `json:"costPerHour"`
	NodeHours     float64        `json:"nodeHours"`
	UnpricedHours float64        `json:"unpricedHours"` // of NodeHours, of instances whose price is not known: they count as $0
	Launched      int            `json:"launched"`      // nodes
	Removed       map[string]int `json:"removed"`       // nodes, by reason
	Evictions     int            `json:"evictions"`     // pods that had to leave a node
	Waits         Waits          `json:"waits"`
	Pending       int            `json:"pendingPods"` // that have no node in the end
}

// Waits are how long pods waited for a node, in seconds.
type Waits struct {
	Pods    int     `json:"pods"` // that got a node
	Mean    float64 `json:"meanSeconds"`
	P95     float64 `json:"p95Seconds"` // 95 % waited at most so long
	Longest float64 `json:"longestSeconds"`
}

// settle makes the sums.
func (o *Outcome) settle(h *history, stays []stay, like map[string]string, waits []time.Duration) {
	o.Cost, o.UnpricedHours = h.cost(stays, like)
	o.CostPerHour = o.Cost / h.to.Sub(h.from).Hours()
	for _, s := range stays {
		o.NodeHours += max(s.to.Sub(s.from).Hours(), 0)
	}
	if o.Waits.Pods = len(waits); len(waits) > 0 {
		slices.Sort(waits)
		o.Waits.Mean = mean(waits).Seconds()
		o.Waits.P95 = waits[(len(waits)*95-1)/100].Seconds()
		o.Waits.Longest = waits[len(waits)-1].Seconds()
	}
}

// Report is what a replay says.
type Report struct {
	Recording string    `json:"recording"`
	From      time.Time `json:"from"`
	To        time.Time `json:"to"`
	Recorded  Outcome   `json:"recorded"`
	Replayed  Outcome   `json:"replayed"`          // with the NodePools as recorded
	Changed   *Outcome  `json:"changed,omitempty"` // with the NodePools of the manifests; nil = there are none
	NodePools []string  `json:"nodePools"`         // of the manifests
	Notes     []string  `json:"notes"`
}

// Replay runs the recording as it was configured and, if there are manifests, with them.
func Replay(r *recording.Recording, m *plan.Manifests) (Report, error) {
	h, err := readHistory(r)
	if err != nil {
		return Report{}, err
	}
	var changed []*v1.NodePool
	out := Report{Recording: r.Title, From: h.from.UTC(), To: h.to.UTC(), Recorded: h.outcome, NodePools: []string{}}
	for i := range m.Pools {
		p := &m.Pools[i]
		if err := p.Check(h.catalogues[0].published.Rules.Labels, nil, h.from); err != nil {
			return Report{}, err
		}
		if old := h.pools[p.Pool.Name]; p.Pool.IsStatic() || old != nil && old.IsStatic() {
			return Report{}, fmt.Errorf("NodePool %s has spec.replicas: nodes of static NodePools are replayed as recorded; leave the NodePool out", p.Pool.Name)
		}
		changed = append(changed, p.Pool)
		out.NodePools = append(out.NodePools, p.Pool.Name)
	}
	first, err := h.replayed(nil)
	if err != nil {
		return Report{}, err
	}
	out.Replayed = first.tally.outcome
	runs := []*run{first}
	if len(changed) > 0 {
		second, err := h.replayed(changed)
		if err != nil {
			return Report{}, err
		}
		out.Changed = &second.tally.outcome
		runs = append(runs, second)
	}
	out.Notes = notes(h, m, runs)
	return out, nil
}

// notes say what the figures depend on.
func notes(h *history, m *plan.Manifests, runs []*run) []string {
	d := h.delays
	out := []string{
		fmt.Sprintf("average delays: %s until an instance starts, %s until its node is ready, %s until an evicted pod ends, %s until the instance of an empty node terminates; as recorded, if the recording has examples",
			d.Launch.mean(), d.Boot.mean(), d.Stop.mean(), d.Finish.mean()),
		"each launch gets the offering that the plan chose; prices and offerings without capacity are as recorded",
	}
	if n := len(h.losses); n > 0 {
		out = append(out, fmt.Sprintf("nodes that went without a decision of Karpenter, such as by interruptions: %d; when one went, the replay removes a node of the same instance type, zone and capacity type, if it has one", n))
	}
	if pace := runs[0].pace(); pace > leastLook {
		out = append(out, fmt.Sprintf("the recording is long, so the replay looks for nodes to remove at most every %s; the controller looks every %s", pace, leastLook))
	}
	if len(m.Ignored) > 0 {
		out = append(out, "only NodePools are replayed with; the manifests also have: "+strings.Join(m.Ignored, ", "))
	}
	for _, r := range runs {
		out = append(out, r.notes()...)
	}
	slices.Sort(out[2:])
	return slices.Compact(out)
}

// Text is the report for people.
func (r *Report) Text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s, %s to %s\n\n", r.title(), r.From.Format(time.DateTime), r.To.Format(time.DateTime))
	rows := r.rows()
	widths := make([]int, len(rows[0]))
	for _, row := range rows {
		for i, cell := range row {
			widths[i] = max(widths[i], len(cell))
		}
	}
	for _, row := range rows {
		line := fmt.Sprintf("%-*s", widths[0], row[0])
		for i, cell := range row[1:] {
			line += fmt.Sprintf("  %*s", widths[i+1], cell)
		}
		b.WriteString(strings.TrimRight(line, " ") + "\n")
	}
	b.WriteByte('\n')
	for _, n := range r.Notes {
		b.WriteString("- " + n + "\n")
	}
	return b.String()
}

// Markdown is the report for a pull request.
func (r *Report) Markdown() string {
	var b strings.Builder
	fmt.Fprintf(&b, "**%s, %s to %s**\n\n", r.title(), r.From.Format(time.DateTime), r.To.Format(time.DateTime))
	for i, row := range r.rows() {
		b.WriteString("| " + strings.Join(row, " | ") + " |\n")
		if i == 0 {
			b.WriteString("|---" + strings.Repeat("|--:", len(row)-1) + "|\n")
		}
	}
	b.WriteByte('\n')
	for _, n := range r.Notes {
		b.WriteString("- " + n + "\n")
	}
	return b.String()
}

func (r *Report) title() string {
	out := "Replay of " + r.Recording
	if len(r.NodePools) > 0 {
		out += " with other NodePools (" + strings.Join(r.NodePools, ", ") + ")"
	}
	return out
}

// rows are the report as a table; the first row has the names of the columns.
func (r *Report) rows() [][]string {
	columns := []string{"", "RECORDED", "REPLAYED"}
	outcomes := []*Outcome{&r.Recorded, &r.Replayed}
	if r.Changed != nil {
		columns = append(columns, "CHANGED", "DIFFERENCE")
		outcomes = append(outcomes, r.Changed)
	}
	rows := [][]string{columns}
	add := func(name, format string, of func(*Outcome) float64) {
		row := []string{name}
		for _, o := range outcomes {
			row = append(row, fmt.Sprintf(format, of(o)))
		}
		if r.Changed != nil {
			was, is := of(&r.Replayed), of(r.Changed)
			text := fmt.Sprintf("%+"+strings.Trim(format, "%"), is-was)
			if was > 0 && name == "Cost ($)" {
				text += fmt.Sprintf(" (%+.1f%%)", 100*(is-was)/was)
			}
			row = append(row, text)
		}
		rows = append(rows, row)
	}
	add("Cost ($)", "%.2f", func(o *Outcome) float64 { return o.Cost })
	add("Cost ($/h)", "%.4f", func(o *Outcome) float64 { return o.CostPerHour })
	add("Node hours", "%.2f", func(o *Outcome) float64 { return o.NodeHours })
	add("Nodes launched", "%.0f", func(o *Outcome) float64 { return float64(o.Launched) })
	reasons := map[string]bool{}
	for _, o := range outcomes {
		for reason := range o.Removed {
			reasons[reason] = true
		}
	}
	for _, reason := range slices.Sorted(maps.Keys(reasons)) {
		add("Nodes removed: "+reason, "%.0f", func(o *Outcome) float64 { return float64(o.Removed[reason]) })
	}
	add("Pods evicted", "%.0f", func(o *Outcome) float64 { return float64(o.Evictions) })
	add("Pods that got a node", "%.0f", func(o *Outcome) float64 { return float64(o.Waits.Pods) })
	add("  mean wait (s)", "%.1f", func(o *Outcome) float64 { return o.Waits.Mean })
	add("  95% wait at most (s)", "%.0f", func(o *Outcome) float64 { return o.Waits.P95 })
	add("  longest wait (s)", "%.0f", func(o *Outcome) float64 { return o.Waits.Longest })
	add("Pending pods at the end", "%.0f", func(o *Outcome) float64 { return float64(o.Pending) })
	return rows
}
