// SPDX-License-Identifier: Apache-2.0

package pack

import (
	"fmt"
	"slices"

	"karpenter/model"
)

// report is the phase that tells what was planned.
type report struct{ *draft }

// fill adds what was planned to the plan of the outcome.
func (w report) fill(out *outcome) {
	w.place(out.plan)
	for _, d := range w.demands {
		if len(d.left) > 0 {
			out.plan.Verdicts = append(out.plan.Verdicts, reasons{w.draft}.verdict(d))
			out.kinds = append(out.kinds, d.kind)
		}
	}
}

// place adds where the pods go to the plan.
func (w report) place(plan *model.Plan) {
	for _, p := range w.placed {
		plan.Placements = append(plan.Placements, model.Placement{Pod: p.pod, Node: w.snapshot.Nodes[p.site].Name})
	}
	w.render(plan)
	w.unbundle(plan)
}

// placeAgain has the plan say where the pods go now, and which are left.
func (out *outcome) placeAgain() {
	p, pending := model.Plan{}, map[string]bool{}
	report{out.draft}.place(&p)
	out.plan.Placements, out.plan.Launches, out.plan.Cost = p.Placements, p.Launches, p.Cost
	for _, d := range out.draft.demands {
		for _, pod := range slices.Concat(d.left, d.stuck) {
			pending[pod.Key()] = true
		}
	}
	var verdicts []model.Verdict
	for _, v := range out.plan.Verdicts {
		v.Pods = slices.DeleteFunc(slices.Clone(v.Pods), func(p model.Pod) bool { return !pending[p.Key()] })
		if len(v.Pods) > 0 {
			verdicts = append(verdicts, v)
		}
	}
	out.plan.Verdicts = verdicts
}

// render turns the planned bins into launches. Each launch lists every type
// of its pool that would do, so that the provider keeps its freedom, as far as
// the pool's limits allow whichever of them it becomes.
func (w report) render(plan *model.Plan) {
	fresh := *w.draft // verdicts are about what is planned, not about what it may become
	fresh.limits = w.limits.clone()
	w.draft = &fresh
	menus := map[string]*menu{}
	for _, b := range w.bins {
		requests := w.podRequests(b)
		offers := w.suppliedOffers(b)
		key := fmt.Sprint(w.poolOf(b.offer), offers.Key())
		if menus[key] == nil {
			menus[key] = w.menu(b.offer, offers)
		}
		template := model.Launch{Pool: w.pool(b.offer).Name, Requirements: w.demandsOf(b), Requests: requests, Drivers: w.drivers(b)}
		if id := w.reservation(b.offer); id != "" {
			template.ReservationIDs = []string{id}
		}
		limited := len(w.pool(b.offer).Limits) > 0
		for n := range b.count {
			if n == 0 || limited {
				w.offer(&template, b, requests, menus[key])
			}
			launch := template
			for _, p := range b.take {
				launch.Pods = append(launch.Pods, p.chosen[n*p.pods:(n+1)*p.pods]...)
			}
			plan.Launches = append(plan.Launches, launch)
			plan.Cost += launch.Price
		}
	}
}

// offer fills in what the launch of a node of the bin may be launched as.
func (w report) offer(l *model.Launch, b bin, requests model.Resources, m *menu) {
	pool := w.poolOf(b.offer)
	if len(w.floors[pool]) == 0 {
		w.list(l, requests, w.withinLimits(b, requests, m.choices), m.types)
		return
	}
	var choices []choice
	choices, l.MinValues = w.listed(b, w.varietyOf(pool, w.suppliedOffers(b).Bits(), l.Requirements), requests)
	w.list(l, requests, choices, m.types)
}

// withinLimits keeps the choices that have room for the pods and that the pool
// can afford, reserving for the largest of them in every limited resource.
func (w report) withinLimits(b bin, requests model.Resources, choices []choice) []choice {
	pool := w.poolOf(b.offer)
	limited := len(w.limits.pools[pool].resources) > 0
	reserved := b.capacity
	out := make([]choice, 0, min(len(choices), w.policy.MaxTypes))
	for _, c := range choices {
		row := &w.catalogue.Types[c.row]
		if len(out) == w.policy.MaxTypes {
			break
		}
		if !requests.Fits(row.Free) || limited && !w.limits.raise(pool, reserved, row.Capacity) {
			continue
		}
		if limited {
			reserved = reserved.Max(row.Capacity)
		}
		out = append(out, c)
	}
	return out
}

// list fills in what the launch may be launched as.
func (w report) list(l *model.Launch, requests model.Resources, choices []choice, capacityTypes []string) {
	l.Types, l.CapacityTypes = make([]string, 0, len(choices)), nil
	daemon := w.catalogue.Types[choices[0].row].Daemon
	var types uint64
	for _, c := range choices {
		row := &w.catalogue.Types[c.row]
		l.Types = append(l.Types, row.Name)
		types |= c.types
		if !row.Daemon.Equal(daemon) {
			daemon = daemon.Min(row.Daemon)
		}
	}
	for i, ct := range capacityTypes {
		if types&(1<<i) != 0 {
			l.CapacityTypes = append(l.CapacityTypes, ct)
		}
	}
	l.Requests = requests.Plus(daemon)
	o := &w.catalogue.Offers[choices[0].offer]
	l.Type, l.Zone, l.CapacityType, l.Price = l.Types[0], o.Zone, o.CapacityType, choices[0].price
}

// listed returns the choices the launch of a bin lists: the types that
// minValues need, then the cheapest, as far as limits allow. It says where
// that spans fewer values than the pool demands.
func (w report) listed(b bin, v *variety, requests model.Resources) ([]choice, []model.Relaxed) {
	pool := w.poolOf(b.offer)
	chosen := v.pick(w.fitting(v, requests, b.capacity))
	reserved := b.capacity
	for _, i := range w.fitting(v, requests, nil) {
		if len(chosen) >= w.policy.MaxTypes {
			break
		}
		capacity := w.catalogue.Types[v.choices[i].row].Capacity
		if slices.Contains(chosen, i) || !w.limits.raise(pool, reserved, capacity) {
			continue
		}
		chosen, reserved = append(chosen, i), reserved.Max(capacity)
	}
	slices.Sort(chosen)
	v.reset()
	out := make([]choice, 0, len(chosen))
	for _, i := range chosen {
		v.add(i)
		out = append(out, v.choices[i])
	}
	var relaxed []model.Relaxed
	for i, f := range v.floors {
		if v.spans[i] < f.least {
			relaxed = append(relaxed, model.Relaxed{Key: f.key, Spans: v.spans[i]})
		}
	}
	return out, relaxed
}

// unbundle replaces the first pods of bundles in launches by all of them.
func (w report) unbundle(plan *model.Plan) {
	if len(w.bundles) == 0 {
		return
	}
	for i := range plan.Launches {
		var pods []model.Pod
		for _, p := range plan.Launches[i].Pods {
			for _, t := range w.standsFor(nil, p) {
				pods = append(pods, t.pod)
			}
		}
		plan.Launches[i].Pods = pods
	}
}

// outcome is a plan, with what it takes to compare it to others.
type outcome struct {
	draft *draft
	plan  *model.Plan
	left  [][]model.Pod // by kind
	kinds []int         // of the verdicts of the plan
}
