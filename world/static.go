// SPDX-License-Identifier: Apache-2.0

package world

import (
	"slices"

	"karpenter/model"
)

// listStatic says of each static pool where its claims stand.
func (w *World) listStatic(pools []model.Pool) []model.Pool {
	var counts map[string]*model.Static
	for i := range pools {
		p := w.pools[pools[i].Name]
		if p == nil || p.Replicas == nil {
			continue
		}
		if counts == nil {
			counts = w.countClaims()
		}
		count := counts[p.Name]
		if count == nil {
			count = &model.Static{}
		}
		count.Replicas = *p.Replicas
		pools[i].Static = count
	}
	return pools
}

// Static returns where the claims of a pool stand. Replicas is 0 when the pool
// is not known or not static.
func (w *World) Static(pool string) model.Static {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.static(pool)
}

func (w *World) static(pool string) model.Static {
	var out model.Static
	if count := w.countClaims()[pool]; count != nil {
		out = *count
	}
	if p := w.pools[pool]; p != nil && p.Replicas != nil {
		out.Replicas = *p.Replicas
	}
	return out
}

// countClaims counts the claims of each pool by state. A claim is in one state
// from when it is created until it is gone, whether or not it is launched.
func (w *World) countClaims() map[string]*model.Static {
	out := map[string]*model.Static{}
	for name, id := range w.claimIDs {
		m := w.machines[id]
		if m == nil || m.claim == nil || m.claim.Name != name {
			continue
		}
		pool := m.claim.Labels[model.LabelNodePool]
		if pool == "" {
			continue
		}
		count := out[pool]
		if count == nil {
			count = &model.Static{}
			out[pool] = count
		}
		switch {
		case m.claim.Deleting || m.claim.Terminating:
			count.Leaving++
		case m.marked || m.claim.Disrupting:
			count.Pending++
		default:
			count.Active++
		}
	}
	return out
}

// NoLimit stands for a pool without a limit of nodes.
const NoLimit = -1

// Refill grants the nodes that a static pool misses of its replicas, as far as
// its limit of nodes leaves room for them. Nodes that a command removes are
// not missing yet. What is granted counts as planned until release is called,
// which is the caller's to do once each of them is Planned or will never be.
func (w *World) Refill(pool string, replicas, limit int) (n int, release func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	count := w.static(pool)
	return w.grant(count, pool, limit, replicas-count.Active-count.Pending-w.granted[pool])
}

// Reserve grants up to want nodes more of a static pool, as far as its limit of
// nodes leaves room, as Refill does.
func (w *World) Reserve(pool string, limit, want int) (n int, release func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.grant(w.static(pool), pool, limit, want)
}

func (w *World) grant(count model.Static, pool string, limit, want int) (int, func()) {
	n := want
	if limit != NoLimit {
		n = min(n, limit-count.Active-count.Leaving-count.Pending-w.granted[pool])
	}
	n = max(n, 0)
	w.granted[pool] += n
	held := n
	return n, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.granted[pool] -= held; w.granted[pool] == 0 {
			delete(w.granted, pool)
		}
		held = 0
	}
}

// allocatable returns what pods can use of the machine. A claim that is not
// launched and was asked to hold nothing promises what is sure of it.
func (w *World) allocatable(m *machine) model.Resources {
	if m.launched() || slices.ContainsFunc(m.claim.Requests, func(v int64) bool { return v > 0 }) {
		return m.allocatable()
	}
	return w.outlook(m).least
}

// least returns what is allocatable on any machine that the claim may become,
// nil when it may become none.
func least(types []*model.InstanceType, claim model.Requirements) model.Resources {
	var out model.Resources
	found := false
	for _, t := range types {
		if !becomes(claim, t) {
			continue
		}
		if !found {
			out, found = slices.Clone(t.Allocatable), true
			continue
		}
		for i := range out {
			out[i] = min(out[i], t.Allocatable.At(i))
		}
	}
	return out
}

// becomes reports whether the claim may become a machine of the type.
func becomes(claim model.Requirements, t *model.InstanceType) bool {
	if _, ok := claim.Intersects(t.Requirements); !ok {
		return false
	}
	return slices.ContainsFunc(t.Offerings, func(o model.Offering) bool {
		_, ok := claim.Intersects(o.Requirements)
		return o.Available && ok
	})
}
