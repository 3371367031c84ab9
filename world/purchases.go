// SPDX-License-Identifier: Apache-2.0

package world

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"karpenter/model"
)

const (
	// firstPause is how long no node is launched for a PodGroup after not all of its
	// nodes could be had. It doubles each time, up to mostPause.
	firstPause = time.Minute
	mostPause  = 30 * time.Minute
	// toRegister is how long after its launch each node of a PodGroup must be registered,
	// and toStart how long after the first of these launches all must be initialized.
	toRegister = 15 * time.Minute
	toStart    = 30 * time.Minute
)

// purchase is what was launched for a PodGroup that does not run yet.
type purchase struct {
	ran      time.Time     // when the group last ran: what was launched before is of no purchase any more
	launched bool          // nodes have been since the last failure
	failures int           // in a row
	resumed  time.Time     // when the last pause ends or has ended
	until    time.Time     // no node is launched for the group before, and those that were are given back
	avoid    []model.Place // where its nodes have not started in time since it last ran, the latest first
	placed   bool          // the latest plan has places for all that must start, so machines without any are given back
}

// runs reports whether as many pods of the group run as must run together. What is launched
// for others of its pods is removed as other nodes are.
func runs(g model.PodGroup) bool { return g.Running >= g.MinCount && g.Refused == "" }

// has reports whether the machine was launched since the group last ran. Objects are
// created in whole seconds.
func (p *purchase) has(m *machine) bool { return !m.claim.Created.Before(p.ran.Truncate(time.Second)) }

// Failure is that not all nodes of a PodGroup could be had.
type Failure struct {
	Group PodGroup
	Nodes int       // that were launched for it and are given back
	Late  bool      // they have not started in time; otherwise there is no capacity for the others
	Until time.Time // when nodes are launched for it again
}

// Pause is how long no node is launched for a PodGroup, since not all of its nodes could be had.
type Pause struct {
	Failures int       // in a row
	Until    time.Time // zero = it has ended early
}

// Pauses returns those of the PodGroups that have failed since they ran last, by UID.
func (w *World) Pauses() map[string]Pause {
	w.mu.Lock()
	defer w.mu.Unlock()
	out := map[string]Pause{}
	for _, g := range w.podGroups {
		if g.known && g.group.UID != "" && g.purchase.failures > 0 {
			out[g.group.UID] = Pause{g.purchase.failures, g.purchase.until}
		}
	}
	return out
}

// RestorePauses has the PodGroups that are known pause as they did before the process started.
func (w *World) RestorePauses(pauses map[string]Pause) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, g := range w.podGroups {
		p, paused := pauses[g.group.UID]
		if !paused || !g.known || g.purchase.failures > 0 || g.running() >= g.group.MinCount {
			continue
		}
		g.purchase.failures, g.purchase.resumed, g.purchase.until = p.Failures, p.Until, p.Until
		for _, m := range w.bought()[g.group.Name] {
			w.touch(m)
		}
	}
	w.listed.podGroups = nil
}

// Refused takes in which PodGroups the latest plan has no place for although all pods
// exist that must start together, and which it has places for. It returns those of which nodes have been launched in
// vain since the last call, and the NodeClaims to be deleted at once: what was launched
// for a group, is no Node yet, and has no place in the plan. Nodes are shown as Returned.
func (w *World) Refused(now time.Time, refused, placed []string) (failures []Failure, vain []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.podGroups) == 0 {
		return nil, nil
	}
	bought := w.bought()
	for _, name := range slices.Sorted(maps.Keys(w.podGroups)) {
		g, own := w.podGroups[name], bought[name]
		if is := slices.Contains(placed, name) && !runs(w.shown(g)); is != g.purchase.placed {
			g.purchase.placed = is
			for _, m := range own {
				w.touch(m)
			}
		}
		late := w.late(g, own, now)
		if now.Before(g.purchase.until) || !late && (!slices.Contains(refused, name) || len(own) == 0 && !g.purchase.launched) {
			continue
		}
		if late {
			w.avoid(g, own, now)
		}
		w.fail(g, own, now)
		failures = append(failures, Failure{Group: g.group, Nodes: len(own), Late: late, Until: g.purchase.until})
	}
	for _, own := range bought {
		for _, m := range own {
			if !m.registered() && w.returned(m, now) && !w.isPlannedOn(m) {
				vain = append(vain, m.claim.Name)
			}
		}
	}
	slices.Sort(vain)
	return failures, slices.Compact(vain)
}

// isPlannedOn reports whether pods are planned on the machine, which has a claim. Plans name
// an unregistered Node if it has the name of the claim.
func (w *World) isPlannedOn(m *machine) bool {
	return len(w.planned[claimKey(m.claim.Name)]) > 0 || m.node != nil && len(w.planned[m.node.Name]) > 0
}

// bought returns the machines that are there and were launched for PodGroups, by group.
func (w *World) bought() map[string][]*machine {
	out := map[string][]*machine{}
	for _, m := range w.machines {
		if m.claim == nil || m.deleting() {
			continue
		}
		for _, name := range m.claim.Groups {
			if g := w.podGroups[name]; g != nil && g.purchase.has(m) {
				out[name] = append(out[name], m)
			}
		}
	}
	return out
}

