// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"

	corev1 "k8s.io/api/core/v1"

	v1 "karpenter/api/v1"
	"karpenter/bench/workload"
	"karpenter/cloud/kwok"
)

// Judge judges plans for one workload.
type Judge struct {
	pods     map[string]*asked
	pools    map[string]*v1.NodePool
	entries  map[string]*entry
	daemons  []*asked
	nodes    map[string]*workload.Machine
	machines map[place]*machine
	verdict  Verdict
	used     map[string]amounts // by pool: capacity the plan adds at most
	seen     map[string]bool
	sites    []site
	bound    map[string][]*asked // by node

	peers
}

// asked is a pod with what it requests and the class of its demands: pods of
// one class may run on the same nodes, room aside.
type asked struct {
	pod      *corev1.Pod
	requests amounts
	class    int
	group    int
}

// entry is an instance type with its nodes, one for each offering.
type entry struct {
	*kwok.Entry
	capacity amounts
	labels   []map[string]string // by offering
}

// New returns a judge of plans for w.
func New(w *workload.Workload) *Judge {
	j := &Judge{
		pods: map[string]*asked{}, pools: map[string]*v1.NodePool{}, entries: map[string]*entry{}, nodes: map[string]*workload.Machine{},
		machines: map[place]*machine{}, bound: map[string][]*asked{}, peers: peers{known: map[string]*term{}, grouped: map[string]int{}},
	}
	classes := map[string]int{}
	ask := func(p *corev1.Pod) *asked {
		text := demands(p)
		class, ok := classes[text]
		if !ok {
			class = len(classes)
			classes[text] = class
		}
		return &asked{pod: p, requests: amountsOf(workload.Requests(p)), class: class, group: j.group(p)}
	}
	for p := range w.Pending() {
		j.pods[Key(p)] = ask(p)
	}
	for _, d := range w.Daemons {
		p := &corev1.Pod{Spec: d.Spec.Template.Spec}
		p.Namespace, p.Name = d.Namespace, d.Name
		j.daemons = append(j.daemons, ask(p))
	}
	for _, p := range w.Pools {
		j.pools[p.Name] = p
	}
	for i := range w.Machines {
		m := &w.Machines[i]
		j.nodes[m.Node.Name] = m
		for _, p := range m.Bound {
			j.bound[m.Node.Name] = append(j.bound[m.Node.Name], ask(p))
		}
	}
	for i := range w.Entries {
		e := &w.Entries[i]
		j.entries[e.Name] = &entry{Entry: e, capacity: amountsOf(e.Resources), labels: labelsOf(e)}
	}
	return j
}

// group returns the group of the pod.
func (j *Judge) group(p *corev1.Pod) int {
	carries := j.terms(p)
	ids := []int{}
	for _, t := range carries {
		ids = append(ids, t.id)
	}
	text, err := json.Marshal([]any{p.Namespace, p.Labels, ids})
	if err != nil {
		panic(err) // plain data
	}
	at, ok := j.grouped[string(text)]
	if !ok {
		at = len(j.groups)
		j.grouped[string(text)], j.groups = at, append(j.groups, group{pod: p, carries: carries})
	}
	return at
}

// demands is equal for pods that may run on the same nodes.
func demands(p *corev1.Pod) string {
	text, err := json.Marshal(struct {
		Selector    map[string]string
		Affinity    *corev1.Affinity
		Tolerations []corev1.Toleration
	}{p.Spec.NodeSelector, p.Spec.Affinity, p.Spec.Tolerations})
	if err != nil {
		panic(err) // plain data
	}
	return string(text)
}

// labelsOf returns the labels of a node of the type by offering.
func labelsOf(e *kwok.Entry) []map[string]string {
	var out []map[string]string
	for _, o := range e.Offerings {
		l := map[string]string{
			corev1.LabelInstanceTypeStable: e.Name, corev1.LabelArchStable: e.Architecture, corev1.LabelOSStable: string(e.OperatingSystems[0]),
		}
		for _, rs := range [][]kwok.RequirementEntry{e.Requirements, o.Requirements} {
			for _, r := range rs {
				if r.Operator == corev1.NodeSelectorOpIn {
					l[r.Key] = r.Values[0]
				}
			}
		}
		out = append(out, l)
	}
	return out
}

func (j *Judge) fault(format string, args ...any) {
	if j.verdict.Count++; j.verdict.Count <= maxFaults {
		j.verdict.Faults = append(j.verdict.Faults, fmt.Sprintf(format, args...))
	}
}

// Judge judges the plan.
func (j *Judge) Judge(p *Plan) Verdict {
	j.verdict, j.used, j.seen, j.sites = Verdict{Nodes: len(p.Claims)}, map[string]amounts{}, map[string]bool{}, nil
	j.domains = map[string]map[string]bool{}
	for _, node := range slices.Sorted(maps.Keys(p.Placed)) {
		j.placed(node, j.take(p.Placed[node]))
	}
	for _, node := range slices.Sorted(maps.Keys(j.nodes)) {
		if _, used := p.Placed[node]; !used {
			j.site(node, nil)
		}
	}
	for i := range p.Claims {
		j.claim(i, &p.Claims[i])
	}
	j.limits()
	j.topology()
	j.ports()
	return j.verdict
}

// take looks the pods up and notes that they have a place.
func (j *Judge) take(keys []string) []*asked {
	var out []*asked
	for _, key := range keys {
		switch a := j.pods[key]; {
		case a == nil:
			j.fault("pod %s is not pending", key)
		case j.seen[key]:
			j.fault("pod %s has several places", key)
		default:
			out, j.seen[key] = append(out, a), true
			j.verdict.Scheduled++
		}
	}
	return out
}

