// SPDX-License-Identifier: Apache-2.0

package world_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"karpenter/model"
	"karpenter/scenario"
	"karpenter/world"
)

// facts is the state of a cluster as the API would list it.
type facts struct {
	nodes  map[string]world.Node
	claims map[string]world.Claim
	pods   map[string]world.Pod
	pdbs   map[string]world.DisruptionBudget
	spaces map[string]map[string]string
	limits map[string]map[string]int
	groups map[string]world.PodGroup

	regrouped int // times that regroup was called
}

func newFacts() *facts {
	return &facts{
		nodes: map[string]world.Node{}, claims: map[string]world.Claim{}, pods: map[string]world.Pod{}, pdbs: map[string]world.DisruptionBudget{},
		spaces: map[string]map[string]string{}, limits: map[string]map[string]int{}, groups: map[string]world.PodGroup{},
	}
}

// change makes up the next event, applies it to f and tells w. Sometimes w
// misses that a pod was deleted before another took its name.
func (f *facts) change(r *rand.Rand, w *world.World) {
	i := r.IntN(6)
	f.regroup(w)
	switch r.IntN(11) {
	case 0:
		n := world.Node{
			Name: fmt.Sprint("n", i), UID: fmt.Sprint("n", i), ProviderID: fmt.Sprint("i", i), Ready: r.IntN(3) > 0, Deleting: r.IntN(9) == 0,
			Labels:      map[string]string{model.LabelNodePool: fmt.Sprint("p", r.IntN(2)), model.LabelInstanceType: fmt.Sprint("t", i%2), model.LabelInitialized: fmt.Sprint(r.IntN(4) > 0)},
			Allocatable: model.Resources{8000}, Capacity: model.Resources{8000},
		}
		if r.IntN(2) == 0 {
			n.Labels[model.LabelRegistered] = "true"
		}
		f.nodes[n.Name] = n
		w.SetNode(n)
	case 1:
		delete(f.nodes, fmt.Sprint("n", i))
		w.DeleteNode(fmt.Sprint("n", i))
	case 2:
		c := world.Claim{
			Name: claimName(i), UID: fmt.Sprint("c", i), Labels: map[string]string{model.LabelNodePool: fmt.Sprint("p", r.IntN(2)), model.LabelInstanceType: fmt.Sprint("t", r.IntN(2))},
			Requests: model.Resources{500}, Deleting: r.IntN(4) == 0, Consolidatable: r.IntN(2) == 0, Deadline: r.IntN(2) == 0,
		}
		if r.IntN(2) == 0 {
			c.Drifted = scenario.DefaultNow().Add(-time.Duration(r.IntN(90)) * time.Second)
		}
		if r.IntN(3) > 0 {
			c.QuietSince = scenario.DefaultNow().Add(time.Duration(r.IntN(90)) * time.Second)
		}
		if r.IntN(3) == 0 {
			c.FreshUntil = scenario.DefaultNow().Add(time.Duration(r.IntN(90)) * time.Second)
		}
		if r.IntN(3) > 0 {
			c.ProviderID, c.Capacity, c.Allocatable = fmt.Sprint("i", i), model.Resources{8000}, model.Resources{8000}
		}
		f.claims[c.Name] = c
		w.SetClaim(c)
	case 3:
		delete(f.claims, claimName(i))
		w.DeleteClaim(claimName(i))
	case 4:
		b := world.DisruptionBudget{Namespace: "s0", Name: fmt.Sprint("b", i), Selector: fmt.Sprint("app", i%3), Allowed: r.IntN(2), Never: r.IntN(2) == 0, UnreadyExempt: r.IntN(3) == 0}
		b.Selects = func(l map[string]string) bool { return l["app"] == b.Selector }
		f.pdbs[b.Name] = b
		w.SetDisruptionBudget(b)
	case 5:
		delete(f.pdbs, fmt.Sprint("b", i))
		w.DeleteDisruptionBudget("s0", fmt.Sprint("b", i))
	case 6:
		name := fmt.Sprint("s", i%2)
		f.spaces[name] = map[string]string{"team": fmt.Sprint("t", r.IntN(2)), "other": fmt.Sprint(r.IntN(9))}
		w.SetNamespace(name, f.spaces[name])
		if r.IntN(4) == 0 {
			delete(f.spaces, name)
			w.DeleteNamespace(name)
		}
	case 7:
		p := f.anyPod(r)
		delete(f.pods, p.Key())
		w.DeletePod(p.Namespace, p.Name)
	case 8:
		f.limit(r, w, fmt.Sprint("n", i))
	default:
		p := f.anyPod(r)
		f.pods[p.Key()] = p
		w.SetPod(p)
	}
}

