// SPDX-License-Identifier: Apache-2.0

package wild

import (
	"fmt"
	"math"

	corev1 "k8s.io/api/core/v1"

	v1 "karpenter/api/v1"
	"karpenter/bench/workload"
	"karpenter/cloud/kwok"
)

// kind is what an existing node can be.
type kind struct{ pool, instance string }

// kinds returns what existing nodes are drawn from.
func kinds() []kind {
	return []kind{
		{"general", "m6i.2xlarge"}, {"general", "c6i.4xlarge"}, {"general", "r6g.2xlarge"}, {"general", "c7g.8xlarge"},
		{"general", "m7i.4xlarge"}, {"general", "r6i.4xlarge"}, {"general", "c7i.2xlarge"}, {"general", "m6i.8xlarge"},
		{"arm", "m7g.4xlarge"}, {"arm", "c7g.2xlarge"}, {"batch", "m6i.4xlarge"}, {"batch", "c6i.2xlarge"},
	}
}

// packer puts running pods on existing nodes so that all required spread and
// anti-affinity of a Deployment's own pods holds. What odd families demand of the pods of
// other Deployments may not hold, as in a cluster whose labels were changed.
type packer struct {
	*problem
	pods     []*corev1.Pod // one of each Deployment
	machines []*host
	started  []int            // replicas running, by Deployment
	zones    []map[string]int // pods by zone, by Deployment
	accepted map[string]bool  // by Deployment, kind and offering
	pools    map[string]*v1.NodePool
	entries  map[string]*kwok.Entry
}

// host is a machine with what is free on it.
type host struct {
	workload.Machine
	kind              kind
	zone, offer       string
	cpu, memory, pods int64
	of                map[int]int // pods by Deployment
	daemons           int         // pods of DaemonSets, which are the first that are bound
}

func newPacker(p *problem) *packer {
	k := &packer{problem: p, accepted: map[string]bool{}, pools: map[string]*v1.NodePool{}, entries: map[string]*kwok.Entry{}}
	for i := range p.Workload.Deployments {
		k.pods = append(k.pods, p.Workload.Deployments[i].Pod(0))
		k.zones = append(k.zones, map[string]int{})
	}
	k.started = make([]int, len(k.pods))
	for _, pool := range p.Pools {
		k.pools[pool.Name] = pool
	}
	for i := range p.Entries {
		k.entries[p.Entries[i].Name] = &p.Entries[i]
	}
	return k
}

// open returns a machine of a drawn kind, offering and zone that is not added
// yet.
func (k *packer) open(number int) *host {
	what := kinds()[k.IntN(len(kinds()))]
	e := k.entries[what.instance]
	o := e.Offerings[k.IntN(len(e.Offerings))]
	m := workload.NewMachine(fmt.Sprintf("%s-%05d", what.pool, number), k.pools[what.pool], e, o)
	k.BindDaemons(&m)
	h := &host{Machine: m, kind: what, of: map[int]int{}, daemons: len(m.Bound), zone: m.Node.Labels[corev1.LabelTopologyZone], offer: m.Node.Labels[v1.CapacityTypeLabelKey]}
	h.cpu, h.memory = m.Free()
	h.pods = m.Node.Status.Allocatable.Pods().Value() - int64(len(m.Bound))
	return h
}

// takes reports whether a pod of the Deployment can run on the host.
func (k *packer) takes(h *host, d int) bool {
	of := &k.Workload.Deployments[d]
	if of.CPU > h.cpu || of.Memory > h.memory || h.pods < 1 || h.of[d] >= perHost(k.pods[d]) {
		return false
	}
	key := fmt.Sprint(d, h.kind, h.zone, h.offer)
	ok, known := k.accepted[key]
	if !known {
		ok = workload.Accepts(h.Node, k.pods[d]) && ordinary(k.pods[d])
		k.accepted[key] = ok
	}
	return ok && k.level(h.zone, d)
}

// ordinary reports whether the pod requests nothing but CPU and memory.
func ordinary(p *corev1.Pod) bool {
	for name := range workload.Requests(p) {
		if name != corev1.ResourceCPU && name != corev1.ResourceMemory && name != corev1.ResourcePods {
			return false
		}
	}
	return true
}

// level reports whether one more pod in the zone keeps the Deployment's spread
// over zones.
func (k *packer) level(zone string, d int) bool {
	skew := required(k.pods[d], corev1.LabelTopologyZone)
	fewest := math.MaxInt
	for _, z := range zones() {
		fewest = min(fewest, k.zones[d][z])
	}
	return k.zones[d][zone]+1-fewest <= skew
}

