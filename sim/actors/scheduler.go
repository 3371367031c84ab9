// SPDX-License-Identifier: Apache-2.0

package actors

import (
	"context"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"karpenter/sim/script"
	"karpenter/sim/store"
)

// scheduler binds each pod to the node its status nominates, if it can run
// there, else to the emptiest that it can run on or, in some runs, to any. In calm runs, it
// keeps the capacity for nominated pods.
type scheduler struct {
	requests map[types.UID]amounts
	drawn    bool // whether it goes by how empty nodes are
	emptiest bool // it does
}

func newScheduler() *scheduler { return &scheduler{requests: map[types.UID]amounts{}} }

// amounts are what pods use of a node: millicores, bytes, pods.
type amounts struct{ cpu, mem, pods int64 }

func (a amounts) plus(b amounts) amounts {
	return amounts{a.cpu + b.cpu, a.mem + b.mem, a.pods + b.pods}
}

// less returns which share of the amounts is left when b is taken, of cpu and
// memory together.
func (a amounts) less(b amounts) float64 {
	return float64(a.cpu-b.cpu)/float64(max(a.cpu, 1)) + float64(a.mem-b.mem)/float64(max(a.mem, 1))
}

func (a amounts) within(b amounts) bool { return a.cpu <= b.cpu && a.mem <= b.mem && a.pods <= b.pods }

func amountsOf(r corev1.ResourceList) amounts {
	return amounts{r.Cpu().MilliValue(), r.Memory().Value(), r.Pods().Value()}
}

// sight is the cluster as one look of the scheduler sees it.
type sight struct {
	nodes []*corev1.Node
	used  map[string]amounts       // by node
	on    map[string][]*corev1.Pod // by node
	kept  map[string]amounts       // by node, for pods that it is nominated to
}

func (s *scheduler) look(a *Actor, c *choice) {
	var waiting []*corev1.Pod
	for p := range store.All[*corev1.Pod](a.Store) {
		if p.Spec.NodeName == "" && p.DeletionTimestamp == nil && !ended(p) && !(isUnschedulable(p) && a.hindered(script.Unbound, p.Labels[appLabel])) {
			waiting = append(waiting, p)
		}
	}
	if len(waiting) == 0 {
		return
	}
	v := s.sight(a)
	if a.Calm {
		s.keep(v, waiting)
	}
	first := a.Rand.IntN(len(waiting))
	for i := range waiting {
		p := waiting[(first+i)%len(waiting)]
		exist, fit := s.together(a, v, p, waiting)
		if !exist {
			continue
		}
		if node, stray := s.choose(a, v, p); fit && node != "" && !a.hindered(script.Unbound, p.Labels[appLabel]) {
			c.offer(func(ctx context.Context) error {
				delete(a.Strays, p.UID) // a binding that failed says nothing of this one
				if stray && a.Strays != nil {
					a.Strays[p.UID] = true
				}
				return a.client.SubResource("binding").Create(ctx, p.DeepCopy(), &corev1.Binding{Target: corev1.ObjectReference{Kind: "Node", Name: node}})
			})
			return
		}
		if !isUnschedulable(p) {
			c.offer(a.status(unschedulable(p, metav1.NewTime(a.now))))
			return
		}
	}
}

// together reports whether as many pods exist as the PodGroup of p must start with,
// and whether they fit. Both hold for a pod of no group.
func (s *scheduler) together(a *Actor, v *sight, p *corev1.Pod, waiting []*corev1.Pod) (exist, fit bool) {
	if p.Spec.SchedulingGroup == nil {
		return true, true
	}
	name, least := *p.Spec.SchedulingGroup.PodGroupName, 0
	for g := range store.All[*schedulingv1beta1.PodGroup](a.Store) {
		if g.Name == name {
			least = int(g.Spec.SchedulingPolicy.Gang.MinCount)
		}
	}
	mate := func(q *corev1.Pod) bool {
		return q.Spec.SchedulingGroup != nil && *q.Spec.SchedulingGroup.PodGroupName == name
	}
	bound, mates, placed := 0, 0, 0
	for _, on := range v.on {
		for _, q := range on {
			if mate(q) && q.DeletionTimestamp == nil {
				bound++
			}
		}
	}
	later := &sight{nodes: v.nodes, used: maps.Clone(v.used), on: maps.Clone(v.on)}
	for _, q := range waiting {
		if !mate(q) {
			continue
		}
		mates++
		if i := slices.IndexFunc(v.nodes, func(n *corev1.Node) bool { return s.fits(later, q, n) }); i >= 0 {
			node := v.nodes[i].Name
			placed++
			later.used[node] = later.used[node].plus(s.requestsOf(q))
			later.on[node] = append(slices.Clip(later.on[node]), q)
		}
	}
	return least > 0 && bound+mates >= least, bound+placed >= least
}

// keep has pods leave the capacity to those that a node is nominated to, as kube-scheduler does
// for pods of the same or a higher priority. The pods of scripts have no priorities.
func (s *scheduler) keep(v *sight, waiting []*corev1.Pod) {
	v.kept = map[string]amounts{}
	for _, p := range waiting {
		if node := p.Status.NominatedNodeName; node != "" {
			v.kept[node] = v.kept[node].plus(s.requestsOf(p))
		}
	}
}

// taken returns what p and others than p take of the node.
func (s *scheduler) taken(v *sight, p *corev1.Pod, node string) amounts {
	out := v.used[node].plus(v.kept[node])
	if v.kept == nil || p.Status.NominatedNodeName != node {
		out = out.plus(s.requestsOf(p))
	}
	return out
}

func ended(p *corev1.Pod) bool {
	return p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed
}

func isUnschedulable(p *corev1.Pod) bool {
	return slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse
	})
}

