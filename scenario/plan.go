// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"karpenter/model"
)

// shownTypes is how many types of a launch are named before the rest is
// counted.
const shownTypes = 6

// PrintPlan writes what a plan for s does, one thing per line: place, launch,
// remove or replace, stay, pending, and what the launches cost. Placements come by node,
// all else in the order of the plan; equal plans print alike.
func PrintPlan(w io.Writer, s *model.Snapshot, plan *model.Plan) error {
	_, err := io.WriteString(w, Text(s, plan))
	return err
}

// Text returns what PrintPlan writes.
func Text(s *model.Snapshot, plan *model.Plan) string {
	x := axis{model.NewAxis()}
	for _, name := range s.Resources {
		x.Index(name)
	}
	p := &printer{axis: x, s: s}
	p.placements(plan.Placements)
	for i := range plan.Launches {
		p.launch(&plan.Launches[i])
	}
	for i := range plan.Commands {
		p.command(&plan.Commands[i])
	}
	for _, st := range plan.Stays {
		p.stay(&st)
	}
	for i := range plan.Verdicts {
		p.verdict(&plan.Verdicts[i])
	}
	for i := range plan.Crowds {
		p.crowd(&plan.Crowds[i])
	}
	if len(plan.Launches) > 0 || plan.Cost != 0 {
		p.cost(plan)
	}
	if p.out.Len() == 0 {
		p.line("nothing to do")
	}
	return p.out.String()
}

// crowd writes what is in one spot pool and what spreading it would cost.
func (p *printer) crowd(c *model.Crowd) {
	what, cost := "vCPUs", "cannot be spread"
	if c.Workload != "" {
		what = c.Workload
	}
	if c.Cost != nil {
		cost = "spreading it would cost $" + FormatPrice(*c.Cost) + "/h"
	}
	p.line(fmt.Sprintf("crowd  %.0f%% of %s of %s in %s, more than %.0f%%: %s", 100*c.Share, what, c.Pool, c.In, 100*c.Most, cost))
}

// nodeName is a node with its claim, if that is called otherwise.
func nodeName(node, claim string) string {
	switch {
	case node == "":
		return outerName(claim)
	case claim == "" || claim == node:
		return outerName(node)
	}
	return outerName(node) + " (claim " + outerName(claim) + ")"
}

func (p *printer) placements(placements []model.Placement) {
	for _, to := range byNode(placements) {
		p.line("place  " + podList(to.pods) + " on " + outerName(to.node))
	}
}

// arrivals are the pods that a plan puts on one node.
type arrivals struct {
	node string
	pods []model.Pod
}

// byNode gathers placements by node, in order of their names.
func byNode(placements []model.Placement) []arrivals {
	var out []arrivals
	index := map[string]int{}
	for _, pl := range placements {
		i, known := index[pl.Node]
		if !known {
			i, out = len(out), append(out, arrivals{node: pl.Node})
			index[pl.Node] = i
		}
		out[i].pods = append(out[i].pods, pl.Pod)
	}
	slices.SortFunc(out, func(a, b arrivals) int { return strings.Compare(a.node, b.node) })
	return out
}

// podList writes pods in order of their names, runs as ranges.
func podList(pods []model.Pod) string { return strings.Join(ranges(inOrder(pods)), ",") }

func (p *printer) launch(l *model.Launch) {
	head := fmt.Sprintf("launch %s %s %s %s $%s/h", outerName(l.Pool), outerName(l.Type), outerName(l.Zone), outerName(l.CapacityType), FormatPrice(l.Price))
	if len(l.Types) == 0 { // it is whatever its pool's template says
		p.line(head)
		return
	}
	var parts []string
	if len(l.Pods) > 0 {
		parts = append(parts, "pods="+podList(l.Pods))
	}
	parts = append(parts, "requests="+p.list(l.Requests))
	if strings.Join(l.CapacityTypes, ",") != l.CapacityType {
		parts = append(parts, "ct="+innerList(l.CapacityTypes))
	}
	if len(l.ReservationIDs) > 0 {
		parts = append(parts, "reservations="+innerList(l.ReservationIDs))
	}
	if len(l.MinValues) > 0 {
		parts = append(parts, "spans="+spans(l.MinValues))
	}
	if more := p.beyondPool(l); len(more) > 0 {
		parts = append(parts, `requires="`+requirements(more)+`"`)
	}
	p.line(head, append(parts, typeList(l.Types))...)
}

// spans writes demands on the number of values that were relaxed.
func spans(relaxed []model.Relaxed) string {
	parts := make([]string, len(relaxed))
	for i, r := range relaxed {
		parts[i] = aliasOf(r.Key) + ":" + strconv.Itoa(r.Spans)
	}
	return strings.Join(parts, ",")
}

// beyondPool returns what a launch requires that its pool does not say.
func (p *printer) beyondPool(l *model.Launch) model.Requirements {
	known := model.NewRequirements(model.NewRequirement(model.LabelNodePool, model.In, l.Pool))
	for i := range p.s.Pools {
		if p.s.Pools[i].Name == l.Pool {
			known = over(known, p.s.Pools[i].Requirements)
		}
	}
	var out model.Requirements
	for _, r := range l.Requirements {
		if k, ok := known.Get(r.Key); !ok || !sameRequirement(k, r) {
			out = append(out, r)
		}
	}
	return out
}

func typeList(types []string) string {
	shown := types[:min(len(types), shownTypes)]
	text := fmt.Sprintf("types=%d (%s", len(types), strings.Join(shown, " "))
	if len(shown) < len(types) {
		text += " …"
	}
	return text + ")"
}

func (p *printer) verdict(v *model.Verdict) {
	text := v.String()
	if v.Nodes > 0 {
		text += fmt.Sprintf("; existing nodes: none of %d takes it", v.Nodes)
	}
	p.line("pending " + podList(v.Pods) + ": " + text)
}

// cost says what the launches cost and how far that may be from the optimum;
// a plan without a bound makes no promise.
func (p *printer) cost(plan *model.Plan) {
	text := "cost   $" + FormatPrice(plan.Cost) + "/h"
	if plan.Bound > 0 {
		text += fmt.Sprintf(" bound $%s/h gap %.1f%%", FormatPrice(plan.Bound), 100*plan.Gap())
	}
	p.line(text)
}