// late reports whether machines of a group that does not run have not started in time.
func (w *World) late(g *podGroup, own []*machine, now time.Time) bool {
	if len(own) == 0 || !g.known || g.running() >= g.group.MinCount {
		return false
	}
	first := w.starts(g, own)
	return slices.ContainsFunc(own, func(m *machine) bool {
		return !m.registered() && !m.claim.Created.IsZero() && now.Sub(m.claim.Created) > toRegister ||
			!m.initialized() && !first.IsZero() && now.Sub(first) > toStart
	})
}

// starts returns when the first of the machines was launched for the pods that wait now;
// zero = none is known. Machines that run other pods do not count, and those that were
// there before such a pod or before the end of the last pause count from then.
func (w *World) starts(g *podGroup, own []*machine) time.Time {
	var first, waits time.Time
	for _, m := range own {
		if !slices.ContainsFunc(w.podsOf(m), func(p *pod) bool { return p.Reschedulable }) {
			first = earliest(first, m.claim.Created)
		}
	}
	for _, p := range g.members {
		if p.Node == "" && !p.Terminating {
			waits = earliest(waits, p.Created)
		}
	}
	if first.IsZero() {
		return first
	}
	return slices.MaxFunc([]time.Time{first, waits, g.purchase.resumed}, time.Time.Compare)
}

// earliest returns the earlier of the times that are not zero.
func earliest(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// fail begins a pause. That the machines do not keep the pods of the group is not their
// fault, so what was launched for these pods is forgotten.
func (w *World) fail(g *podGroup, own []*machine, now time.Time) {
	pause := firstPause
	for range g.purchase.failures {
		pause = min(2*pause, mostPause)
	}
	g.purchase = purchase{ran: g.purchase.ran, avoid: g.purchase.avoid, failures: g.purchase.failures + 1, resumed: now.Add(pause), until: now.Add(pause)}
	for _, p := range g.members {
		p.launches = nil
	}
	for _, m := range own {
		w.touch(m)
	}
	w.listed.podGroups = nil
}

// mostAvoided is how many places of nodes that have not started are kept for a group.
const mostAvoided = 4

// avoid notes where those of the machines are that have not started.
func (w *World) avoid(g *podGroup, own []*machine, now time.Time) {
	sorted := slices.SortedFunc(slices.Values(own), func(a, b *machine) int { return strings.Compare(a.claim.Name, b.claim.Name) })
	for _, m := range sorted {
		at := model.Place{Type: m.claim.Labels[model.LabelInstanceType], Zone: m.claim.Labels[model.LabelZone]}
		if m.initialized() || now.Sub(m.claim.Created) <= toRegister || at.Type == "" || at.Zone == "" {
			continue
		}
		others := slices.DeleteFunc(slices.Clone(g.purchase.avoid), func(p model.Place) bool { return p == at })
		g.purchase.avoid = append([]model.Place{at}, others[:min(len(others), mostAvoided-1)]...)
	}
}

// resume has nodes launched for the group again at once, and none given back.
func (w *World) resume(g *podGroup) {
	if g.purchase.until.IsZero() && !g.purchase.placed {
		return
	}
	if w.now.Before(g.purchase.resumed) {
		g.purchase.resumed = w.now
	}
	g.purchase.until, g.purchase.placed = time.Time{}, false
	for _, m := range w.bought()[g.group.Name] {
		w.touch(m)
	}
	w.listed.podGroups = nil
}

// returned reports whether the machine was launched for a group that could not start, or that
// has places for all its pods, but for the pods that are planned on the machine.
func (w *World) returned(m *machine, now time.Time) bool {
	if m.claim == nil {
		return false
	}
	for _, name := range m.claim.Groups {
		g := w.podGroups[name]
		if g == nil || !g.purchase.has(m) {
			continue
		}
		if now.Before(g.purchase.until) {
			w.changesAt(m, g.purchase.until)
			return true
		}
		if g.purchase.placed {
			return true
		}
	}
	return false
}

// waits says why the group may use initialized nodes only; "" = it may use any.
func (g *podGroup) waits(now time.Time) string {
	if g.group.Existing {
		return "it asks for capacity that exists"
	}
	if !now.Before(g.purchase.until) {
		return ""
	}
	return fmt.Sprintf("not all of its nodes could be had, and the next are launched after %s", g.purchase.until.UTC().Format(time.RFC3339))
}

// open notes that a machine was launched for the groups.
func (w *World) open(groups []string) {
	for _, name := range groups {
		if g := w.podGroups[name]; g != nil {
			g.purchase.launched = true
		}
	}
}

// running counts the pods of the group that are bound, or are about to be, and not ending.
func (g *podGroup) running() int {
	n := 0
	for _, p := range g.members {
		if (p.Node != "" || p.awaits()) && !p.Terminating {
			n++
		}
	}
	return n
}

// shown returns the group as decisions see it.
func (w *World) shown(g *podGroup) model.PodGroup {
	out := model.PodGroup{
		Name: g.group.Name, MinCount: g.group.MinCount, Running: g.running(), Refused: g.group.Refused,
		Waits: g.waits(w.now), Avoid: g.purchase.avoid, TopologyKey: g.group.TopologyKey,
	}
	if !g.known {
		out.Refused = "it does not exist"
	}
	if out.TopologyKey == "" {
		return out
	}
	for _, p := range g.members {
		if node := cmp.Or(p.Node, p.Awaits); (p.Node != "" || p.awaits()) && !p.Terminating {
			out.On = append(out.On, node)
		}
	}
	slices.Sort(out.On)
	out.On = slices.Compact(out.On)
	return out
}
