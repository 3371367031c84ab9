// SPDX-License-Identifier: Apache-2.0

package differential

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	v1 "karpenter/api/v1"
	"karpenter/model"
	"karpenter/scenario"
	"karpenter/solve"
	"karpenter/world"

	"karpenter/kube/convert"
	"karpenter/kube/feed"
	"karpenter/kube/volumes"
)

// situation is a cluster as the API server shows it.
type situation struct {
	namespaces []*corev1.Namespace
	nodes      []*corev1.Node
	claims     []*v1.NodeClaim // of the nodes that are managed
	pools      []*v1.NodePool
	daemons    []*appsv1.DaemonSet
	pods       []*corev1.Pod
	storage    *storage  // nil = nothing
	defaults   *defaults // nil = there are none

	types []*model.InstanceType // what every pool may launch
}

func now() time.Time { return time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC) }

// world takes in the situation as the running controller does.
func (s *situation) world(c convert.Converter) *world.World {
	w := world.New(c.Axis, c.WellKnown())
	c.Volumes = s.shelve(c, w).Of
	if s.defaults != nil {
		c.Spread = s.spread().Of
	}
	for _, n := range s.namespaces {
		w.SetNamespace(n.Name, n.Labels)
	}
	for _, p := range s.pools {
		if pool, ok := c.Pool(p); ok {
			w.SetPool(pool)
			w.SetTypes(pool.Name, s.types)
		}
	}
	for _, n := range s.claims {
		if claim, ok := c.Claim(n); ok {
			w.SetClaim(claim)
		}
	}
	for _, n := range s.nodes {
		w.SetNode(c.Node(n))
	}
	for _, d := range s.daemons {
		if daemon, ok := c.Daemon(d); ok {
			w.SetDaemon(daemon)
		}
	}
	for _, p := range s.pods {
		if trimmed, err := feed.TrimPod(p.DeepCopy()); err == nil {
			w.SetPod(c.Pod(trimmed.(*corev1.Pod)))
		}
	}
	return w
}

// shelve takes in what the pods' volumes are made of.
func (s *situation) shelve(c convert.Converter, w *world.World) *volumes.Store {
	out := volumes.New(c.Labels, volumes.Rules{})
	if s.storage == nil {
		return out
	}
	for _, class := range s.storage.classes {
		out.SetClass(class)
	}
	for _, v := range s.storage.volumes {
		out.SetVolume(v)
	}
	for _, claim := range s.storage.claims {
		out.SetClaim(claim)
	}
	for _, p := range s.pods {
		out.SetPod(p)
	}
	for _, n := range s.storage.nodes {
		w.SetVolumeLimits(n.Name, volumes.Limits(n))
	}
	return out
}

// plan returns what we make of the snapshot, with as little search as possible:
// validity is what matters here, not price.
func plan(s *model.Snapshot) *model.Plan {
	policy := model.DefaultPolicy()
	policy.Work = 1000
	return solve.Decide(s, policy)
}

func (s *situation) node(name string) *corev1.Node {
	for _, n := range s.nodes {
		if n.Name == name {
			return n
		}
	}
	return nil
}

func (s *situation) pod(key string) *corev1.Pod {
	for _, p := range s.pods {
		if p.Namespace+"/"+p.Name == key {
			return p
		}
	}
	return nil
}

// unbound returns the pod with that key without the node it may have to leave.
func (s *situation) unbound(key string) *corev1.Pod {
	p := s.pod(key)
	if p.Spec.NodeName != "" {
		p = p.DeepCopy()
		p.Spec.NodeName = ""
	}
	return p
}

// running returns the pods but those of nodes that are going away.
func (s *situation) running() []*corev1.Pod {
	return slices.DeleteFunc(slices.Clone(s.pods), func(p *corev1.Pod) bool {
		return p.Spec.NodeName != "" && s.node(p.Spec.NodeName).DeletionTimestamp != nil
	})
}

// show prints the situation as YAML and as a scenario, for a failing seed.
func (s *situation) show(t *testing.T, snapshot *model.Snapshot) {
	t.Helper()
	var b bytes.Buffer
	for _, list := range s.objects() {
		b.WriteString(terse(t, list))
	}
	t.Logf("as YAML:\n%s", b.String())
	if snapshot == nil {
		return
	}
	b.Reset()
	if err := scenario.Print(&b, snapshot); err != nil {
		fmt.Fprintf(&b, "(cannot be printed: %v)", err)
	}
	t.Logf("as scenario:\n%s\n%s", b.String(), scenario.Text(snapshot, plan(snapshot)))
}

// objects lists the objects of the situation by kind.
func (s *situation) objects() []any {
	out := []any{s.namespaces, s.pools, s.claims, s.nodes, s.daemons, s.pods}
	if s.storage != nil {
		out = append(out, s.storage.classes, s.storage.claims, s.storage.volumes, s.storage.nodes)
	}
	if s.defaults != nil {
		out = append(out, s.defaults.services, s.defaults.controllers, s.defaults.replicaSets, s.defaults.statefulSets)
	}
	return out
}

// terse returns the objects as YAML without what is empty.
func terse(t *testing.T, objects any) string {
	t.Helper()
	text, err := yaml.Marshal(objects)
	if err != nil {
		t.Fatal(err)
	}
	var tree []any
	if err := yaml.Unmarshal(text, &tree); err != nil {
		t.Fatal(err)
	}
	if len(tree) == 0 {
		return ""
	}
	if text, err = yaml.Marshal(pruned(tree)); err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// pruned returns the tree without what is null or zero in its objects.
func pruned(tree any) any {
	switch node := tree.(type) {
	case []any:
		for i := range node {
			node[i] = pruned(node[i])
		}
	case map[string]any:
		for key, value := range node {
			switch value = pruned(value); value {
			case nil, float64(0):
				delete(node, key)
			default:
				node[key] = value
			}
		}
	}
	return tree
}

// dice draws situations.
type dice struct {
	*rand.Rand
	keys []string // labels that pods ask for
}

func newDice(seed int, keys []string) dice { return dice{rand.New(rand.NewPCG(uint64(seed), 1)), keys} }

func (g dice) maybe(percent int) bool { return g.IntN(100) < percent }

func pick[T any](g dice, from ...T) T { return from[g.IntN(len(from))] }

// some draws each of the values with a probability.
func some[T any](g dice, percent int, from ...T) []T {
	var out []T
	for _, v := range from {
		if g.maybe(percent) {
			out = append(out, v)
		}
	}
	return out
}
