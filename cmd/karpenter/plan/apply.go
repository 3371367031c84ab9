// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	awsv1 "karpenter/api/aws/v1"
	kwokv1alpha1 "karpenter/api/kwok/v1alpha1"
	v1 "karpenter/api/v1"
	"karpenter/kube/convert"
	"karpenter/model"
	"karpenter/world"
)

// With returns what would happen had the manifests been applied and the NodePools
// of those names been deleted.
func With(s *model.Snapshot, m *Manifests, deleted []string, d Decider) (Report, error) {
	a := &applied{was: s, axis: model.NewAxis(), why: map[string]string{}}
	for _, name := range s.Resources {
		a.axis.Index(name)
	}
	next := *s
	a.next = &next
	next.Pools, next.Nodes, next.Pending = slices.Clone(s.Pools), slices.Clone(s.Nodes), slices.Clone(s.Pending)
	for i := range m.Pools {
		if slices.Contains(deleted, m.Pools[i].Pool.Name) {
			return Report{}, m.Pools[i].refuse(errors.New("metadata.name: it is to be deleted, too; leave out one of them"))
		}
		if err := a.apply(&m.Pools[i]); err != nil {
			return Report{}, err
		}
	}
	for _, name := range deleted {
		if err := a.remove(name); err != nil {
			return Report{}, err
		}
	}
	next.Resources = a.axis.Names()
	r := Of(&next, d)
	unchanged := after(s, d.Decide(s))
	r.Before, r.Unchanged, r.Changes = before(s), &unchanged, a.changes
	for _, c := range a.changes {
		r.Evictions += c.Evictions
		r.WouldChange = r.WouldChange || len(c.Removed) > 0
		if r.Rest != nil {
			r.Rest.Removed += len(c.Removed)
			r.Rest.Evictions += c.Evictions
		}
	}
	if len(m.Ignored) > 0 {
		a.notes = append(a.notes, "only NodePools are planned with; the manifests also have: "+strings.Join(m.Ignored, ", "))
	}
	r.Notes = append(a.notes, r.Notes...)
	for i := range r.Commands {
		for j := range r.Commands[i].Nodes {
			n := &r.Commands[i].Nodes[j]
			n.Why = a.why[n.Name]
		}
	}
	return r, nil
}

// applied is a situation being changed.
type applied struct {
	was, next *model.Snapshot
	axis      *model.Axis
	changes   []Change
	notes     []string
	why       map[string]string // nodes drift now, by name
}

func poolAt(s *model.Snapshot, name string) int {
	return slices.IndexFunc(s.Pools, func(p model.Pool) bool { return p.Name == name })
}

func (a *applied) apply(m *Manifest) error {
	var old *model.Pool
	at := poolAt(a.was, m.Pool.Name)
	if at >= 0 {
		old = &a.was.Pools[at]
	}
	c := a.converter(m.Pool)
	if err := m.Check(c.Labels, old, a.was.Now); err != nil {
		return err
	}
	pool := a.pool(m.Pool, c, old)
	change := Change{Pool: pool.Name, Kind: "new"}
	if old != nil {
		change.Kind, change.Fields = "changed", differences(old, &pool, a.axis.Names())
		if n := a.requiet(m.Pool); n > 0 && old.Disruption.Never == pool.Disruption.Never {
			change.Fields = append(change.Fields, fmt.Sprintf("consolidateAfter: whether quiet for long enough changes for %s", counted(n, "node")))
		}
		a.next.Pools[at] = pool
		change.Drifted = a.drift(old, &pool, c.Requirements(m.Pool.Spec.Template.Spec.Requirements))
	} else {
		a.next.Pools = append(a.next.Pools, pool)
		a.adopt(pool.Name)
	}
	if old != nil && len(change.Fields) == 0 && len(change.Drifted) == 0 {
		change.Kind, a.next.Pools[at] = "same", *old
	}
	a.changes = append(a.changes, change)
	return nil
}

