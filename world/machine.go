// SPDX-License-Identifier: Apache-2.0

package world

import (
	"slices"
	"strings"
	"time"

	"karpenter/model"
)

// machine is a Node and its NodeClaim; one of them may be nil.
type machine struct {
	id    string
	node  *Node
	claim *Claim
	twins []*Node // further Nodes with the provider ID of node; none of them can be trusted

	marked    bool      // being removed by our decision
	nominated time.Time // not to be disrupted before

	seeded bool      // the claim is known from Planned only
	since  time.Time // of the first Snapshot with the seed

	most model.Resources // what it counted in the limits of its pool before it was launched

	lacking map[string]time.Time // required drivers of volumes that it has not, and since when

	view  model.Node // as in Snapshots
	index int        // of view in the last Snapshot's nodes
	stale bool       // view is out of date; World.touch sets it
	until time.Time  // view holds before; zero = as long as nothing happens
	share share      // of the pool's standing
	kinds []resident // of view.Residents
	moves moves      // as of view
	names named      // view.Labels before anything is foreseen
}

// named is labels and what they were made of.
type named struct {
	node   *Node
	claim  *Claim // nil when the Node speaks
	name   string // of the machine
	byName bool
	labels model.Requirements
}

// inherit takes over what this process has decided about a machine that has
// changed its ID.
func (w *World) inherit(m, from *machine) {
	m.marked = m.marked || from.marked
	if from.nominated.After(m.nominated) {
		m.nominated = from.nominated
	}
	w.touch(m)
}

func (m *machine) managed() bool { return m.claim != nil }

// registered reports whether the Node has taken over from the claim.
func (m *machine) registered() bool {
	return !m.managed() || m.node != nil && m.node.Labels[model.LabelRegistered] == "true"
}

func (m *machine) initialized() bool {
	return !m.managed() || m.node != nil && m.node.Labels[model.LabelInitialized] == "true"
}

// sick reports whether the machine may be about to be repaired, which no pod on
// it can prevent.
func (m *machine) sick() bool {
	return m.managed() && m.node != nil && m.node.Sick && m.registered()
}

func (m *machine) launched() bool { return m.node != nil || m.claim.ProviderID != "" }

// speaks reports whether the Node, and not the claim, says what the machine is
// called and labelled.
func (m *machine) speaks() bool { return m.node != nil && m.registered() }

// nameOf returns what Snapshots call the machine. No two have the same name: a claim that
// has the name of another machine's Node goes by its claimKey.
func (w *World) nameOf(m *machine) string {
	if m.speaks() {
		return m.node.Name
	}
	if w.shadowed(m) {
		return claimKey(m.claim.Name)
	}
	return m.claim.Name
}

// shadowed reports whether another machine's Node has the name of the machine's claim.
func (w *World) shadowed(m *machine) bool {
	id, taken := w.nodeIDs[m.claim.Name]
	return taken && id != m.id
}

// touchShadow has the machine of the claim of that name looked at again, with the plans on it: a
// Node of the name has come or gone.
func (w *World) touchShadow(name string) {
	m := w.machines[w.claimIDs[name]]
	if m == nil {
		return
	}
	w.touch(m)
	for uid := range w.planned[claimKey(name)] {
		if p := w.pods[w.plans[uid].pod]; p != nil {
			w.relist(p)
		}
	}
}

// claimKey returns the target of plans for a claim. No Node can have that name.
func claimKey(claim string) string { return claimPrefix + claim }

const claimPrefix = "nodeclaim/"

func (m *machine) labels() map[string]string {
	if m.speaks() {
		return m.node.Labels
	}
	return m.claim.Labels
}

func (m *machine) label(key string) string { return m.labels()[key] }

func (m *machine) uid() string {
	if m.node != nil {
		return m.node.UID
	}
	return m.claim.UID
}

// deleting reports whether the machine is being removed. A Node that is deleted
// while its claim lives is not: the claim decides.
func (m *machine) deleting() bool { return m.marked || m.ending() }

// ending reports whether the machine is being removed for good: a mark alone can
// be taken back.
func (m *machine) ending() bool {
	switch {
	case m.claim != nil:
		return m.claim.Deleting || m.claim.Terminating
	case m.node != nil:
		return m.node.Deleting
	}
	return false
}

