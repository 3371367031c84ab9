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
	w.heal(now)
	w.refresh(now)
	return &model.Snapshot{
		Now:       now,
		WellKnown: w.wellKnown,
		Pools:     w.listPools(now),
		Nodes:     w.nodes,
		Daemons:   w.listDaemons(),
		Pending:   w.listPending(now),
		Resources: w.axis.Names(),
	}
}

// PendingUIDs returns the UIDs of the pods that ask for a node, sorted.
func (w *World) PendingUIDs() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	var out []string
	for _, s := range w.shapes {
		for _, p := range s.pending {
			out = append(out, p.UID)
		}
	}
	slices.Sort(out)
	return out
}

// refresh brings the views of all machines up to date, and w.nodes with them.
func (w *World) refresh(now time.Time) {
	var changed []*machine
	for _, m := range w.machines {
		if !m.stale && (m.until.IsZero() || now.Before(m.until)) {
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
	m.stale, m.until = false, time.Time{}
	v := model.Node{
		Name: m.name(), Pool: m.label(model.LabelNodePool),
		Registered: m.registered(), Initialized: m.initialized(),
		Labels: m.requirements(), Taints: m.taints(),
		Capacity: m.capacity(), Allocatable: m.allocatable(),
		Price: w.price(m), Deleting: m.deleting(),
	}
	if m.claim != nil {
		v.Claim = m.claim.Name
	}
	v.Disruption.Cost = 1
	for _, p := range w.podsOf(m) {
		v.Requested = v.Requested.Plus(p.Shape.Requests)
		if p.Daemon {
			v.DaemonRequested = v.DaemonRequested.Plus(p.Shape.Requests)
		}
		if p.Reschedulable {
			v.Disruption.Cost += max(p.EvictionCost, 0)
		}
	}
	v.Disruption.Empty = v.Disruption.Cost <= 1
	v.Disruption.Consolidatable = m.claim != nil && m.claim.Consolidatable
	v.Disruption.Blocked = w.blocked(m, now)
	m.view = v
	m.total = m.claim != nil && m.node != nil && v.Initialized && !m.claim.Terminating
	m.consuming = m.total && (!m.node.Ready || v.Deleting || m.node.Deleting)
	m.reserved = w.reserve(m, v.Capacity)
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
		m.changesAt(m.nominated)
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
			m.changesAt(p.ProtectedUntil)
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

// changesAt has the machine looked at again at the time; zero means never.
func (m *machine) changesAt(t time.Time) { m.until = t }

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

// pool is a Pool.
type pool struct{ Pool }

// standing is what the machines of a pool add up to.
type standing struct {
	usage            model.Resources
	total, consuming int
}

// listPools returns the pools that may launch, sorted by name.
func (w *World) listPools(now time.Time) []model.Pool {
	standings := w.standings()
	var out []model.Pool
	for _, name := range slices.Sorted(maps.Keys(w.pools)) {
		p := w.pools[name]
		if p.Unavailable != "" {
			continue
		}
		s := standings[name]
		if s == nil {
			s = &standing{}
		}
		out = append(out, model.Pool{
			Name: name, Weight: p.Weight, Requirements: p.Requirements, Taints: p.Taints, Limits: p.Limits,
			Usage: s.usage, Types: w.types[name], Refused: p.Refused,
			Disruption: model.Disruption{Allowed: p.allowed(now, s)},
		})
	}
	return out
}

// standings adds up the machines by pool. Their views must be up to date.
func (w *World) standings() map[string]*standing {
	out := map[string]*standing{}
	for _, m := range w.machines {
		s := out[m.view.Pool]
		if s == nil {
			s = &standing{}
			out[m.view.Pool] = s
		}
		if !m.view.Deleting {
			s.add(m.reserved)
		}
		if m.total {
			s.total++
		}
		if m.consuming {
			s.consuming++
		}
	}
	return out
}

func (s *standing) add(r model.Resources) {
	if len(s.usage) < len(r) {
		s.usage = s.usage.With(len(r)-1, 0)
	}
	for i, v := range r {
		s.usage[i] += v
	}
}

func (p *pool) allowed(now time.Time, s *standing) map[model.Reason]int {
	out := map[model.Reason]int{}
	for _, r := range []model.Reason{model.Empty, model.Drifted, model.Underutilized} {
		out[r] = max(p.Allowed(now, s.total, r)-s.consuming, 0)
	}
	return out
}

// listPending returns the pods that need a place by shape: those that ask for
// one and those that will lose theirs.
func (w *World) listPending(now time.Time) []model.Pending {
	leaving := w.leaving(now)
	var out []model.Pending
	for _, s := range w.shapes {
		pods := s.list(w)
		if more := leaving[s]; len(more) > 0 {
			pods = slices.Concat(pods, more)
			slices.SortFunc(pods, byAge)
		}
		if len(pods) > 0 {
			out = append(out, model.Pending{Shape: s.Shape, Pods: pods})
		}
	}
	slices.SortFunc(out, func(a, b model.Pending) int { return strings.Compare(a.Shape.Key, b.Shape.Key) })
	return out
}

// list returns the pending pods of the shape, oldest first.
func (s *shape) list(w *World) []model.Pod {
	if s.sorted == nil && len(s.pending) > 0 {
		s.sorted = make([]model.Pod, 0, len(s.pending))
		for _, p := range s.pending {
			s.sorted = append(s.sorted, w.model(p))
		}
		slices.SortFunc(s.sorted, byAge)
	}
	return s.sorted
}

// byAge puts the oldest first, and pods that exist before those of buffers.
func byAge(a, b model.Pod) int {
	return cmp.Or(strings.Compare(a.Buffer, b.Buffer), a.Created.Compare(b.Created), strings.Compare(a.UID, b.UID))
}

// leaving returns the pods of machines that are going away.
func (w *World) leaving(now time.Time) map[*shape][]model.Pod {
	out := map[*shape][]model.Pod{}
	for _, m := range w.machines {
		if !m.deleting() {
			continue
		}
		for _, p := range w.podsOf(m) {
			if p.leaves(now) {
				out[p.shape] = append(out[p.shape], w.model(p))
			}
		}
	}
	return out
}
