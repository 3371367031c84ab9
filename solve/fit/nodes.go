// SPDX-License-Identifier: Apache-2.0

package fit

import (
	"slices"

	"karpenter/model"
	"karpenter/solve/devices"
)

// NodeRow is a node of the Snapshot that can take pods, with what is free.
type NodeRow struct {
	*model.Node
	Site int // index in Snapshot.Nodes
	Free model.Resources
	held *held // nil = nothing; rows are copied often, and few have any

	taints *taints // nil = there are few
}

// held is what pods on a node have that few have. It does not change.
type held struct {
	ports []model.HostPort // taken, or to be taken by daemons that have not arrived yet
	load  *devices.Load    // nil = no pod needs devices
}

// Hold has the node hold these host ports, and its devices be taken like this.
func (n *NodeRow) Hold(ports []model.HostPort, load *devices.Load) {
	if n.held = nil; len(ports) > 0 || load != nil {
		n.held = &held{slices.Clip(ports), load}
	}
}

// Ports returns the host ports that are taken, or are to be by daemons that have not
// arrived yet.
func (n *NodeRow) Ports() []model.HostPort {
	if n.held == nil {
		return nil
	}
	return n.held.ports
}

// Load returns the devices with what is taken of them; nil if no pod needs any.
func (n *NodeRow) Load() *devices.Load {
	if n.held == nil {
		return nil
	}
	return n.held.load
}

// NewNodeRow compiles a node. Free is what is allocatable less what is
// requested and what daemons that have not arrived yet will request. Their
// ports are kept free as well, also where it is not settled whether they come.
// What is overdrawn counts as used up: to the scheduler it matters only to pods
// that request it. The book is of the Snapshot; nil = no pod needs devices.
func NewNodeRow(n *model.Node, site int, daemons []model.Daemon, book *devices.Book) NodeRow {
	labels := n.Labels
	if n.Claim != "" { // every managed node ends up with these
		labels = labels.And(
			model.NewRequirement(model.LabelRegistered, model.In, "true"),
			model.NewRequirement(model.LabelInitialized, model.In, "true"))
	}
	var expected model.Resources
	ports := slices.Clone(n.HostPorts)
	for i := range daemons {
		d := daemons[i].Shape
		if _, bad := model.Untolerated(model.Firm(n.Taints), d.Tolerations); bad {
			continue
		}
		if d.Suits(labels) {
			expected = expected.Plus(d.Requests)
		}
		if len(d.HostPorts) > 0 && maySuit(labels, d) {
			ports = append(ports, d.HostPorts...)
		}
	}
	missing := expected.Minus(n.DaemonRequested).Max(nil)
	out := NodeRow{Node: n, Site: site, Free: n.Allocatable.Minus(n.Requested).Minus(missing).Max(nil)}
	out.Hold(ports, book.Load(n.Devices))
	return out
}

// Takes reports whether the node's taints and labels let pods of s run there;
// room is not looked at.
func (n *NodeRow) Takes(s *model.Shape) bool {
	if _, bad := n.Untolerated(s); bad {
		return false
	}
	return s.Suits(n.Labels)
}

// Untolerated returns the node's first taint that keeps pods of s away.
func (n *NodeRow) Untolerated(s *model.Shape) (model.Taint, bool) {
	if n.taints == nil {
		return model.Untolerated(n.Taints, s.Tolerations)
	}
	return n.taints.untolerated(s.Tolerations)
}

// maySuit reports whether labels that are not all settled may turn out to suit
// the shape. A node does not get a label that is only not to have some value.
func maySuit(labels model.Requirements, s *model.Shape) bool {
	labels = slices.DeleteFunc(slices.Clone(labels), func(r model.Requirement) bool { return r.AllowsAbsence() })
	return slices.ContainsFunc(s.Alternatives(), func(alt model.Requirements) bool {
		_, ok := labels.Compatible(alt, nil)
		return ok
	})
}

// Room returns how many pods requesting r fit into free, at most limit; none
// when anything is overdrawn.
func Room(free, r model.Resources, limit int) int { return RoomBeside(nil, free, r, limit) }

// RoomBeside is Room beside what is taken of free.
func RoomBeside(taken, free, r model.Resources, limit int) int {
	n := int64(limit)
	for i, v := range r {
		if v > 0 {
			n = min(n, (free.At(i)-taken.At(i))/v)
		}
	}
	for i := range max(len(free), len(taken)) {
		if free.At(i) < taken.At(i) {
			return 0
		}
	}
	return int(max(n, 0))
}