// claimName returns the name of a claim of instance i: some have the name of its Node, some
// of another's.
func claimName(i int) string { return []string{"c0", "c1", "c2", "n3", "n5", "n0"}[i] }

// regroup now and then changes a PodGroup.
func (f *facts) regroup(w *world.World) {
	f.regrouped++
	i := f.regrouped
	if i%7 != 0 {
		return
	}
	g := world.PodGroup{Name: fmt.Sprint("g", i%2), MinCount: i % 4, Refused: []string{"", "", "odd"}[i%3]}
	f.groups[g.Name] = g
	w.SetPodGroup(g)
	if i%5 == 0 {
		delete(f.groups, g.Name)
		w.DeletePodGroup(g.Name)
	}
}

// limit changes how many volumes may be attached to a node.
func (f *facts) limit(r *rand.Rand, w *world.World, node string) {
	f.limits[node] = map[string]int{}
	for _, driver := range []string{"ebs", "efs"} {
		if r.IntN(2) == 0 {
			f.limits[node][driver] = r.IntN(4)
		}
	}
	w.SetVolumeLimits(node, f.limits[node])
}

func (f *facts) anyPod(r *rand.Rand) world.Pod {
	cpu := int64(1 + r.IntN(3))
	p := world.Pod{
		Namespace: fmt.Sprint("s", r.IntN(2)), Name: fmt.Sprint("a", r.IntN(15)), UID: fmt.Sprint("u", r.IntN(1000)),
		Created: scenario.DefaultNow().Add(time.Duration(r.IntN(5)) * time.Second),
		Labels:  map[string]string{"app": fmt.Sprint("app", r.IntN(4)), "tier": fmt.Sprint(r.IntN(2)), "unique": fmt.Sprint(r.IntN(1000))},
		Shape:   anyShape(r, cpu),
		Daemon:  r.IntN(5) == 0, Terminal: r.IntN(6) == 0, Protected: r.IntN(8) == 0,
		EvictionCost: float64(r.IntN(3)), Unready: r.IntN(2) == 0,
	}
	if r.IntN(4) > 0 {
		p.Node = fmt.Sprint("n", r.IntN(6))
	}
	p.Pending, p.Terminating = p.Node == "" && r.IntN(2) == 0, r.IntN(8) == 0
	if p.Protected && r.IntN(2) == 0 {
		p.ProtectedUntil = scenario.DefaultNow().Add(time.Duration(1+r.IntN(90)) * time.Second)
	}
	p.Reschedulable = !p.Daemon && !p.Terminal
	if n := len(p.UID) + int(cpu); n%2 == 0 {
		p.Group = fmt.Sprint("g", n%3)
	}
	return p
}

