// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"karpenter/cmd/karpenter/explain"
)

// most is how many lines a section of the text has; JSON has all.
const most = 10

// Text writes the report for people, on about one screen.
func (r Report) Text(w io.Writer) error { return r.Write(w, Style{}) }

// Write writes the report for people.
func (r Report) Write(w io.Writer, style Style) error {
	b := &page{Style: style}
	fmt.Fprintf(b, "plan at %s\n", r.Time)
	for _, section := range []func(*page){r.changes, r.totals, r.launches, r.commands, r.placements, r.pending, r.forgone, r.crowds, r.stays, r.prices, r.notes} {
		section(b)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func (r Report) totals(b *page) {
	rows := [][]string{{"", "NODES", "$/H", "$/MONTH", "PODS PENDING"}}
	add := func(name string, t Total, remark string) {
		rows = append(rows, []string{name, strconv.Itoa(t.Nodes), t.Cost.String(), t.Cost.month(), strconv.Itoa(t.Pending), remark})
	}
	add("now", r.Before, unpriced(r.Before))
	if r.Unchanged != nil {
		add("after, as it is", *r.Unchanged, "without the changes above")
		add("after, changed", r.After, unpriced(r.After))
	} else {
		add("after", r.After, unpriced(r.After))
	}
	if r.Rest != nil {
		add("at rest", r.Rest.Total, r.Rest.remark())
	}
	add("from scratch", r.Fresh, "all movable pods placed again")
	if r.Bound > 0 {
		rows = append(rows, []string{"at least", "", r.Bound.String(), r.Bound.month(), "", "no nodes for these pods cost less"})
	}
	b.WriteByte('\n')
	table(b, "", rows)
	if !r.WouldChange {
		b.WriteString("\nno node is launched or removed\n")
	}
}

// remark says what it takes to come to rest.
func (r *Rest) remark() string {
	if r.Rounds == 0 && r.Removed == 0 {
		return "nothing more is launched or removed"
	}
	text := fmt.Sprintf("after %s: %d launched, %d removed, evicting %s", counted(r.Rounds, "round"), r.Launched, r.Removed, counted(r.Evictions, "pod"))
	if r.Unfinished {
		text += "; more rounds follow"
	}
	return text
}

func unpriced(t Total) string {
	if t.Unpriced == 0 {
		return ""
	}
	return counted(t.Unpriced, "node") + " of unknown price count as 0"
}

func (r Report) launches(b *page) {
	if len(r.Launches) == 0 {
		return
	}
	rows := [][]string{{"COUNT", "NODEPOOL", "TYPE", "CAPACITY", "ZONE", "$/H", "PODS"}}
	type kind struct{ pool, instanceType, capacityType, zone, price string }
	var kinds []kind
	alike := map[kind][]Launch{}
	pods := 0
	for _, l := range r.Launches {
		k := kind{l.Pool, l.InstanceType, l.CapacityType, l.Zone, Price(l.PricePerHour).String()}
		if alike[k] == nil {
			kinds = append(kinds, k)
		}
		alike[k] = append(alike[k], l)
		pods += len(l.PodNames)
	}
	for _, k := range kinds {
		var names []string
		for _, l := range alike[k] {
			names = append(names, l.PodNames...)
		}
		rows = append(rows, []string{strconv.Itoa(len(alike[k])), k.pool, k.instanceType, k.capacityType, k.zone, k.price, some(names)})
	}
	heading := fmt.Sprintf("launch %s for %s, at $%s/h", counted(len(r.Launches), "node"), counted(pods, "pod"), r.LaunchCost)
	if r.LaunchBound > 0 {
		heading += fmt.Sprintf("; no launches for them cost less than $%s/h", r.LaunchBound)
	}
	table(b, heading, rows)
}

func (r Report) commands(b *page) {
	if len(r.Commands) == 0 {
		return
	}
	rows := [][]string{{"NODE", "NODEPOOL", "TYPE", "CAPACITY", "ZONE", "$/H", "REASON", "EVICTS", "SAVES $/H", "REPLACED BY"}}
	nodes := 0
	for _, c := range r.Commands {
		nodes += len(c.Nodes)
		for i, n := range c.Nodes {
			row := []string{n.Name, n.Pool, n.InstanceType, n.CapacityType, n.Zone, Price(n.PricePerHour).String(), c.Reason, counted(n.Evictions, "pod"), "with it", ""}
			if i == 0 {
				row[8], row[9] = c.Savings.String(), c.replacements()
			}
			rows = append(rows, row)
		}
	}
	if b.small() {
		for i, r := range rows {
			rows[i] = []string{r[0], r[6], r[7], r[8], r[9]}
		}
	}
	table(b, fmt.Sprintf("remove %s, evicting %s", counted(nodes, "node"), counted(r.Evictions, "pod")), rows)
	r.drifts(b)
}

// drifts says of nodes that go which change made them drift.
func (r Report) drifts(b *page) {
	nodes := map[string][]string{}
	for _, c := range r.Commands {
		for _, n := range c.Nodes {
			nodes[n.Why] = append(nodes[n.Why], n.Name)
		}
	}
	delete(nodes, "")
	for _, why := range slices.Sorted(maps.Keys(nodes)) {
		b.line("drifted: %s: %s", some(nodes[why]), why)
	}
}

func (c Command) replacements() string {
	var out []string
	for _, l := range c.Launches {
		out = append(out, fmt.Sprintf("%s %s %s $%s", l.InstanceType, l.CapacityType, l.Zone, Price(l.PricePerHour)))
	}
	if len(out) == 0 {
		return "nothing"
	}
	return strings.Join(out, ", ")
}

func (r Report) placements(b *page) {
	if len(r.Placements) == 0 {
		return
	}
	rows := [][]string{{"NODE", "PODS"}}
	for _, p := range r.Placements {
		rows = append(rows, []string{p.Node, some(p.Pods)})
	}
	table(b, "pods that fit existing nodes", rows)
}

// pending writes the verdicts as explain pod does, one after the other.
func (r Report) pending(b *page) {
	const most = 5
	if len(r.Pending) == 0 {
		return
	}
	b.heading("pods that stay pending")
	for i, v := range r.Pending {
		if i == most {
			b.line("and pods for %s; -o json has all", counted(len(r.Pending)-most, "other reason"))
			break
		}
		b.line("%s (%s)\n    %s", some(v.Pods), v.Requests, strings.ReplaceAll(v.Verdict, "; nodepool ", "\n    nodepool "))
	}
}

// stays counts the nodes that are kept by the kind of reason.
func (r Report) stays(b *page) {
	if len(r.Stays) == 0 {
		return
	}
	type kind struct{ reason, cause string }
	nodes := map[kind][]string{}
	why := map[kind]string{}
	for _, s := range r.Stays {
		for _, reason := range append(slices.Clone(s.Reasons), nothing(s)...) {
			k := kind{cmp.Or(reason.For, "any"), reason.Cause}
			if nodes[k] == nil {
				why[k] = reason.Why
			}
			nodes[k] = append(nodes[k], s.Node)
		}
	}
	rows := [][]string{{"COUNT", "NOT REMOVED AS", "REASON", "NODES", "EXAMPLE"}}
	for _, k := range slices.SortedFunc(maps.Keys(nodes), func(x, y kind) int {
		return cmp.Or(cmp.Compare(len(nodes[y]), len(nodes[x])), cmp.Compare(x.reason, y.reason), cmp.Compare(x.cause, y.cause))
	}) {
		rows = append(rows, []string{strconv.Itoa(len(nodes[k])), k.reason, k.cause, some(nodes[k]), why[k]})
	}
	if b.small() {
		for i, r := range rows[1:] {
			rows[i+1] = []string{r[0], r[1], r[2], strings.Split(r[3], ", ")[0] + ": " + r[4]}
		}
		rows[0] = []string{"COUNT", "NOT REMOVED AS", "REASON", "EXAMPLE"}
	}
	table(b, fmt.Sprintf("nodes that stay: %d", len(r.Stays)), rows)
}

// nothing stands for the reason that a node has none.
func nothing(s Stay) []explain.Reason {
	if len(s.Reasons) > 0 {
		return nil
	}
	return []explain.Reason{{Cause: "in use", Why: "removing it saves nothing"}}
}

// forgone lists the preferences that are abandoned, those of most pods first.
func (r Report) forgone(b *page) {
	if len(r.Forgone) == 0 {
		return
	}
	type line struct {
		preference explain.Preference
		pods       []string
	}
	var lines []line
	for _, f := range r.Forgone {
		for _, p := range f.Preferences {
			lines = append(lines, line{p, f.Alike})
		}
	}
	slices.SortStableFunc(lines, func(x, y line) int { return cmp.Compare(y.preference.Without, x.preference.Without) })
	rows := [][]string{{"WITHOUT IT", "OF", "PREFERENCE", "PODS"}}
	for _, l := range lines {
		rows = append(rows, []string{strconv.Itoa(l.preference.Without), strconv.Itoa(l.preference.Pods), l.preference.Prefers, some(l.pods)})
	}
	table(b, fmt.Sprintf("preferences dropped: %d; karpenter explain pod NAME shows what honoring them would cost", len(lines)), rows)
}

// crowds lists what is crowded in spot pools.
func (r Report) crowds(b *page) {
	if len(r.Crowds) == 0 {
		return
	}
	rows := [][]string{{"SHARE", "AT MOST", "OF", "NODEPOOL", "SPOT POOL", "TO SPREAD IT"}}
	for _, c := range r.Crowds {
		rows = append(rows, []string{fmt.Sprintf("%.0f%%", 100*c.Share), fmt.Sprintf("%.0f%%", 100*c.Most), c.What(), c.NodePool, c.SpotPool, c.Cost()})
	}
	table(b, fmt.Sprintf("workloads that crowd a spot pool: %d", len(r.Crowds)), rows)
}

func (r Report) prices(b *page) {
	if len(r.Prices) > 0 {
		b.heading("prices")
	}
	for _, p := range r.Prices {
		b.line("%s", p)
	}
}

func (r Report) notes(b *page) {
	if len(r.Notes) > 0 {
		b.heading("notes")
	}
	for _, n := range r.Notes {
		b.line("%s", n)
	}
}

// month writes dollars per month.
func (p Price) month() string {
	return strconv.FormatFloat(math.Round(float64(p)*HoursPerMonth), 'f', 0, 64)
}

// some writes the first names, and how many more there are.
func some(names []string) string {
	const most = 3
	if len(names) <= most {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
}

// String writes dollars rounded to hundredths of a cent.
func (p Price) String() string {
	return strconv.FormatFloat(math.Round(float64(p)*1e4)/1e4, 'f', 4, 64)
}