// converter reads manifests as the controller does whose situation it is.
func (a *applied) converter(p *v1.NodePool) convert.Converter {
	labels := v1.DefaultLabels()
	switch p.Spec.Template.Spec.NodeClassRef.Group {
	case awsv1.Group:
		labels = labels.With(awsv1.Labels())
	case kwokv1alpha1.Group:
		labels = labels.With(kwokv1alpha1.Labels())
	}
	known := sets.New[string]()
	for key := range a.was.WellKnown {
		known.Insert(key)
	}
	return convert.Converter{
		Axis: a.axis, Labels: labels.With(v1.Labels{WellKnown: known}),
		Manages: func(*v1.NodeClassReference) bool { return true },
		StaticCapacity: slices.ContainsFunc(a.was.Pools, func(p model.Pool) bool {
			return p.Static != nil && p.Unavailable == "static"
		}),
	}
}

// pool returns the NodePool as the situation has pools. What the controller says
// in the status of the old one, it says in that of the new one.
func (a *applied) pool(p *v1.NodePool, c convert.Converter, old *model.Pool) model.Pool {
	p = p.DeepCopy()
	if old == nil || !strings.Contains(old.Unavailable, "not ready") {
		p.Status.Conditions = []metav1.Condition{{Type: v1.ReadyCondition, Status: metav1.ConditionTrue}}
	}
	if old != nil && old.Unavailable == "being deleted" {
		p.DeletionTimestamp = &metav1.Time{Time: a.was.Now}
	}
	from, _ := c.Pool(p)
	if _, err := convert.Aims(p); err != nil {
		a.notes = append(a.notes, fmt.Sprintf("NodePool %s ignores an annotation that cannot be read: %s", p.Name, err))
	}
	out := model.Pool{
		Name: from.Name, Weight: from.Weight, Requirements: from.Requirements, Taints: from.Taints, Limits: from.Limits,
		Aims: from.Aims, Unavailable: from.Unavailable, Template: from.Template,
		Disruption: model.Disruption{Policy: from.Policy, Never: from.Never},
	}
	var standing model.Static
	if old != nil {
		out.Usage = old.Usage
		out.Disruption.Counted, out.Disruption.Consuming = old.Disruption.Counted, old.Disruption.Consuming
		if old.Static != nil {
			standing = *old.Static
		}
	} else {
		out.Usage, out.Disruption.Counted, out.Disruption.Consuming = a.left(p.Name)
	}
	if from.Replicas != nil {
		standing.Replicas = *from.Replicas
		out.Static = &standing
	}
	out.Disruption.Allowed = allowed(&from, a.was.Now, &out.Disruption)
	a.types(p, &out, old)
	return out
}

// allowed evaluates budgets as the world does.
func allowed(p *world.Pool, now time.Time, d *model.Disruption) map[model.Reason]int {
	out := map[model.Reason]int{}
	for _, r := range []model.Reason{model.Empty, model.Drifted, model.Underutilized} {
		out[r] = max(p.Allowed(now, d.Counted, r)-d.Consuming, 0)
	}
	return out
}

// left returns what nodes of the name add up to whose NodePool is gone.
func (a *applied) left(pool string) (usage model.Resources, counted, consuming int) {
	for i := range a.was.Nodes {
		n := &a.was.Nodes[i]
		if n.Pool != pool || n.Claim == "" {
			continue
		}
		if n.Initialized {
			counted++
		}
		if n.Deleting {
			consuming++
			continue
		}
		usage = usage.Plus(n.Capacity)
	}
	return usage, counted, consuming
}

// types gives the pool the instance types of its node class: those it had, or
// those of another pool with the same class.
func (a *applied) types(p *v1.NodePool, out, old *model.Pool) {
	ref := p.Spec.Template.Spec.NodeClassRef
	key := v1.NodeClassLabelKey(ref.GroupKind())
	of := func(p *model.Pool) (string, bool) { return p.Requirements.Value(key) }
	if old != nil {
		if class, said := of(old); !said || class == ref.Name {
			a.reprice(p, out, old)
			return
		}
	}
	for i := range a.was.Pools {
		if class, said := of(&a.was.Pools[i]); said && class == ref.Name {
			a.reprice(p, out, &a.was.Pools[i])
			return
		}
	}
	out.Unavailable = fmt.Sprintf("its instance types are not known: no NodePool here has %s %s", ref.Kind, ref.Name)
	a.notes = append(a.notes, fmt.Sprintf("NodePool %s launches nothing in this plan: %s", p.Name, out.Unavailable))
}

