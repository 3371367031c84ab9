// SPDX-License-Identifier: Apache-2.0

package devices

import (
	"fmt"
	"reflect"
	"slices"

	"karpenter/model"
)

// Pods of DaemonSets come to a new node before others, so what they claim of its devices is
// taken from the start. On a node where pods of DaemonSets run, they are thought to have
// theirs.

// crew is the DaemonSets of a Snapshot.
type crew struct {
	daemons   []model.Daemon
	wellKnown model.LabelSet
}

// sameDaemons reports whether the lists hold the same claims for the same nodes.
func sameDaemons(a, b []model.Daemon) bool {
	return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0] || reflect.DeepEqual(claimants(a), claimants(b)))
}

// claimants returns the daemons that claim devices, by position.
func claimants(all []model.Daemon) map[int]*model.Shape {
	var out map[int]*model.Shape
	for i := range all {
		if len(all[i].Shape.Claims) > 0 {
			if out == nil {
				out = map[int]*model.Shape{}
			}
			out[i] = all[i].Shape
		}
	}
	return out
}

// hostText tells pools apart of which the nodes have other daemons.
func (c *crew) hostText(p *model.Pool) string {
	if claimants(c.daemons) == nil {
		return ""
	}
	return fmt.Sprint(p.Name, p.Requirements, p.Taints)
}

// daemonsOf says of each daemon whether it claims devices and comes to nodes of the type;
// nil = none does.
func (c *crew) daemonsOf(p *model.Pool, t *model.InstanceType) []bool {
	var out []bool
	for i, s := range claimants(c.daemons) {
		labels := p.Requirements.And(t.Requirements...)
		if _, bad := model.Untolerated(model.Firm(p.Taints), s.Tolerations); !bad && slices.ContainsFunc(s.Alternatives(), func(r model.Requirements) bool {
			_, ok := labels.Compatible(r, c.wellKnown)
			return ok
		}) {
			out = c.mark(out, i)
		}
	}
	return out
}

// daemonsTo is daemonsOf for a node that is on its way.
func (c *crew) daemonsTo(n *model.Node) []bool {
	if n.Initialized || !n.DaemonRequested.IsZero() {
		return nil
	}
	var out []bool
	for i, s := range claimants(c.daemons) {
		arriving := *n
		arriving.Taints = model.Firm(n.Taints)
		if takes(&arriving, s) {
			out = c.mark(out, i)
		}
	}
	return out
}

func (c *crew) mark(list []bool, i int) []bool {
	if list == nil {
		list = make([]bool, len(c.daemons))
	}
	list[i] = true
	return list
}

// without returns the pools with what the daemons claim in use.
func (c *crew) without(b *Book, pools []model.DevicePool, daemons []bool) []model.DevicePool {
	if !slices.Contains(daemons, true) || len(pools) == 0 {
		return pools
	}
	load := b.Load(pools)
	for i, comes := range daemons {
		if comes {
			load = load.With(c.daemons[i].Shape.Claims, 1)
		}
	}
	return load.Pools()
}