func unschedulable(p *corev1.Pod, now metav1.Time) *corev1.Pod {
	out := p.DeepCopy()
	out.Status.Conditions = append(out.Status.Conditions, corev1.PodCondition{
		Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable,
		Message: "no node can run it", LastTransitionTime: now,
	})
	return out
}

func (s *scheduler) sight(a *Actor) *sight {
	v := &sight{used: map[string]amounts{}, on: map[string][]*corev1.Pod{}}
	for n := range store.All[*corev1.Node](a.Store) {
		v.nodes = append(v.nodes, n)
	}
	for p := range store.All[*corev1.Pod](a.Store) {
		if p.Spec.NodeName != "" && !ended(p) {
			v.used[p.Spec.NodeName] = v.used[p.Spec.NodeName].plus(s.requestsOf(p))
			v.on[p.Spec.NodeName] = append(v.on[p.Spec.NodeName], p)
		}
	}
	return v
}

func (s *scheduler) requestsOf(p *corev1.Pod) amounts {
	out, ok := s.requests[p.UID]
	if !ok {
		for i := range p.Spec.Containers {
			out = out.plus(amountsOf(p.Spec.Containers[i].Resources.Requests))
		}
		out.pods = 1
		s.requests[p.UID] = out
	}
	return out
}

// choose returns the node for the pod, or "", and whether it is none of the
// emptiest.
func (s *scheduler) choose(a *Actor, v *sight, p *corev1.Pod) (string, bool) {
	if !s.drawn {
		s.drawn, s.emptiest = true, a.Calm || a.Rand.IntN(2) == 0
	}
	var can, best []string
	most := 0.0
	for _, n := range v.nodes {
		if !s.fits(v, p, n) {
			continue
		}
		if n.Name == p.Status.NominatedNodeName {
			return n.Name, false
		}
		can = append(can, n.Name)
		left := amountsOf(n.Status.Allocatable).less(v.used[n.Name])
		if left > most {
			best, most = nil, left
		}
		if left == most {
			best = append(best, n.Name)
		}
	}
	if s.emptiest {
		can = best
	}
	if len(can) == 0 {
		return "", false
	}
	node := can[a.Rand.IntN(len(can))]
	return node, !slices.Contains(best, node)
}

func (s *scheduler) fits(v *sight, p *corev1.Pod, n *corev1.Node) bool {
	return n.DeletionTimestamp == nil && !n.Spec.Unschedulable && selects(p, n) && tolerates(p, n) &&
		s.taken(v, p, n.Name).within(amountsOf(n.Status.Allocatable)) &&
		keepsApart(v, p, n) && keepsSpread(v, p, n)
}

// selects reports whether the node has the labels the pod asks for.
func selects(p *corev1.Pod, n *corev1.Node) bool {
	return labels.SelectorFromSet(p.Spec.NodeSelector).Matches(labels.Set(n.Labels))
}

func tolerates(p *corev1.Pod, n *corev1.Node) bool {
	for i := range n.Spec.Taints {
		t := &n.Spec.Taints[i]
		if t.Effect != corev1.TaintEffectPreferNoSchedule && !slices.ContainsFunc(p.Spec.Tolerations, func(o corev1.Toleration) bool { return toleratesTaint(o, t) }) {
			return false
		}
	}
	return true
}

func toleratesTaint(o corev1.Toleration, t *corev1.Taint) bool {
	if o.Effect != "" && o.Effect != t.Effect || o.Key != "" && o.Key != t.Key {
		return false
	}
	return o.Operator == corev1.TolerationOpExists || o.Key != "" && o.Value == t.Value
}

// keepsApart reports whether neither the pod nor any other would share a
// domain with a pod it must not.
func keepsApart(v *sight, p *corev1.Pod, n *corev1.Node) bool {
	for _, other := range v.nodes {
		for _, q := range v.on[other.Name] {
			if repels(p, q, n, other) || repels(q, p, other, n) {
				return false
			}
		}
	}
	return true
}

// repels reports whether p on node n must not be where q on node m is.
func repels(p, q *corev1.Pod, n, m *corev1.Node) bool {
	if p.Spec.Affinity == nil || p.Spec.Affinity.PodAntiAffinity == nil {
		return false
	}
	for _, term := range p.Spec.Affinity.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution {
		domain, ok := n.Labels[term.TopologyKey]
		if ok && m.Labels[term.TopologyKey] == domain && p.Namespace == q.Namespace && matches(term.LabelSelector, q) {
			return true
		}
	}
	return false
}

// matches evaluates the label selectors this package writes: equality only.
func matches(s *metav1.LabelSelector, p *corev1.Pod) bool {
	for key, value := range s.MatchLabels {
		if p.Labels[key] != value {
			return false
		}
	}
	return true
}

// keepsSpread reports whether the pod on the node keeps its topology spread.
// As the scheduler does by default, it counts the nodes the pod selects,
// tainted ones included, and no pods that are ending.
func keepsSpread(v *sight, p *corev1.Pod, n *corev1.Node) bool {
	for _, c := range p.Spec.TopologySpreadConstraints {
		here, ok := n.Labels[c.TopologyKey]
		if !ok {
			return false
		}
		counts := map[string]int{}
		for _, m := range v.nodes {
			domain, ok := m.Labels[c.TopologyKey]
			if !ok || !selects(p, m) {
				continue
			}
			counts[domain] += 0
			for _, q := range v.on[m.Name] {
				if q.DeletionTimestamp == nil && q.Namespace == p.Namespace && matches(c.LabelSelector, q) {
					counts[domain]++
				}
			}
		}
		least := counts[here]
		for _, n := range counts {
			least = min(least, n)
		}
		if counts[here]+1-least > int(c.MaxSkew) {
			return false
		}
	}
	return true
}
