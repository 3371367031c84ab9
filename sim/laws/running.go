// SPDX-License-Identifier: Apache-2.0

package laws

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	appsv1 "k8s.io/api/apps/v1"

	v1 "karpenter/api/v1"
	"karpenter/cloud"
	"karpenter/model"
	"karpenter/sim"
	"karpenter/sim/store"
)

// could follows since when waiting pods could run on an instance of their own.
type could struct {
	since since // by pod
	tick  every
}

func newRunning(terms) *Law {
	c := &could{since{}, every{period: time.Minute}}
	return &Law{
		name: "running", check: c.check, end: c.end,
		means: "At the end, every pod runs, if some NodePool could launch an instance for this pod alone 5 minutes ago or later: within its limits, with its DaemonSets, in a zone that the rules of the pod allow. Pods of a PodGroup wait until `minCount` of them can run.",
	}
}

func (l *could) check(s *sim.Seen) error {
	if !l.tick.due(s.Now) {
		return nil
	}
	for p := range store.All[*corev1.Pod](s.API) {
		if s.Now.Sub(p.CreationTimestamp.Time) >= endsWithin-2*startsWithin {
			l.since.so(string(p.UID), waits(p) && hosts(s, p) != "", s.Now)
		}
	}
	return nil
}

// waits reports whether the pod needs a node.
func waits(p *corev1.Pod) bool {
	return p.Spec.NodeName == "" && p.DeletionTimestamp == nil && !ownedByDaemonSet(p)
}

func (l *could) end(s *sim.Seen) error {
	for p := range store.All[*corev1.Pod](s.API) {
		if p.DeletionTimestamp != nil || ownedByDaemonSet(p) || s.Now.Sub(p.CreationTimestamp.Time) < endsWithin {
			continue
		}
		from, long := l.since[string(p.UID)]
		least, running := groupOf(s, memberOf(p))
		switch {
		case running < least: // it waits for the others of its PodGroup
		case long && waits(p) && s.Now.Sub(from) > startsWithin:
			if where := hosts(s, p); where != "" {
				return fmt.Errorf("pod %s waits since %s, although %s", p.Name, p.CreationTimestamp.Sub(s.Started), where)
			}
		case p.Spec.NodeName != "" && p.Status.Phase == corev1.PodPending && s.Now.Sub(boundAt(p)) > startsWithin:
			return fmt.Errorf("pod %s is bound to %s and does not start", p.Name, p.Spec.NodeName)
		}
	}
	return nil
}

// hosts says which new instance would run the pod, or returns "".
func hosts(s *sim.Seen, p *corev1.Pod) string {
	return hostsAmong(s, p, func(*v1.NodePool) bool { return true })
}

// hostsAmong is hosts for instances of some pools.
func hostsAmong(s *sim.Seen, p *corev1.Pod, among func(*v1.NodePool) bool) string {
	for pool := range store.All[*v1.NodePool](s.API) {
		if !among(pool) || pool.IsStatic() || pool.DeletionTimestamp != nil || !toleratesPool(p, pool) {
			continue
		}
		for _, t := range s.Cloud.Types() {
			for i := range t.Offerings {
				o := &t.Offerings[i]
				if o.Available && takes(s, p, pool, t, o) {
					return fmt.Sprintf("pool %s may launch %s as %s in zone %s", pool.Name, t.Name, o.CapacityType(), o.Zone())
				}
			}
		}
	}
	return ""
}

func toleratesPool(p *corev1.Pod, pool *v1.NodePool) bool {
	return !slices.ContainsFunc(pool.Spec.Template.Spec.Taints, func(t v1.Taint) bool {
		return !slices.ContainsFunc(p.Spec.Tolerations, func(o corev1.Toleration) bool {
			return o.Key == t.Key && (o.Effect == "" || o.Effect == t.Effect)
		})
	})
}