// required returns the smallest maxSkew of the pod's required spreads over the
// topology key, a large number without one.
func required(p *corev1.Pod, key string) int {
	least := math.MaxInt32
	for _, c := range p.Spec.TopologySpreadConstraints {
		if c.TopologyKey == key && c.WhenUnsatisfiable == corev1.DoNotSchedule {
			least = min(least, int(c.MaxSkew))
		}
	}
	return least
}

// perHost returns how many pods of the Deployment one host can run.
func perHost(p *corev1.Pod) int {
	if a := p.Spec.Affinity; a != nil && a.PodAntiAffinity != nil && len(a.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution) > 0 {
		return 1
	}
	return required(p, corev1.LabelHostname)
}

// run binds one more pod of the Deployment to the host.
func (k *packer) run(h *host, d int) {
	of := &k.Workload.Deployments[d]
	h.Bind(of.Pod(of.Replicas + k.started[d]))
	h.cpu, h.memory, h.pods = h.cpu-of.CPU, h.memory-of.Memory, h.pods-1
	h.of[d]++
	k.started[d]++
	k.zones[d][h.zone]++
}

// existing adds the existing nodes. Together they have room for a part of the
// pending pods, or for somewhat more than all of them; some have much, most
// little.
func (p *problem) existing() {
	k := newPacker(p)
	var pending, capacity int64
	for i := range p.Workload.Deployments {
		pending += p.Workload.Deployments[i].CPU * int64(p.Workload.Deployments[i].Replicas)
	}
	hosts := make([]*host, p.Nodes)
	for i := range hosts {
		hosts[i] = k.open(i)
		capacity += hosts[i].cpu
	}
	room := min((0.2+p.Float64())*float64(pending)/float64(max(capacity, 1)), 0.5) // of the average node
	if p.nearlyFull {
		room = min(room, 0.05)
	}
	for _, h := range hosts {
		free := min(room*p.ExpFloat64(), 1)
		keepCPU, keepMemory := int64(free*float64(h.cpu)), int64(free*float64(h.memory))
		h.cpu, h.memory = h.cpu-keepCPU, h.memory-keepMemory
		const tries = 12
		for range tries {
			if d := p.IntN(len(k.pods)); !p.apart && k.takes(h, d) {
				k.run(h, d)
			}
		}
		k.fill(h)
		p.Machines = append(p.Machines, h.Machine)
	}
}

// fill uses what is left of the host with pods of no Deployment.
func (k *packer) fill(h *host) {
	const others = 3
	for n := range others {
		other := workload.Deployment{
			Name: fmt.Sprintf("old-%s-%d", h.Node.Name, n), Labels: map[string]string{workload.Label: "old"},
			CPU: h.cpu / others, Memory: h.memory / others,
		}
		h.Bind(other.Pod(0))
	}
}

// halfEmpty packs the Deployments' pods onto nodes and takes many of them away
// again. Without a number of nodes there are as many as the pods need.
func (p *problem) halfEmpty() {
	k := newPacker(p)
	var order []int
	for i := range p.Workload.Deployments {
		for range p.Workload.Deployments[i].Replicas {
			order = append(order, i)
		}
	}
	for full := false; !full; full = p.Nodes == 0 || len(k.machines) >= p.Nodes {
		p.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
		for _, d := range order {
			if !k.place(d) && p.Nodes > 0 && len(k.machines) >= p.Nodes {
				break
			}
		}
	}
	gone := 0.3 + 0.5*p.Float64()
	for _, h := range k.machines {
		k.thin(h, gone)
		p.Machines = append(p.Machines, h.Machine)
	}
	p.Workload.Deployments = nil
}

// place runs a pod of the Deployment on one of the newest hosts or on another
// one, and reports whether it could.
func (k *packer) place(d int) bool {
	const window, tries = 30, 60
	for i := max(len(k.machines)-window, 0); i < len(k.machines); i++ {
		if k.takes(k.machines[i], d) {
			k.run(k.machines[i], d)
			return true
		}
	}
	if k.Nodes > 0 && len(k.machines) >= k.Nodes {
		return false
	}
	for range tries {
		if h := k.open(len(k.machines)); k.takes(h, d) {
			k.machines = append(k.machines, h)
			k.run(h, d)
			return true
		}
	}
	return false
}

// thin takes that share of the pods off the host, and has it wait for
// consolidation.
func (k *packer) thin(h *host, gone float64) {
	stay := h.Bound[:h.daemons:h.daemons]
	for _, p := range h.Bound[h.daemons:] {
		if k.Float64() >= gone {
			stay = append(stay, p)
		}
	}
	h.Bound = stay
	h.Consolidatable()
}
