// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"slices"
	"strings"

	"karpenter/model"
)

// mostRounds bounds how far ahead is looked.
const mostRounds = 500

// Rest is the state of the cluster after decisions that follow each other until
// one finds nothing more to do. Each decision is carried out in full before the
// next one. Instances become what was planned, all nodes are quiet for long
// enough, and nothing else happens. Prices, schedules of budgets and the
// protection of pods do not change.
type Rest struct {
	Total
	Rounds     int  `json:"rounds"`     // decisions that changed something
	Launched   int  `json:"launched"`   // nodes, by all of them
	Removed    int  `json:"removed"`    // nodes
	Evictions  int  `json:"evictions"`  // of pods; one that is moved twice counts twice
	Unfinished bool `json:"unfinished"` // it was not at rest after the most rounds that are tried
}

// restOf returns the Rest of the situation. p is the plan for it.
func restOf(s *model.Snapshot, p *model.Plan, d Decider) *Rest {
	rest, f := &Rest{}, &future{}
	settled := false // what is on its way has come or gone, and nodes are quiet
	for ; ; p = d.Decide(s) {
		if len(p.Launches) == 0 && len(p.Commands) == 0 {
			if !settled {
				s, settled = f.after(s, p), true
				continue
			}
			rest.Total = after(s, p)
			return rest
		}
		settled = true
		if rest.Rounds == mostRounds {
			rest.Total, rest.Unfinished = before(s), true
			return rest
		}
		rest.Rounds++
		rest.Launched += len(p.Launches)
		for i := range p.Commands {
			c := &p.Commands[i]
			rest.Launched += len(c.Launches)
			rest.Removed += len(c.Nodes)
			for _, target := range c.Nodes {
				rest.Evictions += movable(s, target.Node)
			}
		}
		s = f.after(s, p)
	}
}

// usedUp notes the NodePools whose budgets may allow more later: the situation
// has what budgets allow now, while nodes are being removed.
func usedUp(s *model.Snapshot) []string {
	var out []string
	for i := range s.Pools {
		p := &s.Pools[i]
		leaves := slices.ContainsFunc(s.Nodes, func(n model.Node) bool { return n.Pool == p.Name && n.Claim != "" && n.Deleting })
		for _, r := range []model.Reason{model.Empty, model.Drifted, model.Underutilized} {
			if n, said := p.Disruption.Allowed[r]; leaves && said && n == 0 {
				out = append(out, fmt.Sprintf("the budget of NodePool %s for %s is assumed to be used up by nodes that are being removed: if it is 0, fewer nodes are removed at rest", p.Name, r))
			}
		}
	}
	return out
}

// future applies plans to a situation.
type future struct {
	launched int
	s        *model.Snapshot
	pending  map[string]*model.Pending // what was to be placed, by pod
	planned  map[string]string         // nodes of pods that stand in for buffers, by pod
}

// kind is equal for pods that may be exchanged.
func kind(p *model.Pending) string { return fmt.Sprintf("%s\n%+v", p.Shape.Key, p.Peer) }

// keyOf tells pods apart, those that stand in for buffers too.
func keyOf(p *model.Pod) string { return p.Buffer + "/" + p.Key() }

// after returns the situation once the plan is carried out.
func (f *future) after(s *model.Snapshot, p *model.Plan) *model.Snapshot {
	next := *s
	f.s, f.pending, f.planned = &next, map[string]*model.Pending{}, map[string]string{}
	gone := map[string]bool{}
	placements, launches := slices.Clone(p.Placements), slices.Clone(p.Launches)
	for i := range p.Commands {
		c := &p.Commands[i]
		for _, target := range c.Nodes {
			gone[target.Node] = true
		}
		placements, launches = append(placements, c.Moves...), append(launches, c.Launches...)
	}
	f.await(s.Pending)
	next.Pools, next.Nodes, next.Intents = slices.Clone(s.Pools), nil, nil
	for i := range s.Nodes {
		switch n := &s.Nodes[i]; {
		case gone[n.Name]:
			f.await(n.Movable)
		case !n.Deleting:
			next.Nodes = append(next.Nodes, *n)
		}
	}
	for _, m := range placements {
		i := slices.IndexFunc(next.Nodes, func(n model.Node) bool { return n.Name == m.Node })
		f.run(&next.Nodes[i], m.Pod)
	}
	for i := range launches {
		f.launch(&launches[i])
	}
	next.Pending = f.left(s.Pending)
	f.settle(s)
	return &next
}

