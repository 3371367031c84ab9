// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	v1 "karpenter/api/v1"
	"karpenter/model"
	"karpenter/world"
)

// node is a node of a NodePool in a run.
type node struct {
	claim    world.Claim
	name     string // of the Node
	pool     string
	stay     stay
	ready    bool
	leaving  bool // a command removes it, or it drains
	draining time.Time
	vacated  time.Time // when the last pod that was evicted has ended, or it began to drain
	grace    *metav1.Duration
	replaces *command
	pods     []*pod // that it runs
	expects  []*pod // that are to come, and some that no longer are
}

// fleet is the nodes of NodePools in a run.
type fleet struct {
	nodes    []*node          // that exist, in the order of launches
	claims   map[string]*node // by name of the NodeClaim
	names    map[string]*node // by name of the Node
	launches int              // that there have been
}

// node returns the node with the name in a Snapshot, or nil if it has no
// NodePool.
func (f *fleet) node(name string) *node {
	if n := f.names[name]; n != nil {
		return n
	}
	return f.claims[name]
}

func (f *fleet) enter(n *node) {
	f.nodes = append(f.nodes, n)
	f.claims[n.claim.Name], f.names[n.name] = n, n
}

func (f *fleet) drop(n *node) {
	f.nodes = slices.DeleteFunc(f.nodes, func(o *node) bool { return o == n })
	delete(f.claims, n.claim.Name)
	delete(f.names, n.name)
}

// adopt adds a node that existed when the recording began.
func (r *run) adopt(s standing) {
	claim, ok := r.convert.Claim(s.claim)
	if !ok {
		return
	}
	n := &node{claim: claim, name: s.node.Name, pool: s.claim.Labels[v1.NodePoolLabelKey], ready: true, stay: stayOf(s.claim, r.h.from, time.Time{}), grace: s.claim.Spec.TerminationGracePeriod}
	r.fleet.enter(n)
	r.world.SetClaim(n.claim)
	r.world.SetNode(r.convert.Node(s.node))
	r.expires(n, s.claim)
}

// expires schedules the drain of the node for when it expires.
func (r *run) expires(n *node, c *v1.NodeClaim) {
	if age := c.Spec.ExpireAfter.Duration; age != nil {
		r.at(c.CreationTimestamp.Add(*age), func() { r.drain(n, expired) })
	}
}

// launch starts a node for the pods of the launch. reason is that of the command, or "" for
// pending pods.
func (r *run) launch(l *model.Launch, reason model.Reason) *node {
	pool := r.config.pools[l.Pool]
	if pool == nil {
		return nil
	}
	object := r.convert.NodeClaimFor(l, pool, nil)
	r.fleet.launches++
	object.Name = nameOf(l.Pool, r.fleet.launches)
	object.UID, object.CreationTimestamp = types.UID(object.Name), metav1.NewTime(r.now)
	if reason == model.Underutilized {
		object.Annotations[v1.ReplacesAnnotationKey] = "underutilized"
	}
	claim, ok := r.convert.Claim(object)
	if !ok {
		return nil
	}
	n := &node{claim: claim, name: object.Name, pool: l.Pool, grace: object.Spec.TerminationGracePeriod}
	n.stay = stay{pool: l.Pool, kind: l.Type, zone: l.Zone, capacityType: l.CapacityType}
	r.fleet.enter(n)
	r.world.Planned(n.claim, l.Pods)
	r.world.SetClaim(n.claim)
	for _, p := range l.Pods {
		r.expect(p, n)
	}
	r.disrupter.stirred = true
	start := r.h.delays.Launch.at(r.fleet.launches - 1)
	r.in(start, func() { r.launched(n) })
	r.in(start+r.h.delays.Boot.at(r.fleet.launches-1), func() { r.initialized(n) })
	r.expires(n, object)
	return n
}

// launched starts the instance of the node, with the offering that the plan
// assumed.
func (r *run) launched(n *node) {
	if n.gone(r) {
		return
	}
	t, o := r.offering(n)
	if o == nil {
		r.remove(n) // its pods look for another place
		return
	}
	r.tally.outcome.Launched++
	n.stay.from = r.now
	n.claim.ProviderID = "replay:///" + n.name
	n.claim.Labels = labelsOf(&n.claim, t, o)
	n.claim.Capacity, n.claim.Allocatable = t.Capacity.With(model.Nodes, 0), t.Allocatable.With(model.Nodes, 0)
	r.world.SetClaim(n.claim)
	r.disrupter.stirred = true
}

func (n *node) gone(r *run) bool { return r.fleet.claims[n.claim.Name] != n }

func (r *run) offering(n *node) (*model.InstanceType, *model.Offering) {
	s := r.world.Snapshot(r.now)
	for i := range s.Pools {
		if s.Pools[i].Name != n.pool {
			continue
		}
		for _, t := range s.Pools[i].Types {
			if t.Name != n.stay.kind {
				continue
			}
			for j := range t.Offerings {
				if o := &t.Offerings[j]; o.Zone == n.stay.zone && o.CapacityType == n.stay.capacityType {
					return t, o
				}
			}
		}
	}
	return nil, nil
}

