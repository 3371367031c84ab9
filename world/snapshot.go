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

// Snapshot returns the cluster as it is known at the time. It is the caller's
// to read and to share. Times must not run backwards.
func (w *World) Snapshot(now time.Time) *model.Snapshot {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.now = now
	w.heal(now)
	w.settle()
	w.learnLimits()
	w.refresh(now)
	return &model.Snapshot{
		Now:       now,
		WellKnown: w.wellKnown,
		Pools:     w.listStatic(w.listPools(now)),
		Nodes:     w.nodes,
		Daemons:   w.listDaemons(),
		Pending:   w.listPending(now),
		Resources: w.axis.Names(),
	}
}

// refresh brings the views of all machines up to date, and w.nodes with them.
func (w *World) refresh(now time.Time) {
	for m := range w.timed {
		if !now.Before(m.until) {
			w.touch(m)
		}
	}
	changed := w.touched[:0]
	for _, m := range w.touched {
		if w.machines[m.id] != m {
			continue
		}
		name := m.view.Name
		w.look(m, now)
		w.moved = w.moved || m.view.Name != name
		changed = append(changed, m)
	}
	switch {
	case w.moved || w.nodes == nil:
		w.layOut()
	case len(changed) > 0:
		w.nodes = slices.Clone(w.nodes)
		for _, m := range changed {
			w.nodes[m.index] = m.view
		}
	}
	clear(w.touched)
	w.touched = w.touched[:0]
}

// layOut puts the views of all machines in order.
func (w *World) layOut() {
	order := slices.SortedFunc(maps.Values(w.machines), func(a, b *machine) int {
		return cmp.Or(strings.Compare(a.view.Name, b.view.Name), strings.Compare(a.id, b.id))
	})
	w.nodes, w.moved = make([]model.Node, len(order)), false
	for i, m := range order {
		m.index, w.nodes[i] = i, m.view
	}
}

// look makes the view of a machine.
func (w *World) look(m *machine, now time.Time) {
	w.exclude(m)
	m.stale = false
	m.view = model.Node{
		Name: m.name(), Pool: m.label(model.LabelNodePool),
		Registered: m.registered(), Initialized: m.initialized(),
		Labels: w.foresee(m, m.requirements(w.interest.nodeNames > 0)), Taints: m.taints(),
		Capacity: m.capacity(), Allocatable: w.allocatable(m),
		Price: w.price(m), Deleting: m.deleting(),
	}
	v := &m.view
	if m.claim != nil {
		v.Claim = m.claim.Name
		v.Reservation = w.reservation(m)
	}
	w.load(m, now)
	v.Disruption.Consolidatable = m.claim != nil && m.claim.Consolidatable
	v.Disruption.Blocked = w.blocked(m, now)
	w.include(m)
}

// load has the view of the machine say what its pods take.
func (w *World) load(m *machine, now time.Time) {
	v := &m.view
	v.Disruption.Cost = 1
	for _, p := range w.podsOf(m) {
		v.Requested = addTimes(v.Requested, p.Shape.Requests, 1)
		if p.Daemon {
			v.DaemonRequested = addTimes(v.DaemonRequested, p.Shape.Requests, 1)
		}
		if p.Reschedulable {
			v.Disruption.Cost += max(p.EvictionCost, 0)
		}
		v.HostPorts = append(v.HostPorts, p.Shape.HostPorts...)
	}
	v.Disruption.Empty = v.Disruption.Cost <= 1
	v.HostPorts = sortPorts(v.HostPorts)
	v.Attached = w.attached(m)
	v.Residents = w.residents(m, now)
}

// addTimes adds s times n to r, which nobody else has seen.
func addTimes(r, s model.Resources, n int64) model.Resources {
	for len(r) < len(s) {
		r = append(r, 0)
	}
	for i, v := range s {
		r[i] += n * v
	}
	return r
}

func (w *World) podsOf(m *machine) []*pod {
	if m.node == nil {
		return nil
	}
	if h := w.hosts[m.node.Name]; h != nil {
		return h.pods
	}
	return nil
}

// blocked returns why the machine may not be disrupted now, and sees to it
// that the question is asked again when time alone changes the answer.
func (w *World) blocked(m *machine, now time.Time) string {
	switch {
	case m.claim == nil:
		return "the node is not managed by a NodeClaim"
	case m.node == nil:
		return "the NodeClaim has no Node yet"
	case !m.initialized():
		return "the node is not initialized"
	case m.deleting():
		return "the node is being deleted"
	case now.Before(m.nominated):
		w.changesAt(m, m.nominated)
		return "the node is nominated for a pending pod"
	case m.node.DoNotDisrupt:
		return `the node has the annotation karpenter.sh/do-not-disrupt: "true"`
	case m.label(model.LabelNodePool) == "":
		return "the node has no label " + model.LabelNodePool
	}
	if why := w.poolBlocks(m.label(model.LabelNodePool)); why != "" {
		return why
	}
	for _, p := range w.podsOf(m) {
		if p.protected(now) {
			w.changesAt(m, p.ProtectedUntil)
			return fmt.Sprintf("pod %s has the annotation karpenter.sh/do-not-disrupt", p.key)
		}
	}
	for _, p := range w.podsOf(m) {
		if why := p.budgetBlocks(now); why != "" {
			return why
		}
	}
	return ""
}

func (w *World) poolBlocks(name string) string {
	p := w.pools[name]
	switch {
	case p == nil:
		return "there is no NodePool " + name
	case p.Unavailable != "":
		return fmt.Sprintf("NodePool %s is %s", name, p.Unavailable)
	case len(w.types[name]) == 0:
		return fmt.Sprintf("NodePool %s has no instance types", name)
	}
	return ""
}

// budgetBlocks returns why the pod's disruption budgets forbid to move it now.
func (p *pod) budgetBlocks(now time.Time) string {
	switch {
	case len(p.budgets) == 0 || !p.evictable(now):
		return ""
	case len(p.budgets) > 1:
		return fmt.Sprintf("pod %s has more than one PodDisruptionBudget", p.key)
	case p.budgets[0].Allowed <= 0 && !p.budgets[0].exempts(p):
		return fmt.Sprintf("PodDisruptionBudget %s/%s allows no disruption of pod %s", p.Namespace, p.budgets[0].Name, p.key)
	}
	return ""
}

// price returns what the machine costs, 0 when its offering is not known.
func (w *World) price(m *machine) model.Price {
	labels := m.labels()
	for _, t := range w.types[labels[model.LabelNodePool]] {
		if t.Name != labels[model.LabelInstanceType] {
			continue
		}
		for i := range t.Offerings {
			o := &t.Offerings[i]
			if o.Zone == labels[model.LabelZone] && o.CapacityType == labels[model.LabelCapacityType] {
				return o.Price
			}
		}
	}
	return 0
}

// reserve returns what the machine counts in its pool's limits. As long as
// nobody knows what a claim becomes, it is the most it may become.
func (w *World) reserve(m *machine, capacity model.Resources) model.Resources {
	if m.launched() {
		return capacity
	}
	out := capacity.Max(m.claim.Requests)
	allowed, ok := m.claim.Requirements.Get(model.LabelInstanceType)
	if !ok {
		return out
	}
	for _, t := range w.types[m.label(model.LabelNodePool)] {
		if allowed.Has(t.Name) {
			out = out.Max(t.Capacity)
		}
	}
	return out.With(model.Nodes, 1)
}