func (f *future) await(all []model.Pending) {
	for i := range all {
		for j := range all[i].Pods {
			f.pending[keyOf(&all[i].Pods[j])] = &all[i]
		}
	}
}

// run has the pod run on the node. One that stands in for a buffer waits there.
func (f *future) run(n *model.Node, pod model.Pod) {
	key := keyOf(&pod)
	p := f.pending[key]
	delete(f.pending, key)
	if pod.Buffer != "" {
		f.planned[key] = n.Name
		return
	}
	pod.Planned, pod.From = "", ""
	n.Requested = n.Requested.Plus(p.Shape.Requests)
	n.HostPorts = append(slices.Clone(n.HostPorts), p.Shape.HostPorts...)
	n.Attached = attach(n.Attached, p.Shape.Volumes)
	resident := model.Resident{Peer: p.Peer, Count: 1}
	for _, t := range p.Shape.PodTerms {
		if t.Anti && t.Weight == 0 {
			resident.Anti = append(resident.Anti, t)
		}
	}
	n.Residents = append(slices.Clone(n.Residents), resident)
	n.Movable = slices.Clone(n.Movable)
	i := slices.IndexFunc(n.Movable, func(o model.Pending) bool { return kind(&o) == kind(p) })
	if i < 0 {
		i, n.Movable = len(n.Movable), append(n.Movable, model.Pending{Shape: p.Shape, Peer: p.Peer})
	}
	n.Movable[i].Pods = append(slices.Clone(n.Movable[i].Pods), pod)
	n.Disruption.Cost++
	n.Disruption.Empty = false
}

// attach returns what is attached with the volumes of one more pod, of drivers
// that have a limit.
func attach(attached []model.Attached, volumes []model.Volumes) []model.Attached {
	attached = slices.Clone(attached)
	for i := range attached {
		a := &attached[i]
		for _, v := range volumes {
			if v.Driver == a.Driver {
				a.Own += v.Own
				a.Shared = slices.Compact(slices.Sorted(slices.Values(slices.Concat(a.Shared, v.Shared))))
			}
		}
	}
	return attached
}

// launch adds the node that was planned.
func (f *future) launch(l *model.Launch) {
	pool := &f.s.Pools[poolAt(f.s, l.Pool)]
	f.launched++
	name := fmt.Sprintf("launched %d", f.launched) // no Node can be called so
	n := model.Node{
		Name: name, Claim: name, Pool: l.Pool, Template: pool.Template, Price: l.Price, Taints: pool.Taints,
		Requested: l.Requests, DaemonRequested: l.Requests,
		Disruption: model.NodeDisruption{Empty: true, Cost: 1},
	}
	for i := range l.Pods {
		n.DaemonRequested = n.DaemonRequested.Minus(f.pending[keyOf(&l.Pods[i])].Shape.Requests)
	}
	labels := l.Requirements.And(model.NewRequirement(model.LabelNodePool, model.In, l.Pool), model.NewRequirement(model.LabelHostname, model.In, name))
	for _, t := range pool.Types {
		if t.Name != l.Type {
			continue
		}
		n.Capacity, n.Allocatable = t.Capacity, t.Allocatable
		labels = labels.And(t.Requirements...).And(model.NewRequirement(model.LabelInstanceType, model.In, t.Name))
		for i := range t.Offerings {
			if o := &t.Offerings[i]; o.Zone == l.Zone && o.CapacityType == l.CapacityType && o.Price == l.Price {
				labels = labels.And(o.Requirements...)
				f.reserve(o.ReservationID)
				break
			}
		}
	}
	for _, r := range labels {
		if !r.Complement && len(r.Values) > 0 {
			n.Labels = n.Labels.And(model.NewRequirement(r.Key, model.In, r.Values[0]))
		}
	}
	f.daemons(&n)
	n.Requested = n.DaemonRequested
	for _, p := range l.Pods {
		f.run(&n, p)
	}
	f.s.Nodes = append(f.s.Nodes, n)
}