// placed checks the pods put on a node that is there.
func (j *Judge) placed(name string, pods []*asked) {
	m := j.nodes[name]
	if m == nil {
		j.fault("node %s does not exist", name)
		return
	}
	sum := amounts{}
	for _, a := range j.bound[name] {
		sum.add(a.requests)
	}
	for _, a := range pods {
		sum.add(a.requests)
		if !workload.Accepts(m.Node, a.pod) {
			j.fault("node %s does not accept pod %s", name, Key(a.pod))
		}
	}
	if what, ok := sum.fit(amountsOf(m.Node.Status.Allocatable)); !ok {
		j.fault("node %s has too little %s", name, what)
	}
	j.site(name, pods)
}

// site adds an existing node.
func (j *Judge) site(name string, pods []*asked) {
	s := site{name: name, before: j.bound[name], pods: pods}
	s.could(j.nodes[name].Node, j.keys)
	j.sites = append(j.sites, s)
}

// claim checks every machine the claim may become and adds the price of the
// cheapest.
func (j *Judge) claim(i int, c *Claim) {
	pods, pool := j.take(c.Pods), j.pools[c.Pool]
	if pool == nil || len(c.Types) == 0 || len(pods) == 0 {
		j.fault("claim %d has no pool, no types or no pods", i)
		return
	}
	b := bundle{claim: i, sum: amounts{}}
	for _, a := range pods {
		b.add(a)
	}
	cheapest, s, largest := math.Inf(1), site{name: fmt.Sprintf("claim %d", i), pods: pods}, amounts{"nodes": 1000}
	for _, name := range c.Types {
		e := j.entries[name]
		if e == nil {
			j.fault("claim %d lists %s, which nobody sells", i, name)
			continue
		}
		some := false
		for k := range e.Offerings {
			if !j.allows(c, e, k) {
				continue
			}
			m := j.machine(place{pool: c.Pool, name: name, offering: k})
			j.outcome(&b, m)
			s.could(m.node, j.keys)
			some, cheapest = true, min(cheapest, *e.Offerings[k].Price)
		}
		if !some {
			j.fault("claim %d lists %s, but none that its pool or itself allows", i, name)
		}
		largest.most(e.capacity)
	}
	j.reserve(c.Pool, largest)
	j.settle(&s, c)
	j.sites = append(j.sites, s)
	if !math.IsInf(cheapest, 1) {
		j.verdict.Price += cheapest
	}
}

// settle gives the site the labels that no instance type has and that the claim
// asks for with one value.
func (j *Judge) settle(s *site, c *Claim) {
	for _, r := range c.Requirements {
		if s.node == nil || r.Operator != corev1.NodeSelectorOpIn || len(r.Values) != 1 || !slices.Contains(j.keys, r.Key) {
			continue
		}
		if _, has := s.node.Labels[r.Key]; !has && satisfies(map[string]string{r.Key: r.Values[0]}, j.pools[c.Pool].Spec.Template.Spec.Requirements) {
			s.labels[r.Key] = r.Values[0]
		}
	}
}

// bundle is the pods of a claim.
type bundle struct {
	claim int
	sum   amounts
	kinds []*asked // one pod of each class
	bad   bool     // some machine does not suit; that is told once
}

func (b *bundle) add(a *asked) {
	b.sum.add(a.requests)
	if !slices.ContainsFunc(b.kinds, func(k *asked) bool { return k.class == a.class }) {
		b.kinds = append(b.kinds, a)
	}
}

// place is an offering of a type in a pool.
type place struct {
	pool, name string
	offering   int
}

// machine is what is launched there.
type machine struct {
	node *corev1.Node
	room amounts // beside the daemons
	took map[int]bool
}

// machine returns what is launched at the place.
func (j *Judge) machine(at place) *machine {
	if m := j.machines[at]; m != nil {
		return m
	}
	e, pool := j.entries[at.name], j.pools[at.pool]
	n := &corev1.Node{}
	n.Labels = map[string]string{v1.NodePoolLabelKey: at.pool}
	maps.Copy(n.Labels, pool.Spec.Template.Labels)
	maps.Copy(n.Labels, e.labels[at.offering])
	n.Spec.Taints = v1.CoreTaints(pool.Spec.Template.Spec.Taints)
	m := &machine{node: n, room: amountsOf(workload.Allocatable(e.Entry)), took: map[int]bool{}}
	for _, d := range j.daemons {
		if m.takes(d) {
			m.room.less(d.requests)
		}
	}
	j.machines[at] = m
	return m
}

// takes remembers by class what accepts says.
func (m *machine) takes(a *asked) bool {
	ok, known := m.took[a.class]
	if !known {
		ok = workload.Accepts(m.node, a.pod)
		m.took[a.class] = ok
	}
	return ok
}

// outcome checks that the pods could run on the machine.
func (j *Judge) outcome(b *bundle, m *machine) {
	if b.bad {
		return
	}
	l := m.node.Labels
	if what, ok := b.sum.fit(m.room); !ok {
		b.bad = true
		j.fault("claim %d has too little %s as %s", b.claim, what, l[corev1.LabelInstanceTypeStable])
	}
	for _, a := range b.kinds {
		if !m.takes(a) {
			b.bad = true
			j.fault("claim %d as %s in %s does not accept pod %s", b.claim, l[corev1.LabelInstanceTypeStable], l[corev1.LabelTopologyZone], Key(a.pod))
		}
	}
}
