// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"cmp"
	"maps"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"
)

const nodesResource = corev1.ResourceName("nodes")

// ledger is everything known, and what was summed up on the way. Its methods are safe for concurrent use.
type ledger struct {
	now    func() time.Time
	prices Prices // of machines that do not say their own

	mu      sync.Mutex
	changed chan struct{} // closed at the next change; nil: no one waits
	nodes   map[string]node
	claims  map[string]claim
	pods    map[string]pod // by namespace/name
	pools   map[string]Pool
	refused map[types.UID]string // the latest reason why a pod waits

	machines  []Machine // without pods; kept by account
	bought    map[Purchase]int
	known     map[string]bool // machines that are counted
	usage     map[string]corev1.ResourceList
	peaks     map[string]corev1.ResourceList
	price     float64
	peakPrice float64
	spent     float64
	priceFrom time.Time // since when the price is what it is
}

func newLedger(now func() time.Time, prices Prices) *ledger {
	return &ledger{
		now: now, prices: prices,
		nodes: map[string]node{}, claims: map[string]claim{}, pods: map[string]pod{}, pools: map[string]Pool{},
		refused: map[types.UID]string{}, bought: map[Purchase]int{}, known: map[string]bool{},
		peaks: map[string]corev1.ResourceList{}, priceFrom: now(),
	}
}

// next returns a channel that is closed at the next change.
func (l *ledger) next() <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.changed == nil {
		l.changed = make(chan struct{})
	}
	return l.changed
}

// change runs f, which changes something, and wakes who waits.
func (l *ledger) change(f func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	f()
	if l.changed != nil {
		close(l.changed)
		l.changed = nil
	}
}

func (l *ledger) putNode(n node) {
	n.price = l.prices.of(n.offer)
	l.change(func() { l.nodes[n.name] = n; l.accountLocked() })
}
func (l *ledger) dropNode(name string) { l.change(func() { delete(l.nodes, name); l.accountLocked() }) }
func (l *ledger) putClaim(c claim) {
	c.price = l.prices.of(c.offer)
	l.change(func() { l.claims[c.name] = c; l.accountLocked() })
}
func (l *ledger) dropClaim(name string) {
	l.change(func() { delete(l.claims, name); l.accountLocked() })
}
func (l *ledger) putPool(p Pool)         { l.change(func() { l.pools[p.Name] = p }) }
func (l *ledger) dropPool(name string)   { l.change(func() { delete(l.pools, name) }) }
func (l *ledger) putPod(k string, p pod) { l.change(func() { l.pods[k] = p }) }
func (l *ledger) dropPod(k string, p pod) {
	l.change(func() { delete(l.pods, k); delete(l.refused, p.uid) })
}

// putRefusal records why the pod with the UID waits.
func (l *ledger) putRefusal(pod types.UID, why string) {
	l.change(func() { l.refused[pod] = why })
}

// accountLocked brings machines and all sums up to date.
func (l *ledger) accountLocked() {
	now := l.now()
	l.spent += l.price * now.Sub(l.priceFrom).Hours()
	l.priceFrom = now
	l.machines = machines(l.nodes, l.claims)
	l.price = 0
	l.usage = map[string]corev1.ResourceList{}
	for i := range l.machines {
		m := &l.machines[i]
		l.price += m.Price
		if m.Type != "" && !l.known[m.Name] {
			l.known[m.Name] = true
			l.bought[Purchase{Type: m.Type, CapacityType: m.CapacityType, Price: m.Price}]++
		}
		if m.Pool == "" || m.State == Removing {
			continue
		}
		if l.usage[m.Pool] == nil {
			l.usage[m.Pool] = corev1.ResourceList{}
		}
		addTo(l.usage[m.Pool], m.Capacity)
		addTo(l.usage[m.Pool], corev1.ResourceList{nodesResource: *resource.NewQuantity(1, resource.DecimalSI)})
	}
	l.peakPrice = max(l.peakPrice, l.price)
	for pool, used := range l.usage {
		if l.peaks[pool] == nil {
			l.peaks[pool] = corev1.ResourceList{}
		}
		for name, quantity := range used {
			if quantity.Cmp(l.peaks[pool][name]) > 0 {
				l.peaks[pool][name] = quantity
			}
		}
	}
}

func addTo(sum, more corev1.ResourceList) {
	for name, quantity := range more {
		total := sum[name].DeepCopy()
		total.Add(quantity)
		sum[name] = total
	}
}