// initialized makes the node ready and binds the pods that wait for it.
func (r *run) initialized(n *node) {
	if n.gone(r) || n.stay.from.IsZero() {
		return
	}
	n.ready = true
	labels := maps.Clone(n.claim.Labels)
	labels[v1.NodeRegisteredLabelKey], labels[v1.NodeInitializedLabelKey], labels[corev1.LabelHostname] = "true", "true", n.name
	r.world.SetNode(world.Node{
		Name: n.name, UID: n.name, ProviderID: n.claim.ProviderID, Labels: labels, Taints: n.claim.Taints,
		Capacity: n.claim.Capacity, Allocatable: n.claim.Allocatable, Ready: true,
	})
	r.quiet(n)
	if x := n.replaces; x != nil {
		if x.missing--; x.missing == 0 {
			r.carryOut(x)
		}
	}
	n.replaces = nil
	r.open()
}

// quiet records the time at which a pod came to or left the node, or the node
// was initialized.
func (r *run) quiet(n *node) {
	r.disrupter.stirred = true
	if r.now.Before(n.claim.QuietSince.Add(noticed)) {
		return
	}
	p := r.config.pools[n.pool]
	n.claim.QuietSince = r.now
	n.claim.Consolidatable = p != nil && p.Spec.Disruption.ConsolidateAfter.Duration != nil
	r.world.SetClaim(n.claim)
}

// drain removes the node once its pods have left.
func (r *run) drain(n *node, reason string) {
	if n.gone(r) || !n.draining.IsZero() {
		return
	}
	n.leaving, n.draining, n.vacated = true, r.now, r.now
	n.claim.Deleting = true
	r.tally.outcome.Removed[reason]++
	if n.stay.from.IsZero() {
		r.remove(n)
		return
	}
	r.world.SetClaim(n.claim)
	r.provisioner.arrived, r.disrupter.stirred = true, true
	r.in(0, func() { r.evict(n) })
}

// lose removes the node that is most similar to the lost one: of the same offering, and about as
// old.
func (r *run) lose(l *loss) {
	var most *node
	differs := func(n *node) time.Duration { return n.stay.from.Sub(l.of.from).Abs() }
	for _, n := range r.fleet.nodes {
		s := &n.stay
		if !n.draining.IsZero() || s.from.IsZero() || s.kind != l.of.kind || s.zone != l.of.zone || s.capacityType != l.of.capacityType {
			continue
		}
		if most == nil || differs(n) < differs(most) {
			most = n
		}
	}
	if most != nil {
		r.drain(most, lost)
	}
}

// evict evicts the pods of the node that may be evicted, and removes the node when no pod
// is left.
func (r *run) evict(n *node) {
	if n.gone(r) {
		return
	}
	r.world.Snapshot(r.now) // so that the world records the time at which pods leave
	force := n.grace != nil && !r.now.Before(n.draining.Add(n.grace.Duration))
	left := 0
	for _, p := range slices.Clone(n.pods) {
		if p.leaving || !force && !p.mayLeave(r.now) {
			left++
			continue
		}
		r.move(p)
	}
	if left > 0 {
		r.in(retry, func() { r.evict(n) })
		return
	}
	r.at(n.vacated.Add(r.h.delays.Finish.mean()), func() { r.remove(n) })
}

// remove ends the instance.
func (r *run) remove(n *node) {
	if n.gone(r) {
		return
	}
	if n.replaces != nil {
		r.cancel(n.replaces)
	}
	if !n.stay.from.IsZero() {
		n.stay.to = r.now
		r.tally.stays = append(r.tally.stays, n.stay)
	}
	r.fleet.drop(n)
	r.world.DeleteNode(n.name)
	r.world.DeleteClaim(n.claim.Name)
	for _, p := range n.expects {
		if !p.gone && p.to == n {
			p.to, r.provisioner.arrived = nil, true
		}
	}
	r.disrupter.stirred = true
	r.open()
}

// nameOf returns a name for the nth node of the NodePool.
func nameOf(pool string, n int) string {
	return strings.TrimRight(pool[:min(len(pool), 50)], "-") + fmt.Sprintf("-r%d", n)
}

// labelsOf returns the labels of a node of the type and offering.
func labelsOf(c *world.Claim, t *model.InstanceType, o *model.Offering) map[string]string {
	out := map[string]string{}
	for _, list := range []model.Requirements{t.Requirements, o.Requirements} {
		for _, q := range list {
			if v, ok := list.Value(q.Key); ok {
				out[q.Key] = v
			}
		}
	}
	for key, value := range c.Labels {
		out[key] = value
	}
	out[corev1.LabelInstanceTypeStable], out[corev1.LabelTopologyZone], out[v1.CapacityTypeLabelKey] = t.Name, o.Zone, o.CapacityType
	return out
}