// daemons takes the ports of the daemons that will run on the node.
func (f *future) daemons(n *model.Node) {
	for _, d := range f.s.Daemons {
		_, repelled := model.Untolerated(n.Taints, d.Shape.Tolerations)
		if repelled || !slices.ContainsFunc(d.Shape.Alternatives(), func(a model.Requirements) bool {
			_, ok := n.Labels.Compatible(a, nil)
			return ok
		}) {
			continue
		}
		n.HostPorts = append(n.HostPorts, d.Shape.HostPorts...)
	}
}

// reserve takes one off what a reservation has left.
func (f *future) reserve(id string) {
	if id == "" {
		return
	}
	for i := range f.s.Pools {
		types := slices.Clone(f.s.Pools[i].Types)
		for j, t := range types {
			at := slices.IndexFunc(t.Offerings, func(o model.Offering) bool { return o.ReservationID == id && o.ReservationLeft > 0 })
			if at < 0 {
				continue
			}
			less := *t
			less.Offerings = slices.Clone(t.Offerings)
			less.Offerings[at].ReservationLeft--
			types[j] = &less
		}
		f.s.Pools[i].Types = types
	}
}

// left returns the pods that still wait, and those of buffers, who always do.
func (f *future) left(all []model.Pending) []model.Pending {
	var out []model.Pending
	for _, p := range all {
		var pods []model.Pod
		for _, pod := range p.Pods {
			_, waits := f.pending[keyOf(&pod)]
			node, reserved := f.planned[keyOf(&pod)]
			if reserved {
				pod.Planned = node
			}
			if waits || reserved {
				pods = append(pods, pod)
			}
		}
		if p.Pods = pods; len(pods) > 0 {
			out = append(out, p)
		}
	}
	return out
}

// settle lets all nodes join and be quiet, and counts what pools have.
func (f *future) settle(was *model.Snapshot) {
	slices.SortFunc(f.s.Nodes, func(x, y model.Node) int { return strings.Compare(x.Name, y.Name) })
	for i := range f.s.Pools {
		p := &f.s.Pools[i]
		d := &p.Disruption
		leaving := 0
		for j := range was.Nodes {
			if n := &was.Nodes[j]; n.Pool == p.Name && n.Claim != "" && n.Deleting {
				leaving++
			}
		}
		free := min(leaving, d.Consuming)
		p.Usage, d.Counted, d.Consuming = nil, 0, d.Consuming-free
		d.Allowed = map[model.Reason]int{}
		for reason, n := range was.Pools[i].Disruption.Allowed {
			d.Allowed[reason] = n + free
		}
	}
	for i := range f.s.Nodes {
		n := &f.s.Nodes[i]
		if n.Claim == "" {
			continue
		}
		if !n.Initialized || strings.Contains(n.Disruption.Blocked, "nominated") {
			n.Disruption.Blocked = ""
		}
		n.Registered, n.Initialized = true, true
		n.Disruption.Settling, n.Disruption.Fresh = false, false
		if at := poolAt(f.s, n.Pool); at >= 0 {
			p := &f.s.Pools[at]
			n.Disruption.Consolidatable = !p.Disruption.Never && p.Static == nil
			p.Usage = p.Usage.Plus(n.Capacity)
			p.Disruption.Counted++
		}
	}
}
