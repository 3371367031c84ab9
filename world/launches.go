// SPDX-License-Identifier: Apache-2.0

package world

import (
	"slices"
	"time"

	"karpenter/model"
)

const (
	// freeLaunches is how many nodes of one NodePool may be launched for a pod
	// before further ones are delayed. Losing a place to other pods now and then
	// is normal.
	freeLaunches = 3
	// firstHold is the delay after that many launches. It doubles with each
	// further launch, up to mostHold.
	firstHold = 5 * time.Minute
	mostHold  = 20 * time.Minute
	// remembered is how long after the last launch all are forgotten.
	remembered = 6 * mostHold
	// mostLaunches is how many are kept; that many reach mostHold.
	mostLaunches = freeLaunches + 3
)

// launched is a NodeClaim that was created for a pod.
type launched struct {
	pool, claim string
	version     int // the pool's
	at          time.Time
}

// Hold delays launches of nodes of a NodePool for a pod that nodes launched
// for it did not keep. A node that keeps a pod like it does not count.
type Hold struct {
	UID, Pool string
	Launches  int       // that count, up to a bound
	Since     time.Time // of the first of them
	Until     time.Time // when the next node may be launched
}

// Holds returns the holds in force on pods that ask for a node. A hold ends
// early when the pod or the NodePool changes.
func (w *World) Holds(now time.Time) []Hold {
	w.mu.Lock()
	defer w.mu.Unlock()
	var out []Hold
	for _, g := range w.waiting {
		for _, p := range g.waiting {
			if len(p.launches) >= freeLaunches {
				out = append(out, w.holds(p, now)...)
			}
		}
	}
	return out
}

// holds returns the holds of one pod, in the order of the first launches.
func (w *World) holds(p *pod, now time.Time) []Hold {
	if now.Sub(p.launches[len(p.launches)-1].at) >= remembered {
		return nil
	}
	var all []Hold
	for _, l := range p.launches {
		if pool := w.pools[l.pool]; pool == nil || l.version != pool.version || w.keepsLike(l.claim, p) {
			continue
		}
		i := slices.IndexFunc(all, func(h Hold) bool { return h.Pool == l.pool })
		if i < 0 {
			i, all = len(all), append(all, Hold{UID: p.UID, Pool: l.pool, Since: l.at})
		}
		h := &all[i]
		h.Launches++
		h.Until = l.at.Add(holdAfter(h.Launches))
	}
	return slices.DeleteFunc(all, func(h Hold) bool { return h.Launches < freeLaunches || !now.Before(h.Until) })
}

// keepsLike reports whether the node of the claim runs another pod like p. Then
// the node is fine, and the other pod was faster: pods of one workload often take
// each other's places while many of them start.
func (w *World) keepsLike(claim string, p *pod) bool {
	m := w.machines[w.claimIDs[claim]]
	return m != nil && slices.ContainsFunc(w.podsOf(m), func(o *pod) bool {
		return o.UID != p.UID && !o.Terminating && !o.Unready && heirKey(o) == heirKey(p)
	})
}

// holdAfter is how long after so many launches the next may follow.
func holdAfter(launches int) time.Duration {
	hold := firstHold
	for range launches - freeLaunches {
		hold = min(2*hold, mostHold)
	}
	return hold
}

// countLaunch notes that the claim was created for the pods. Pods that have to
// leave their nodes do not count: that is no fault of the nodes launched for
// them.
func (w *World) countLaunch(c Claim, pods []model.Pod) {
	w.open(c.Groups)
	l := launched{pool: c.Labels[model.LabelNodePool], claim: c.Name, at: w.now}
	if pool := w.pools[l.pool]; pool != nil {
		l.version = pool.version
	}
	for _, ref := range pods {
		p := w.pods[podKey(ref.Namespace, ref.Name, ref.Buffer)]
		if p == nil || p.UID != ref.UID || p.Buffer != "" || p.Node != "" {
			continue
		}
		recent := slices.DeleteFunc(slices.Clone(p.launches), func(old launched) bool { return old.claim == c.Name })
		if n := len(recent); n > 0 && w.now.Sub(recent[n-1].at) >= remembered {
			recent = nil
		}
		recent = append(recent, l)
		p.launches = recent[max(len(recent)-mostLaunches, 0):]
	}
}

// uncountLaunch takes back what countLaunch noted about a claim that goes
// without having been launched: the cloud had no capacity, for example.
func (w *World) uncountLaunch(claim string) {
	for uid := range w.planned[claimKey(claim)] {
		if p := w.pods[w.plans[uid].pod]; p != nil {
			p.launches = slices.DeleteFunc(slices.Clone(p.launches), func(l launched) bool { return l.claim == claim })
		}
	}
}

// bequeath keeps the launches for a pod that goes soon after the last of them,
// for the pod that its controller makes in its place: nodes that pods are
// evicted from at once keep none of them.
func (w *World) bequeath(p *pod) {
	if p.Terminal || len(p.launches) == 0 || w.now.Sub(p.launches[len(p.launches)-1].at) >= firstHold {
		return
	}
	key := heirKey(p)
	w.bequests[key] = append(w.bequests[key], p.launches)
}

// inheritLaunches gives a new pod the launches for one like it that has gone recently.
func (w *World) inheritLaunches(p *pod) {
	key := heirKey(p)
	left := slices.DeleteFunc(w.bequests[key], func(l []launched) bool { return w.now.Sub(l[len(l)-1].at) >= firstHold })
	if len(left) > 0 && p.Node == "" && !p.Terminal {
		p.launches, left = left[0], left[1:]
	}
	if w.bequests[key] = left; len(left) == 0 {
		delete(w.bequests, key)
	}
}

// heirKey is equal for pods of which one may stand in for the other.
func heirKey(p *pod) string { return p.Namespace + "/" + p.Shape.Key }