// machines joins claims and their nodes; by pool and name.
func machines(nodes map[string]node, claims map[string]claim) []Machine {
	all := make([]Machine, 0, max(len(nodes), len(claims)))
	// A claim learns its node's name late, its provider id a little earlier, and may be seen after the node is.
	byProvider, byHost := make(map[string]string, len(nodes)), make(map[string]string, len(nodes))
	for name, n := range nodes {
		byProvider[n.providerID] = name
		byHost[n.host] = name
	}
	joined := make(map[string]bool, len(nodes))
	for _, c := range claims {
		name := cmp.Or(c.nodeName, byHost[c.name])
		if name == "" && c.providerID != "" {
			name = byProvider[c.providerID]
		}
		n, found := nodes[name]
		joined[n.name] = found
		all = append(all, machineOf(&c, n, found))
	}
	for name, n := range nodes {
		// A node of a pool that no one has given its provider id yet is that of a claim.
		if !joined[name] && (n.pool == "" || n.providerID != "") {
			all = append(all, loneMachine(n))
		}
	}
	slices.SortFunc(all, func(a, b Machine) int {
		return cmp.Or(cmp.Compare(a.Pool, b.Pool), cmp.Compare(a.Name, b.Name))
	})
	return all
}

func machineOf(c *claim, n node, found bool) Machine {
	m := newMachine(c.name, c.offer, c.capacity)
	switch {
	case c.kind == "" && !found:
		m.State = Launching
	case !found || n.fresh || !n.ready && !c.initialized:
		m.State = Booting
	case n.ready:
		m.State = Ready
	default:
		m.State = NotReady
	}
	if found {
		m.Node = n.name
		if m.Type == "" || n.price > 0 {
			m.Type, m.Zone, m.CapacityType, m.Price = n.kind, n.zone, n.capacityType, n.price
		}
		if len(m.Capacity) == 0 {
			m.Capacity = n.capacity
		}
	}
	if !c.removing.IsZero() || !n.removing.IsZero() {
		m.State = Removing
	}
	return m
}

func loneMachine(n node) Machine {
	name := n.name
	if n.pool != "" && n.host != "" {
		name = n.host // its claim comes, or has gone
	}
	m := newMachine(name, n.offer, n.capacity)
	m.Node = n.name
	switch {
	case !n.removing.IsZero():
		m.State = Removing
	case n.ready && !n.fresh:
		m.State = Ready
	default:
		m.State = Booting
	}
	return m
}

func newMachine(name string, o offer, capacity corev1.ResourceList) Machine {
	return Machine{
		Name: name, Pool: o.pool, Type: o.kind, Zone: o.zone, CapacityType: o.capacityType, Price: o.price,
		Capacity: capacity,
	}
}

// view tells what there is.
func (l *ledger) view() View {
	l.mu.Lock()
	defer l.mu.Unlock()
	v := View{
		Machines: slices.Clone(l.machines),
		Bought:   l.purchasesLocked(),
		Price:    l.price, PeakPrice: l.peakPrice,
		Spent: l.spent + l.price*l.now().Sub(l.priceFrom).Hours(),
	}
	v.Workloads = l.placePodsLocked(v.Machines)
	for _, name := range slices.Sorted(maps.Keys(l.pools)) {
		p := l.pools[name]
		p.Usage, p.Peak = maps.Clone(l.usage[name]), maps.Clone(l.peaks[name])
		v.Pools = append(v.Pools, p)
	}
	return v
}

func (l *ledger) purchasesLocked() []Purchase {
	all := make([]Purchase, 0, len(l.bought))
	for p, count := range l.bought {
		p.Count = count
		all = append(all, p)
	}
	slices.SortFunc(all, func(a, b Purchase) int {
		return cmp.Or(cmp.Compare(b.Price, a.Price), cmp.Compare(a.Type, b.Type), cmp.Compare(a.CapacityType, b.CapacityType))
	})
	return all
}

// placePodsLocked adds pods to the machines they are on and returns them by workload.
func (l *ledger) placePodsLocked(on []Machine) []Workload {
	byNode := make(map[string]*Machine, len(on))
	for i := range on {
		if on[i].Node != "" {
			byNode[on[i].Node] = &on[i]
		}
	}
	workloads := map[string]*Workload{}
	for _, p := range l.pods {
		w := workloads[p.workload]
		if w == nil {
			w = &Workload{Name: p.workload, Refused: map[string]int{}}
			workloads[p.workload] = w
		}
		l.countLocked(w, &p)
		if m := byNode[p.node]; m != nil && !p.finished() {
			m.Pods++
			m.Used.add(p.requests)
		}
	}
	all := make([]Workload, 0, len(workloads))
	for _, name := range slices.Sorted(maps.Keys(workloads)) {
		all = append(all, *workloads[name])
	}
	return all
}

func (l *ledger) countLocked(w *Workload, p *pod) {
	switch {
	case p.stopping:
		w.Stopping++
	case p.finished():
		w.Finished++
	case p.node == "":
		w.Waiting++
		if why, ok := l.refused[p.uid]; ok {
			w.Refused[why]++
		}
	case p.phase == corev1.PodRunning:
		w.Running++
	default:
		w.Starting++
	}
}
