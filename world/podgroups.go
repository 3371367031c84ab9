// SPDX-License-Identifier: Apache-2.0

package world

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"karpenter/model"
)

// podGroup is a PodGroup, or one that pods name although there is none.
type podGroup struct {
	known   bool
	group   PodGroup
	members map[string]*pod // that have not ended, by key

	purchase purchase
}

// SetPodGroup takes in a PodGroup that is new or changed.
func (w *World) SetPodGroup(g PodGroup) {
	w.mu.Lock()
	to := w.podGroup(g.Name)
	changed := !to.known || to.group != g
	to.known, to.group = true, g
	if changed {
		w.resume(to)
	}
	w.regroup(to, changed)
}

// DeletePodGroup takes in that the PodGroup is gone.
func (w *World) DeletePodGroup(name string) {
	w.mu.Lock()
	to := w.podGroup(name)
	changed := to.known
	to.known, to.group = false, PodGroup{Name: name}
	w.resume(to)
	to.purchase = purchase{}
	w.regroup(to, changed)
}

// PodGroup returns the PodGroup of the name; without UID if there is none.
func (w *World) PodGroup(name string) PodGroup {
	w.mu.Lock()
	defer w.mu.Unlock()
	if g := w.podGroups[name]; g != nil {
		return g.group
	}
	return PodGroup{Name: name}
}

// regroup unlocks w, after telling that pods of the group may be planned otherwise.
func (w *World) regroup(g *podGroup, changed bool) {
	w.listed.podGroups = nil
	w.dropPodGroup(g)
	var uid string
	for _, p := range g.members {
		w.touchHost(p.Node)
		if p.asks() && (uid == "" || p.UID < uid) {
			uid = p.UID
		}
	}
	w.notifyIf(changed && uid != "", uid)
}

func (w *World) podGroup(name string) *podGroup {
	g := w.podGroups[name]
	if g == nil {
		g = &podGroup{group: PodGroup{Name: name}, members: map[string]*pod{}}
		w.podGroups[name] = g
	}
	return g
}

// dropPodGroup forgets a group that nothing is known of.
func (w *World) dropPodGroup(g *podGroup) {
	if !g.known && len(g.members) == 0 {
		delete(w.podGroups, g.group.Name)
	}
}

// enlist enters the pod in its PodGroup.
func (w *World) enlist(p *pod) {
	if p.Group == "" || p.Terminal {
		return
	}
	w.podGroup(p.Group).members[p.key] = p
	w.listed.podGroups = nil
}

// discharge undoes enlist.
func (w *World) discharge(p *pod) {
	if g := w.podGroups[p.Group]; g != nil {
		delete(g.members, p.key)
		w.dropPodGroup(g)
		w.listed.podGroups = nil
	}
}

// listPodGroups returns the groups that have pods and start together, by name.
func (w *World) listPodGroups() []model.PodGroup {
	if ends := w.listed.holds; !ends.IsZero() && !w.now.Before(ends) {
		w.listed.podGroups = nil
	}
	if w.listed.podGroups != nil || len(w.podGroups) == 0 {
		return w.listed.podGroups
	}
	out := []model.PodGroup{}
	w.listed.holds = time.Time{}
	for _, name := range slices.Sorted(maps.Keys(w.podGroups)) {
		g := w.podGroups[name]
		shown := w.shown(g)
		if len(g.members) == 0 || shown.MinCount == 0 && shown.Refused == "" {
			continue
		}
		if runs(shown) {
			w.resume(g)
			g.purchase, shown.Waits = purchase{ran: w.now}, ""
		}
		if until := g.purchase.until; w.now.Before(until) && (w.listed.holds.IsZero() || until.Before(w.listed.holds)) {
			w.listed.holds = until
		}
		out = append(out, shown)
	}
	w.listed.podGroups = out
	return out
}

// holdsTogether returns why the pod forbids to disrupt its node: its PodGroup would
// run fewer pods than it must, or in more than one topology domain. Pods that are disrupted
// together are in the Disruption.Together of their nodes instead.
func (w *World) holdsTogether(p *pod) string {
	g := w.podGroups[p.Group]
	switch {
	case g == nil || p.Terminal || p.Terminating || g.group.MinCount < 2 && g.group.TopologyKey == "" || g.movesWhole():
		return ""
	case g.group.MinCount < 2:
		return fmt.Sprintf("pod %s is of PodGroup %s, of which all pods must run in one domain of %s", p.key, p.Group, g.group.TopologyKey)
	}
	return fmt.Sprintf("pod %s is of PodGroup %s, of which %d pods must run at the same time", p.key, p.Group, g.group.MinCount)
}

// movesWhole reports whether the pods of the group may be disrupted all at once. No plan moves
// pods that must be in one topology domain.
func (g *podGroup) movesWhole() bool { return g.group.Together && g.group.TopologyKey == "" }

// together returns the PodGroups whose pods on the machine are disrupted only together with
// their others, sorted. Pods that are ending count: their others may go with them.
func (w *World) together(m *machine) []string {
	if len(w.podGroups) == 0 {
		return nil
	}
	var out []string
	for _, p := range w.podsOf(m) {
		if g := w.podGroups[p.Group]; g != nil && !p.Terminal && g.movesWhole() {
			out = append(out, p.Group)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}
