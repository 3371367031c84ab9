// SPDX-License-Identifier: Apache-2.0

package world

import (
	"cmp"
	"maps"
	"slices"
	"strings"
)

// retries is how often a pod is to name its node again after others have
// undone that: the scheduler does whenever it looks at the pod before the node
// takes pods.
const retries = 10

// crowd is how many pods may wait for the machines they are planned on before
// all are left to the scheduler. It reserves room for every pod that names a
// node in each attempt to place any pod: with 2,000 that costs nothing
// measurable, with 5,000 it doubles the time until all run.
const crowd = 2000

// Nomination says which node a pod's status is to name. Node is "" when it is
// to name none.
type Nomination struct {
	Namespace, Name, UID string
	Node                 string
}

// Adherence counts what became of plans for pods. The numbers only grow.
type Adherence struct {
	Planned   int // pods given a machine they were not planned on before
	AsPlanned int // pods bound to the node of their plan
	Elsewhere int // pods bound to another
}

// Adherence returns what became of plans so far.
func (w *World) Adherence() Adherence {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.count
}

// Nominations returns the pods planned on the node, or on the claim it was
// started for, whose status does not say so yet, sorted. The claim may be "":
// it is then that of the node, if known. What has been returned once is
// returned again only after another client has undone it, and not forever. There are
// none while a crowd of pods waits, and none of pods of PodGroups or with ResourceClaims, which the
// scheduler nominates itself.
func (w *World) Nominations(node, claim string) []Nomination {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.plans)-w.boundPlans > crowd {
		return nil
	}
	if m := w.machines[w.nodeIDs[node]]; claim == "" && m != nil && m.claim != nil {
		claim = m.claim.Name
	}
	var out []Nomination
	for _, target := range []string{node, claimKey(claim)} {
		for uid := range w.planned[target] {
			planned := w.plans[uid]
			p := w.pods[planned.pod]
			if p == nil || p.Awaits != "" || p.Buffer != "" || p.Group != "" || len(p.Shape.Claims) > 0 || p.Node != "" || p.Nominated == node || planned.asked == node || planned.drops > retries {
				continue
			}
			out = append(out, p.nomination(node))
		}
	}
	slices.SortFunc(out, byPlace)
	for _, n := range out {
		planned := w.plans[n.UID]
		planned.asked = node
		w.plans[n.UID] = planned
	}
	return out
}

// PlannedOn returns the pods that are planned on the claim, exist, and still wait
// for a node, sorted.
func (w *World) PlannedOn(claim string) []Nomination {
	w.mu.Lock()
	defer w.mu.Unlock()
	targets := []string{claimKey(claim)}
	if m := w.machines[w.claimIDs[claim]]; m != nil && m.node != nil {
		targets = append(targets, m.node.Name)
	}
	var out []Nomination
	for _, target := range targets {
		for uid := range w.planned[target] {
			p := w.pods[w.plans[uid].pod]
			if p != nil && p.Buffer == "" && p.Node == "" && !p.Terminal && !p.Terminating {
				out = append(out, p.nomination(claim))
			}
		}
	}
	slices.SortFunc(out, byPlace)
	return out
}

// NotNominated takes in that what Nominations returned could not be carried
// out, so that it is returned again.
func (w *World) NotNominated(n Nomination) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if planned, ok := w.plans[n.UID]; ok && planned.asked == n.Node {
		planned.asked = ""
		w.plans[n.UID] = planned
	}
}

// StaleNominations returns the pods whose status names, on our behalf, a node
// they are not planned on any more, sorted. They are to name no node.
func (w *World) StaleNominations() []Nomination {
	w.mu.Lock()
	defer w.mu.Unlock()
	var out []Nomination
	for _, p := range w.named {
		if w.plans[p.UID].asked != "" {
			continue // is written over
		}
		if target := w.target(p); target == "" || !w.sameMachine(target, p.Nominated) {
			out = append(out, p.nomination(""))
		}
	}
	slices.SortFunc(out, byPlace)
	return out
}

func (p *pod) nomination(node string) Nomination {
	return Nomination{Namespace: p.Namespace, Name: p.Name, UID: p.UID, Node: node}
}

func byPlace(a, b Nomination) int {
	return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name))
}

// target returns the machine the pod is planned on, by the name of its Node or its
// claim, which no other machine of a Snapshot has. What an earlier process
// has planned shows in the pod's status, and holds as long as that node is one
// of ours.
func (w *World) target(p *pod) string {
	if planned, ok := w.plans[p.UID]; ok {
		claim, ok := strings.CutPrefix(planned.target, claimPrefix)
		if !ok {
			return planned.target
		}
		if m := w.machines[w.claimIDs[claim]]; m != nil && w.shadowed(m) {
			return w.nameOf(m)
		}
		return claim
	}
	if m := w.machines[w.nodeIDs[p.Nominated]]; m != nil && m.claim != nil && p.Node == "" {
		return p.Nominated
	}
	return ""
}

// sameMachine reports whether two targets are one machine, which may go by the
// name of its Node and by that of its claim.
func (w *World) sameMachine(a, b string) bool {
	return a == b || w.identify(a) == w.identify(b) && w.identify(a) != ""
}

func (w *World) identify(target string) string {
	target = w.targetOf(target)
	if claim, ok := strings.CutPrefix(target, claimPrefix); ok {
		return w.claimIDs[claim]
	}
	return w.nodeIDs[target]
}

// targetOf returns the target of plans for a name as in Snapshots, or of a claim: the
// name of a Node, or a claimKey.
func (w *World) targetOf(name string) string {
	if _, node := w.nodeIDs[name]; node {
		return name
	}
	if _, claim := w.claimIDs[name]; claim {
		return claimKey(name)
	}
	return name
}

// follow takes in what an event about a pod says about its plan, before the
// plan is forgotten.
func (w *World) follow(old *pod, now *Pod) {
	if old.UID != now.UID {
		return
	}
	planned, ok := w.plans[now.UID]
	target := w.target(old)
	switch {
	case old.Node == "" && now.Node != "" && target != "":
		if w.sameMachine(target, now.Node) {
			w.count.AsPlanned++
		} else {
			w.count.Elsewhere++
		}
	case ok && old.Nominated != "" && old.Nominated == planned.asked && now.Nominated != old.Nominated:
		planned.asked = ""
		planned.drops++
		w.plans[now.UID] = planned
	}
}

// touchNamed has the plans looked at again of pods whose status names the
// node, and returns their UIDs, sorted.
func (w *World) touchNamed(node string) []string {
	touched := map[string]bool{}
	for uid, p := range w.named {
		if p.Nominated == node {
			w.relist(p)
			touched[uid] = true
		}
	}
	return slices.Sorted(maps.Keys(touched))
}
