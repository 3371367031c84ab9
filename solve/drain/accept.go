// SPDX-License-Identifier: Apache-2.0

package drain

import (
	"fmt"
	"maps"
	"slices"

	"karpenter/model"
	"karpenter/solve/fit"
	"karpenter/solve/pack"
)

// accept makes the command part of the plan and enters it into the Snapshot.
// Pending is the pods of its nodes, by which its moves and launches are known.
func (r *round) accept(c model.Command, sites []int, pending []model.Pending) {
	r.plan.Commands = append(r.plan.Commands, c)
	for _, i := range sites {
		n := &r.s.Nodes[i]
		n.Deleting, n.Residents, n.Movable = true, nil, nil
		r.restage(i)
		r.taken[n.Name] = true
		if !n.Initialized { // no budget is about it
			continue
		}
		for _, left := range reasons() {
			r.budget[r.pools[n.Pool]][left]--
		}
	}
	kinds := kindsOf(pending)
	r.hold(&c, kinds)
	r.move(c.Moves, kinds)
	for i := range c.Launches {
		r.launch(&c.Launches[i], kinds)
	}
}

// move enters the pods on the nodes they go to.
func (sc *scene) move(moves []model.Placement, kinds map[string]*model.Pending) {
	byNode := map[string][]*model.Pending{}
	for _, m := range moves {
		if i, known := sc.sites[m.Node]; known {
			sc.arrivals = append(sc.arrivals, pack.Arrival{Pod: m.Pod, Site: i})
		}
		byNode[m.Node] = append(byNode[m.Node], kinds[keyOf(&m.Pod)])
		if got, known := sc.receiving[m.Node]; !known || got.buffer != "" && m.Pod.Buffer == "" {
			sc.receiving[m.Node] = receipt{}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(byNode)) {
		arrivals := byNode[name]
		i, known := sc.sites[name]
		if !known {
			continue
		}
		n := &sc.s.Nodes[i]
		sc.memory.Forget(n.Name)
		n.HostPorts, n.Attached, n.Residents = slices.Clone(n.HostPorts), slices.Clone(n.Attached), slices.Clone(n.Residents)
		load := sc.memory.Book(&sc.s).Load(n.Devices)
		for _, p := range arrivals {
			n.Requested = n.Requested.Plus(p.Shape.Requests)
			load = load.With(p.Shape.Claims, 1)
			n.HostPorts = append(n.HostPorts, p.Shape.HostPorts...)
			n.Attached = attach(n.Attached, p.Shape.Volumes)
			n.Residents = append(n.Residents, resident(p)...)
		}
		if load != nil {
			n.Devices = load.Pools()
		}
		sc.restage(i)
	}
}

// attach adds the volumes of a pod to those of the drivers that have a limit.
func attach(attached []model.Attached, volumes []model.Volumes) []model.Attached {
	for _, v := range volumes {
		for i := range attached {
			a := &attached[i]
			if a.Driver != v.Driver {
				continue
			}
			a.Own += v.Own
			a.Shared = append(slices.Clone(a.Shared), v.Shared...)
			slices.Sort(a.Shared)
			a.Shared = slices.Compact(a.Shared)
		}
	}
	return attached
}

// resident returns a pod as pods elsewhere have to do with it.
func resident(p *model.Pending) []model.Resident {
	out := model.Resident{Peer: p.Peer, Count: 1}
	for _, t := range p.Shape.PodTerms {
		if t.Anti && t.Weight == 0 {
			out.Anti = append(out.Anti, t)
		}
	}
	if len(out.Anti) == 0 && len(p.Peer.Labels) == 0 && p.Peer.Namespace == "" {
		return nil
	}
	return []model.Resident{out}
}

// largest returns what the launch counts in the limits of its pool, whatever it
// becomes.
func largest(pool *model.Pool, l *model.Launch) model.Resources {
	listed := map[string]bool{}
	for _, name := range l.Types {
		listed[name] = true
	}
	most := model.Resources{}.With(model.Nodes, 1)
	for _, t := range pool.Types {
		if listed[t.Name] || len(listed) == 0 {
			most = most.Max(t.Capacity)
		}
	}
	return most
}

// launch enters a node that is to be launched: it counts in limits,
// reservations and rules between pods, and takes no more pods.
func (sc *scene) launch(l *model.Launch, kinds map[string]*model.Pending) {
	pool := &sc.s.Pools[sc.pools[l.Pool]]
	if len(pool.Limits) > 0 {
		pool.Usage = pool.Usage.Plus(largest(pool, l))
	}
	n := model.Node{
		Name: fmt.Sprintf("launch-%d", len(sc.s.Nodes)), Pool: l.Pool, Closed: true,
		Labels: sc.labelled(l),
	}
	if i := slices.IndexFunc(pool.Types, func(t *model.InstanceType) bool { return t.Name == l.Type }); i >= 0 {
		n.Capacity = pool.Types[i].Capacity
	}
	if len(l.ReservationIDs) > 0 {
		n.Reservation = l.ReservationIDs[0]
	}
	for i := range l.Pods {
		n.Residents = append(n.Residents, resident(kinds[keyOf(&l.Pods[i])])...)
		sc.arrivals = append(sc.arrivals, pack.Arrival{Pod: l.Pods[i], Site: len(sc.s.Nodes)})
	}
	sc.s.Nodes = append(sc.s.Nodes, n)
}

// restage has the node of the site be in rehearsals what it is now.
func (sc *scene) restage(site int) {
	if sc.stage == nil {
		return
	}
	sc.stage[site] = fit.NodeRow{}
	if n := &sc.s.Nodes[site]; !n.Deleting && !uninitialized(n) {
		sc.stage[site] = fit.NewNodeRow(n, site, sc.s.Daemons, sc.memory.Book(&sc.s))
		for _, p := range sc.lodgers.at[site] {
			sc.stage[site].Free = sc.stage[site].Free.Plus(p.Shape.Requests)
		}
	}
}