// anyShape looks at other pods half of the time.
func anyShape(r *rand.Rand, cpu int64) *model.Shape {
	s := &model.Shape{Requests: model.Resources{cpu, 0, 1}}
	sel := model.PodSelector{Namespaces: []string{fmt.Sprint("s", r.IntN(2))}, Nothing: r.IntN(9) == 0}
	if key := []string{"app", "tier", ""}[r.IntN(3)]; key != "" {
		sel.Labels = model.NewRequirements(model.NewRequirement(key, []model.Operator{model.In, model.NotIn}[r.IntN(2)], "app1", "1"))
	}
	if r.IntN(3) == 0 {
		sel.Namespaces, sel.ByNamespace = nil, true
		if r.IntN(2) == 0 {
			sel.NamespaceLabels = model.NewRequirements(model.NewRequirement("team", model.In, "t1"))
		}
	}
	switch r.IntN(8) {
	case 0:
		s.Spread = []model.Spread{{Key: model.LabelZone, MaxSkew: 1, Select: sel}}
	case 1:
		s.PodTerms = []model.PodTerm{{Key: model.LabelZone, Select: sel}}
	case 2:
		s.PodTerms = []model.PodTerm{{Key: model.LabelHostname, Select: sel, Anti: true}}
	case 3:
		s.HostPorts = []model.HostPort{{IP: "0.0.0.0", Protocol: "TCP", Port: int32(r.IntN(3))}}
	case 5:
		s.Volumes = []model.Volumes{{Driver: "ebs", Own: r.IntN(2), Shared: []string{fmt.Sprint("c", r.IntN(3))}}}
	case 4:
		s.Terms = []model.Requirements{{model.NewRequirement(model.FieldName, model.In, "n1")}}
	}
	s.Key = s.Identity(model.NewAxis().Names())
	return s
}

func emptyWorld() *world.World {
	w := world.New(model.NewAxis(), nil)
	for _, name := range []string{"p0", "p1"} {
		w.SetPool(world.Pool{Name: name, ConsolidateAfter: consolidateAfter()[name], Allowed: func(time.Time, int, model.Reason) int { return 3 }})
		w.SetTypes(name, []*model.InstanceType{{Name: "t", Capacity: model.Resources{8000}}})
	}
	return w
}

// build tells a new world the facts in a random order.
func (f *facts) build(r *rand.Rand) *world.World {
	w := emptyWorld()
	var events []func()
	for _, n := range f.nodes {
		events = append(events, func() { w.SetNode(n) })
	}
	for _, c := range f.claims {
		events = append(events, func() { w.SetClaim(c) })
	}
	for _, p := range f.pods {
		events = append(events, func() { w.SetPod(p) })
	}
	for name, labels := range f.spaces {
		events = append(events, func() { w.SetNamespace(name, labels) })
	}
	for _, b := range f.pdbs {
		events = append(events, func() { w.SetDisruptionBudget(b) })
	}
	for _, g := range f.groups {
		events = append(events, func() { w.SetPodGroup(g) })
	}
	for node, limits := range f.limits {
		events = append(events, func() { w.SetVolumeLimits(node, limits) })
	}
	r.Shuffle(len(events), func(i, j int) { events[i], events[j] = events[j], events[i] })
	for _, e := range events {
		e()
	}
	return w
}

// used sums up from the facts what runs on a node.
func (f *facts) used(node string) (all, daemons model.Resources) {
	for _, p := range f.pods {
		if p.Node != node || p.Terminal {
			continue
		}
		all = all.Plus(p.Shape.Requests)
		if p.Daemon {
			daemons = daemons.Plus(p.Shape.Requests)
		}
	}
	return all, daemons
}

// Whatever the world looks like, a dump of it can be read back.
func TestSnapshotsCanBeWritten(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	w, f := emptyWorld(), newFacts()
	for step := range 300 {
		f.change(r, w)
		s := w.Snapshot(scenario.DefaultNow())
		var out strings.Builder
		if err := scenario.Print(&out, s); err != nil {
			t.Fatalf("after step %d: %v", step, err)
		}
		back, err := scenario.Parse(strings.NewReader(out.String()))
		if err != nil {
			t.Fatalf("after step %d: %v in\n%s", step, err, out.String())
		}
		var again strings.Builder
		if err := scenario.Print(&again, back); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(out.String(), again.String()); diff != "" {
			t.Fatalf("after step %d a dump reads differently (-was +is):\n%s", step, diff)
		}
		for i := range s.Nodes {
			was, is := &s.Nodes[i], &back.Nodes[i]
			if diff := cmp.Diff(was.Movable, is.Movable) + cmp.Diff(was.Disruption, is.Disruption); diff != "" {
				t.Fatalf("after step %d a dump has node %s go differently (-was +is):\n%s", step, was.Name, diff)
			}
		}
	}
}