// taints returns what a pod must tolerate. While the machine starts, taints
// that will go by themselves do not count.
func (m *machine) taints() []model.Taint {
	if !m.speaks() {
		return m.settled(m.claim.Taints)
	}
	return m.settled(m.node.Taints)
}

func (m *machine) settled(taints []model.Taint) []model.Taint {
	rebooting := m.claim != nil && m.claim.Rebooting
	if m.initialized() && !rebooting {
		return taints
	}
	return slices.DeleteFunc(slices.Clone(taints), func(t model.Taint) bool {
		return ephemeral(t) || rebooting && t.Key == "karpenter.sh/rebooting" || slices.ContainsFunc(m.claim.StartupTaints, func(s model.Taint) bool {
			return s.Key == t.Key && s.Effect == t.Effect
		})
	})
}

// ephemeral reports whether the taint is one that starting nodes have.
func ephemeral(t model.Taint) bool {
	switch t.Key {
	case "node.kubernetes.io/not-ready":
		return t.Effect == model.NoSchedule || t.Effect == model.NoExecute
	case "node.kubernetes.io/unreachable", "node.cloudprovider.kubernetes.io/uninitialized":
		return t.Effect == model.NoSchedule
	case "karpenter.sh/unregistered":
		return t.Effect == model.NoExecute
	}
	return strings.HasPrefix(t.Key, "readiness.k8s.io/")
}

// capacity returns what the machine has, as far as anyone knows, and one node.
func (m *machine) capacity() model.Resources {
	return m.settle(func(n *Node) model.Resources { return n.Capacity }, func(c *Claim) model.Resources { return c.Capacity }).With(model.Nodes, 1)
}

// charged returns what a launched machine counts in its pool's limits: what the
// cloud said it has. A kubelet can write anything to the Node's capacity, and
// that counts only for resources that the cloud says nothing about, such as
// those of device plugins, and for machines whose capacity no one else knows.
func (m *machine) charged(capacity model.Resources, t *model.InstanceType) model.Resources {
	var said model.Resources
	if m.claim != nil {
		said = m.claim.Capacity
	}
	if len(said) == 0 && t != nil && m.claim != nil {
		said = t.Capacity
	}
	out := make(model.Resources, max(len(said), len(capacity)))
	for i := range out {
		if out[i] = said.At(i); out[i] == 0 {
			out[i] = capacity.At(i)
		}
	}
	return out
}

// allocatable returns what pods can use of the machine. A claim that is not
// launched promises what it was asked to hold.
func (m *machine) allocatable() model.Resources {
	if !m.launched() {
		return m.claim.Requests
	}
	return m.settle(func(n *Node) model.Resources { return n.Allocatable }, func(c *Claim) model.Resources { return c.Allocatable })
}

// settle takes the Node's figures, and the claim's for what a starting Node
// does not report yet.
func (m *machine) settle(ofNode func(*Node) model.Resources, ofClaim func(*Claim) model.Resources) model.Resources {
	switch {
	case m.node == nil:
		return ofClaim(m.claim)
	case m.initialized():
		return ofNode(m.node)
	}
	have, promised := ofNode(m.node), ofClaim(m.claim)
	out := make(model.Resources, max(len(have), len(promised)))
	for i := range out {
		if out[i] = have.At(i); out[i] == 0 {
			out[i] = promised.At(i)
		}
	}
	return out
}

// requirements returns the labels the machine, of that name, has or, before it is launched,
// may end up with: a hostname among others. With byName it has the name of its
// Node as one.
func (m *machine) requirements(name string, byName bool) model.Requirements {
	out := model.LabelRequirements(m.labels())
	if byName && m.speaks() {
		out = out.And(model.NewRequirement(model.FieldName, model.In, name))
	}
	if !m.launched() {
		out = out.And(m.claim.Requirements...)
	}
	if _, ok := out.Get(model.LabelHostname); !ok && !m.speaks() {
		out = out.And(model.NewRequirement(model.LabelHostname, model.In, name))
	}
	return out
}