// drift sets which nodes of the pool drift, by comparing them with the pool,
// and returns the names of those that did not drift before.
func (a *applied) drift(old, pool *model.Pool, demand model.Requirements) []string {
	var out []string
	if old.Template == "" {
		a.notes = append(a.notes, fmt.Sprintf("the situation lacks the template of the nodes of NodePool %s: only drift by requirements is planned", pool.Name))
	}
	for i := range a.next.Nodes {
		n := &a.next.Nodes[i]
		if n.Pool != pool.Name || n.Claim == "" || !n.Registered || n.Deleting {
			continue
		}
		why := Mismatch(n, pool, demand)
		switch {
		case why != "" && n.Disruption.Drifted.IsZero():
			n.Disruption.Drifted = a.was.Now
			a.why[n.Name] = why
			out = append(out, n.Name)
		case why == "" && Mismatch(n, old, old.Requirements) != "":
			n.Disruption.Drifted = time.Time{}
		}
	}
	return out
}

// Mismatch returns how the node differs from its pool, by the rules of the
// drift controller, or "".
func Mismatch(n *model.Node, pool *model.Pool, demand model.Requirements) string {
	if n.Template != "" && pool.Template != "" && n.Template != pool.Template {
		return v1.NodePoolDriftedReason + ", it was made from another template"
	}
	if conflict, ok := n.Labels.Compatible(demand, nil); !ok {
		return v1.RequirementsDriftedReason + ", it is not " + conflict.Incoming.String()
	}
	return ""
}

// requiet updates which of the pool's nodes have been quiet for its
// consolidateAfter, and returns for how many that changes.
func (a *applied) requiet(p *v1.NodePool) int {
	changed := 0
	after := p.Spec.Disruption.ConsolidateAfter.Duration
	for i := range a.next.Nodes {
		n := &a.next.Nodes[i]
		d := n.Disruption
		if n.Pool != p.Name || !n.Initialized || d.Quiet.IsZero() || p.IsStatic() {
			continue
		}
		d.Settling = after != nil && *after > 0 && a.was.Now.Before(d.Quiet.Add(*after))
		d.Consolidatable = after != nil && !d.Settling
		if d.Settling != n.Disruption.Settling || d.Consolidatable != n.Disruption.Consolidatable {
			changed++
		}
		n.Disruption = d
	}
	return changed
}

// adopt makes nodes removable that only their missing NodePool protected.
func (a *applied) adopt(pool string) {
	for i := range a.next.Nodes {
		if n := &a.next.Nodes[i]; n.Pool == pool && n.Disruption.Blocked == "there is no NodePool "+pool {
			n.Disruption.Blocked = ""
		}
	}
}

// remove deletes a NodePool, and with it the nodes it owns.
func (a *applied) remove(name string) error {
	at := poolAt(a.next, name)
	if at < 0 {
		return fmt.Errorf("--delete: there is no NodePool %s", name)
	}
	a.next.Pools = slices.Delete(a.next.Pools, at, at+1)
	change := Change{Pool: name, Kind: "deleted"}
	for i := range a.next.Nodes {
		n := &a.next.Nodes[i]
		if n.Pool != name || n.Claim == "" || n.Deleting {
			continue
		}
		for _, p := range n.Movable {
			change.Evictions += len(p.Pods)
			a.await(p, n.Name)
		}
		n.Deleting, n.Movable = true, nil
		change.Removed = append(change.Removed, n.Name)
	}
	change.Fields = []string{fmt.Sprintf("its nodes are removed with it: %d, evicting %s", len(change.Removed), counted(change.Evictions, "pod"))}
	a.changes = append(a.changes, change)
	return nil
}

// await makes the pods pending that leave the node.
func (a *applied) await(p model.Pending, node string) {
	pods := slices.Clone(p.Pods)
	for i := range pods {
		pods[i].From = node
	}
	at := slices.IndexFunc(a.next.Pending, func(o model.Pending) bool { return kind(&o) == kind(&p) })
	if at < 0 {
		p.Pods = pods
		a.next.Pending = append(a.next.Pending, p)
		return
	}
	a.next.Pending[at].Pods = append(slices.Clone(a.next.Pending[at].Pods), pods...)
}