// A Snapshot depends on what is there, not on how it came about: after any
// history it equals that of a world which hears of the present only, in any
// order. What runs on a node is the sum of its pods (spec 25/8). And no
// Snapshot ever changes.
func TestHistoryLeavesNoTrace(t *testing.T) {
	for seed := range uint64(20) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 0))
			w, f := emptyWorld(), newFacts()
			var taken []*model.Snapshot
			var texts []string
			for step := range 100 {
				f.change(r, w)
				now := scenario.DefaultNow().Add(time.Duration(step) * time.Second)
				s := w.Snapshot(now)
				fresh := f.build(r).Snapshot(now)
				if diff := cmp.Diff(fresh, s); diff != "" {
					t.Fatalf("after step %d, want what a new world says (-want +got):\n%s", step, diff)
				}
				f.checkSums(t, s)
				f.checkPeers(t, s)
				taken, texts = append(taken, s), append(texts, text(s))
			}
			for i, s := range taken {
				if got := text(s); got != texts[i] {
					t.Fatalf("snapshot %d has changed from\n%s\nto\n%s", i, texts[i], got)
				}
			}
		})
	}
}

func text(s *model.Snapshot) string {
	var out strings.Builder
	fmt.Fprintf(&out, "%+v\n%+v\n%+v\n", s.Nodes, s.Pools, s.Groups)
	lists := [][]model.Pending{s.Pending}
	for i := range s.Nodes {
		lists = append(lists, s.Nodes[i].Movable)
	}
	for _, list := range lists {
		for _, p := range list {
			fmt.Fprintf(&out, "%+v %+v %+v\n", *p.Shape, p.Peer, p.Pods)
		}
	}
	return out.String()
}

func (f *facts) checkSums(t *testing.T, s *model.Snapshot) {
	t.Helper()
	names := map[string]bool{}
	for _, n := range s.Nodes {
		if names[n.Name] {
			t.Fatalf("two machines are called %s", n.Name)
		}
		names[n.Name] = true
		node := n.Name
		if _, isNode := f.nodes[node]; !isNode {
			node = nodeOf(f, n.Claim)
		}
		all, daemons := f.used(node)
		if node == "" {
			all, daemons = nil, nil
		}
		if !n.Requested.Equal(all) || !n.DaemonRequested.Equal(daemons) {
			t.Fatalf("%s: requested %v, of it by daemons %v; its pods sum up to %v and %v", n.Name, n.Requested, n.DaemonRequested, all, daemons)
		}
	}
}