// takes reports whether an instance of the offering, launched for the pool, may
// be launched and could run the pod alone.
func takes(s *sim.Seen, p *corev1.Pod, pool *v1.NodePool, t *cloud.InstanceType, o *cloud.Offering) bool {
	node := labels.Set{
		v1.NodePoolLabelKey: pool.Name, model.LabelInstanceType: t.Name,
		corev1.LabelTopologyZone: o.Zone(), v1.CapacityTypeLabelKey: o.CapacityType(),
	}
	for _, r := range pool.Spec.Template.Spec.Requirements {
		if r.Operator == corev1.NodeSelectorOpIn && !slices.Contains(r.Values, node[r.Key]) {
			return false
		}
	}
	requests := podRequests(&p.Spec)
	for d := range store.All[*appsv1.DaemonSet](s.API) {
		if runs := toleratesPool(&corev1.Pod{Spec: d.Spec.Template.Spec}, pool); runs {
			add(requests, podRequests(&d.Spec.Template.Spec))
		}
	}
	return labels.SelectorFromSet(p.Spec.NodeSelector).Matches(node) && cloud.Holds(t.Allocatable(), requests) &&
		withinLimits(s, pool, t) && open(s, p, o.Zone())
}

func podRequests(spec *corev1.PodSpec) corev1.ResourceList {
	out := corev1.ResourceList{corev1.ResourcePods: *resource.NewQuantity(1, resource.DecimalSI)}
	for i := range spec.Containers {
		add(out, spec.Containers[i].Resources.Requests)
	}
	return out
}

func withinLimits(s *sim.Seen, pool *v1.NodePool, t *cloud.InstanceType) bool {
	used := corev1.ResourceList{v1.ResourceNodes: *resource.NewQuantity(1, resource.DecimalSI)}
	add(used, t.Capacity)
	for _, c := range claimsOf(s, pool.Name) {
		if c.DeletionTimestamp == nil {
			add(used, usage(c))
		}
	}
	for name, limit := range pool.Spec.Limits {
		if have := used[name]; have.Cmp(limit) > 0 {
			return false
		}
	}
	return true
}

// open reports whether the pod's rules about zones let it into the zone, on a
// node of its own.
func open(s *sim.Seen, p *corev1.Pod, zone string) bool {
	counts, domains := map[string]int{}, map[string]bool{zone: true}
	nodes := map[string]string{}
	for n := range store.All[*corev1.Node](s.API) {
		nodes[n.Name] = n.Labels[corev1.LabelTopologyZone]
		if labels.SelectorFromSet(p.Spec.NodeSelector).Matches(labels.Set(n.Labels)) {
			domains[n.Labels[corev1.LabelTopologyZone]] = true
		}
	}
	apart := false
	for q := range store.All[*corev1.Pod](s.API) {
		if q.Spec.NodeName != "" && q.Labels["app"] == p.Labels["app"] {
			apart = apart || nodes[q.Spec.NodeName] == zone
			if q.DeletionTimestamp == nil {
				counts[nodes[q.Spec.NodeName]]++
			}
		}
	}
	if a := p.Spec.Affinity; a != nil && a.PodAntiAffinity != nil && apart {
		for _, term := range a.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution {
			if term.TopologyKey == corev1.LabelTopologyZone {
				return false
			}
		}
	}
	for _, c := range p.Spec.TopologySpreadConstraints {
		if c.TopologyKey != corev1.LabelTopologyZone {
			// A node of its own has none; other nodes may have none either.
			continue
		}
		least := counts[zone]
		for d := range domains {
			least = min(least, counts[d])
		}
		if counts[zone]+1-least > int(c.MaxSkew) {
			return false
		}
	}
	return true
}

// refused reports whether the API server would refuse to evict the pod.
func refused(s *sim.Seen, p *corev1.Pod) bool {
	for b := range store.All[*policyv1.PodDisruptionBudget](s.API) {
		selector, err := metav1.LabelSelectorAsSelector(b.Spec.Selector)
		if err == nil && b.Namespace == p.Namespace && selector.Matches(labels.Set(p.Labels)) && b.Status.DisruptionsAllowed <= 0 {
			return true
		}
	}
	return false
}
