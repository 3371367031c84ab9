// SPDX-License-Identifier: Apache-2.0

package world

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"karpenter/model"
)

// pool is a Pool.
type pool struct {
	Pool
	version int // another whenever its next nodes may differ
}

// standing is what the machines of a pool add up to.
type standing struct {
	machines         int
	sum              model.Resources
	usage            model.Resources // sum as Snapshots have it; nil = to be made
	total, consuming int
	leaving          int             // those of consuming that are being removed or reboot
	price            model.Price     // of all machines of the pool
	capacity         model.Resources // of those that are not being removed
}

// share is what one machine adds to the standing of a pool.
type share struct {
	counted          bool
	pool             string
	reserved         model.Resources // in the pool's limits; nil when it is being removed for good
	total, consuming bool            // in the pool's budgets
	leaving          bool            // it is being removed or reboots
	price            model.Price
	cpu              int64 // millicores of its type, if the pool has extras
	zone             string
	capacity         model.Resources // nil when it is being removed
}

// include adds the machine, as its view is, to the standing of its pool.
func (w *World) include(m *machine) {
	v := &m.view
	s := share{counted: true, pool: v.Pool}
	if m.claim != nil {
		s.price = v.Price
	}
	if t := w.typeOf(m); s.price != 0 && len(w.extras[s.pool]) > 0 && t != nil {
		s.cpu, s.zone = t.Capacity.At(model.CPU), m.label(model.LabelZone)
	}
	s.total = m.claim != nil && m.node != nil && (v.Initialized || m.claim.Rebooting) && !m.claim.Terminating
	s.leaving = s.total && (v.Deleting || m.node.Deleting || m.claim.Rebooting)
	s.consuming = s.leaving || s.total && !m.node.Ready
	if v.Deleting {
		w.going[m] = true
	} else {
		s.capacity = v.Capacity
	}
	if !m.ending() {
		s.reserved = w.reserve(m, v.Capacity)
	}
	m.share = s
	w.standing(s.pool).add(s, 1)
}

// exclude undoes include, and forgets until when the view holds.
func (w *World) exclude(m *machine) {
	delete(w.timed, m)
	m.until = time.Time{}
	if !m.share.counted {
		return
	}
	delete(w.going, m)
	s := w.standing(m.share.pool)
	if s.add(m.share, -1); s.machines == 0 {
		delete(w.standings, m.share.pool)
	}
	m.share = share{}
}

// changesAt has the machine looked at again at the time, or when it was to be
// looked at anyway; zero means never.
func (w *World) changesAt(m *machine, t time.Time) {
	if !t.IsZero() && (m.until.IsZero() || t.Before(m.until)) {
		m.until = t
		w.timed[m] = true
	}
}

func (w *World) standing(pool string) *standing {
	s := w.standings[pool]
	if s == nil {
		s = &standing{}
		w.standings[pool] = s
	}
	return s
}

func (s *standing) add(m share, sign int) {
	s.machines += sign
	s.price += model.Price(sign) * m.price
	if m.total {
		s.total += sign
	}
	if m.consuming {
		s.consuming += sign
	}
	if m.leaving {
		s.leaving += sign
	}
	if len(m.reserved) > 0 {
		s.usage = nil
	}
	s.sum = addTimes(s.sum, m.reserved, int64(sign))
	s.capacity = addTimes(s.capacity, m.capacity, int64(sign))
}

// used returns the usage, the same for equal sums however they came about.
func (s *standing) used() model.Resources {
	if s.usage == nil {
		n := len(s.sum)
		for n > 0 && s.sum[n-1] == 0 {
			n--
		}
		s.usage = append(model.Resources(nil), s.sum[:n]...)
	}
	return s.usage
}

// Usage returns the capacity of the pool's nodes that are not being removed, and
// their number. A claim that is not launched is one node of no capacity.
func (w *World) Usage(pool string) (model.Resources, int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.settle()
	w.refresh(w.now)
	s := w.standings[pool]
	if s == nil {
		s = &standing{}
	}
	n := s.capacity.At(model.Nodes)
	return s.capacity.With(model.Nodes, n), int(n)
}

// Costs returns by NodePool what its machines cost, for each that has any that
// is known to cost something. Machines that are being removed cost until they are
// gone.
func (w *World) Costs() map[string]model.Price {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.settle()
	w.refresh(w.now)
	out := map[string]model.Price{}
	for name, s := range w.standings {
		if s.price != 0 {
			out[name] = s.price
		}
	}
	return out
}

// CostParts returns by NodePool what Costs is made of, for each that has extras:
// instances, and each part of their price by name.
func (w *World) CostParts() map[string]map[string]model.Price {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.settle()
	w.refresh(w.now)
	out := map[string]map[string]model.Price{}
	for _, m := range w.machines {
		s := m.share
		pool := model.Pool{Extras: w.extras[s.pool]}
		for _, part := range pool.Parts(s.price, s.cpu, s.zone) {
			if out[s.pool] == nil {
				out[s.pool] = map[string]model.Price{}
			}
			out[s.pool][part.Name] += part.Price
		}
	}
	return out
}

// listPools returns the pools sorted by name.
func (w *World) listPools(now time.Time) []model.Pool {
	var out []model.Pool
	for _, name := range slices.Sorted(maps.Keys(w.pools)) {
		p := w.pools[name]
		s := w.standings[name]
		if s == nil {
			s = &standing{}
		}
		allowed, demands := p.allowed(now, s), p.Requirements
		if more := w.promised(name); len(more) > 0 {
			demands = demands.And(more...)
		}
		out = append(out, model.Pool{
			Name: name, Weight: p.Weight, Requirements: demands, Taints: p.Taints, Limits: p.Limits,
			Usage: s.used(), Types: w.types[name], Extras: w.extras[name], Aims: p.Aims, Unavailable: p.Unavailable,
			Template: p.Template,
			Disruption: model.Disruption{
				Allowed: allowed, Halted: p.halted(), Probing: p.Drift == Probing, Policy: p.Policy, Never: p.Never,
				Counted: s.total, Consuming: s.consuming,
			},
		})
	}
	return out
}

// allowed returns how many nodes of the pool may be disrupted now by reason:
// nodes that are not ready do not count against repairs, which are about them;
// fewer drifted ones than its budgets allow while its machines do not become
// nodes.
func (p *pool) allowed(now time.Time, s *standing) map[model.Reason]int {
	allowed := map[model.Reason]int{}
	for _, r := range []model.Reason{model.Empty, model.Drifted, model.Underutilized} {
		allowed[r] = max(p.Allowed(now, s.total, r)-s.consuming, 0)
	}
	allowed[model.Unhealthy] = max(p.Allowed(now, s.total, model.Unhealthy)-s.leaving, 0)
	switch p.Drift {
	case Probing:
		going := s.machines - int(s.capacity.At(model.Nodes))
		allowed[model.Drifted] = max(min(allowed[model.Drifted], 1)-going, 0)
	case Halted:
		allowed[model.Drifted] = 0
	}
	return allowed
}

// halted returns why machines of the pool replace no nodes, or "".
func (p *pool) halted() string {
	tried := ""
	switch p.Drift {
	case Free:
		return ""
	case Probing:
		tried = "; one at a time is tried"
	}
	return fmt.Sprintf("instances of NodePool %s do not become nodes, as its condition RolloutHalted says%s", p.Name, tried)
}