// checkPeers compares how often selectors select pods of the Snapshot with how
// often they select the pods there are, and what is known of pods with what is
// asked.
func (f *facts) checkPeers(t *testing.T, s *model.Snapshot) {
	t.Helper()
	got, want := map[string]int{}, map[string]int{}
	keys := model.NewLabelSet()
	for _, sel := range f.selectors() {
		for _, r := range sel.Labels {
			keys[r.Key] = struct{}{}
		}
		name := fmt.Sprintf("%+v", sel)
		for _, p := range s.Pending {
			if sel.Selects(&p.Peer) {
				got[name] += 1000 * len(p.Pods)
			}
		}
		for _, n := range s.Nodes {
			for _, p := range n.Residents {
				if sel.Selects(&p.Peer) {
					got[name] += p.Count
				}
			}
		}
		for _, p := range f.pods {
			if n := f.inSnapshot(s, p); n > 0 && sel.Selects(f.peer(p)) {
				want[name] += n
			}
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatalf("selectors select (thousands are pending) (-want +got):\n%s", diff)
	}
	for _, p := range s.Pending {
		for _, l := range p.Peer.Labels {
			if !keys.Has(l.Key) {
				t.Fatalf("of %v label %s is known, which nobody asks for", p.Pods, l.Key)
			}
		}
		if len(keys) == 0 && len(f.selectors()) == 0 && p.Peer.Namespace != "" {
			t.Fatalf("namespace %s is known although nobody asks", p.Peer.Namespace)
		}
	}
}

// selectors returns those of all pods that have not ended.
func (f *facts) selectors() []*model.PodSelector {
	var out []*model.PodSelector
	for _, p := range f.pods {
		if p.Terminal {
			continue
		}
		for i := range p.Shape.Spread {
			out = append(out, &p.Shape.Spread[i].Select)
		}
		for i := range p.Shape.PodTerms {
			out = append(out, &p.Shape.PodTerms[i].Select)
		}
	}
	return out
}

// peer returns the pod with everything that may be asked about it.
func (f *facts) peer(p world.Pod) *model.Peer {
	labels := func(m map[string]string) []model.Label {
		var out []model.Label
		for _, key := range slices.Sorted(maps.Keys(m)) {
			out = append(out, model.Label{Key: key, Value: m[key]})
		}
		return out
	}
	return &model.Peer{Namespace: p.Namespace, Labels: labels(p.Labels), NamespaceLabels: labels(f.spaces[p.Namespace])}
}

// inSnapshot returns 1000 for a pod that must be pending in the Snapshot, 1 for
// one that runs on a node of it, and 0 for others.
func (f *facts) inSnapshot(s *model.Snapshot, p world.Pod) int {
	if p.Terminal {
		return 0
	}
	if p.Node == "" {
		if p.Pending {
			return 1000
		}
		return 0
	}
	node, ok := f.nodes[p.Node]
	if !ok {
		return 0
	}
	leaves := false
	for _, pending := range s.Pending {
		leaves = leaves || slices.ContainsFunc(pending.Pods, func(q model.Pod) bool { return q.UID == p.UID && q.From == p.Node && q.Key() == p.Key() })
	}
	for _, n := range s.Nodes {
		if n.Name == node.Name || n.Claim != "" && nodeOf(f, n.Claim) == node.Name {
			if leaves && n.Deleting {
				return 1000
			}
			return 1
		}
	}
	return 0
}

// nodeOf returns the Node with the claim's provider ID.
func nodeOf(f *facts, claim string) string {
	for _, n := range f.nodes {
		if n.ProviderID == f.claims[claim].ProviderID {
			return n.Name
		}
	}
	return ""
}

// spec 25/38 spec 25/58: everything may be called at once. Run with -race, this finds unlocked
// access; without, deadlocks.
func TestConcurrentUse(t *testing.T) {
	w := emptyWorld()
	w.OnPending(func(string) { w.PendingUIDs() })
	var wg sync.WaitGroup
	for worker := range uint64(4) {
		wg.Go(func() {
			r, f := rand.New(rand.NewPCG(worker, 1)), newFacts()
			for range 300 {
				f.change(r, w)
			}
		})
	}
	var last *model.Snapshot
	wg.Go(func() {
		for i := range 200 {
			now := scenario.DefaultNow().Add(time.Duration(i) * time.Second)
			s := w.Snapshot(now)
			w.Usage("p0")
			w.MarkForDeletion("c1", "c2")
			w.Nominate("n1", now)
			for _, p := range s.Pending {
				w.Planned(world.Claim{Name: fmt.Sprint("new", i)}, p.Pods)
				w.Placed("n2", p.Pods)
			}
			w.Unmark("c1")
			last = s
		}
	})
	wg.Wait()
	if got := len(last.Pools); got != 2 {
		t.Errorf("got %d pools after all, want 2", got)
	}
	var names []string
	w.Unconfirmed(scenario.DefaultNow().Add(time.Hour))
	for _, name := range w.Unconfirmed(scenario.DefaultNow().Add(2 * time.Hour)) {
		w.DeleteClaim(name)
	}
	for _, n := range w.Snapshot(scenario.DefaultNow().Add(2 * time.Hour)).Nodes {
		names = append(names, n.Name)
	}
	if slices.ContainsFunc(names, func(n string) bool { return strings.HasPrefix(n, "new") }) || !slices.IsSorted(names) {
		t.Errorf("nodes %v: want them sorted and the planned claims, which nobody confirmed, gone", names)
	}
}
