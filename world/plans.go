// SPDX-License-Identifier: Apache-2.0

package world

import (
	"maps"
	"slices"
	"time"

	"karpenter/model"
)

// confirmation is how long a claim is known from Planned only before someone
// should ask for it. The event that confirms it takes a moment, or longer where
// caches lag; a claim that ended before Planned was called never gets any.
const confirmation = 15 * time.Second

// Planned takes in that the claim has been created for the pods. It is
// capacity at once, and the pods stay planned on it until they are bound or
// gone or the claim is. When events about the claim have come first, they win.
func (w *World) Planned(c Claim, pods []model.Pod) {
	w.mu.Lock()
	if _, known := w.claimIDs[c.Name]; !known {
		m := w.setClaim(c)
		m.claim, m.seeded, m.since = &c, true, time.Time{}
		w.seeded[m] = true
		w.touch(m)
	}
	w.countLaunch(c, pods)
	w.plan(claimKey(c.Name), pods)
	w.mu.Unlock()
}

// Placed takes in that the pods are to go to a node, named as in Snapshots. They stay
// planned on it until they are bound or gone or the node is.
func (w *World) Placed(node string, pods []model.Pod) {
	w.mu.Lock()
	w.plan(node, pods)
	w.mu.Unlock()
}

// Unplaced takes in that there is no place for the pods. They are planned on
// nothing, also where their status still names a node on our behalf.
func (w *World) Unplaced(pods []model.Pod) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, ref := range pods {
		p := w.pods[podKey(ref.Namespace, ref.Name, ref.Buffer)]
		if p == nil || p.UID != ref.UID || p.Node != ref.From || w.target(p) == "" {
			continue
		}
		w.unplan(p.UID)
		if p.Nominated != "" {
			w.plans[p.UID] = plan{pod: p.key}
			w.relist(p)
		}
	}
}

// plan records the target of pods that still exist and are where they were.
func (w *World) plan(target string, pods []model.Pod) {
	target = w.targetOf(target)
	for _, ref := range pods {
		p := w.pods[podKey(ref.Namespace, ref.Name, ref.Buffer)]
		if p == nil || p.UID != ref.UID || p.Node != ref.From {
			continue
		}
		next := plan{target: target, pod: p.key, bound: p.Node != ""}
		if old, ok := w.plans[ref.UID]; ok && w.sameMachine(old.target, target) {
			next.asked, next.drops = old.asked, old.drops
		} else if p.Node == "" && p.Buffer == "" {
			w.count.Planned++
		}
		w.unplan(ref.UID)
		w.plans[ref.UID] = next
		if next.bound {
			w.boundPlans++
		}
		if w.planned[target] == nil {
			w.planned[target] = map[string]bool{}
		}
		w.planned[target][ref.UID] = true
		w.relist(p)
	}
}

// unplan forgets the plan for a pod.
func (w *World) unplan(uid string) {
	old, ok := w.plans[uid]
	if !ok {
		return
	}
	delete(w.plans, uid)
	if old.bound {
		w.boundPlans--
	}
	delete(w.planned[old.target], uid)
	if len(w.planned[old.target]) == 0 {
		delete(w.planned, old.target)
	}
	if p := w.pods[old.pod]; p != nil {
		w.relist(p)
	}
}

// dropPlans forgets the plans for a target that is gone and returns the UIDs
// of the pods, sorted.
func (w *World) dropPlans(target string) []string {
	uids := slices.Sorted(maps.Keys(w.planned[target]))
	for _, uid := range uids {
		w.unplan(uid)
	}
	return uids
}

// Unconfirmed returns the names of claims that are known from Planned only
// although an event about them is overdue, sorted. Confirmed or DeleteClaim says
// what the API server says.
func (w *World) Unconfirmed(now time.Time) []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	var out []string
	for m := range w.seeded {
		if !m.seeded || m.claim == nil {
			delete(w.seeded, m)
			continue
		}
		if m.since.IsZero() {
			m.since = now
		}
		if now.Sub(m.since) >= confirmation {
			out = append(out, m.claim.Name)
		}
	}
	slices.Sort(out)
	return out
}

// Confirmed takes in what the API server says of a claim that is Unconfirmed. It
// will be so again if no event comes: no one else would tell that it is gone.
// When an event has come meanwhile, that counts.
func (w *World) Confirmed(c Claim, now time.Time) {
	w.mu.Lock()
	if m := w.machines[w.claimIDs[c.Name]]; m == nil || !m.seeded {
		w.mu.Unlock()
		return
	}
	m := w.setClaim(c)
	m.seeded, m.since = true, now
	w.seeded[m] = true
	w.unlockClaim(m, c)
}
