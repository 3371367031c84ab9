// SPDX-License-Identifier: Apache-2.0

package solvetest

import (
	"fmt"
	"slices"

	"karpenter/model"
)

// peers checks that kube-scheduler could bind the pods as planned, given the
// rules they have about each other.
func (c *checker) peers(plan *model.Plan) {
	sites, teams := c.layOut(plan)
	if why := replay(sites, teams); why != "" && !c.bindsInTime(plan) {
		c.fail("the scheduler would not follow the plan: %s", why)
	}
}

// bindsInTime reports whether kube-scheduler could bind the pods if those that stay where an
// earlier plan sent them come first, while nodes that are being deleted are domains still.
func (c *checker) bindsInTime(plan *model.Plan) bool {
	sites, teams := c.layOut(plan)
	r := replayer{sites: sites, teams: slices.DeleteFunc(slices.Clone(teams), func(t team) bool { return !t.stays })}
	rest := slices.DeleteFunc(teams, func(t team) bool { return t.stays })
	going := map[*site]bool{}
	for _, s := range sites {
		going[s], s.gone = s.gone, false
	}
	for t := r.first(); t != nil; t = r.first() {
		r.bind(t)
	}
	for _, s := range sites {
		s.gone = going[s]
	}
	return replay(sites, append(r.teams, rest...)) == ""
}

// BindsNow reports whether kube-scheduler could bind all pods of the plan once its launches are
// nodes, but before nodes are gone that are being deleted: until then they are domains.
func BindsNow(s *model.Snapshot, plan *model.Plan) bool {
	sites, teams := newChecker(s, model.DefaultPolicy()).layOut(plan)
	for _, at := range sites {
		at.gone = false
	}
	return replay(sites, teams) == ""
}

// layOut returns the sites there will be, with what is bound now, and the pods
// the plan sends to each.
func (c *checker) layOut(plan *model.Plan) ([]*site, []team) {
	var sites []*site
	var teams []team
	send := func(pod model.Pod, to *site) {
		p, stays := c.pending[pod.Key()], pod.Planned == to.name
		i := slices.IndexFunc(teams, func(t team) bool { return t.pending == p && t.site == to && t.stays == stays })
		if i < 0 {
			i, teams = len(teams), append(teams, team{pending: p, site: to, stays: stays})
		}
		teams[i].left++
	}
	for i := range c.s.Nodes {
		s := nodeSite(&c.s.Nodes[i])
		sites = append(sites, s)
		for _, p := range plan.Placements {
			if p.Node == s.name {
				send(p.Pod, s)
			}
		}
	}
	for i := range plan.Launches {
		l := &plan.Launches[i]
		s := &site{name: fmt.Sprintf("launch %d of %s in %s", i, l.Type, l.Zone)}
		if pool := c.pool(l.Pool); pool != nil {
			s.taints = pool.Taints
			for _, o := range outcomes(pool, l) {
				s.outcomes = append(s.outcomes, eachValue(numbered(c.s, o.labels.And(model.NewRequirement(model.LabelNodePool, model.In, pool.Name))))...)
			}
		}
		sites = append(sites, s)
		for _, p := range l.Pods {
			send(p, s)
		}
	}
	return sites, teams
}

// clash reports whether two of the pods, or one and what is taken already,
// want the same port.
func clash(taken []model.HostPort, pods []*model.Shape) bool {
	taken = slices.Clone(taken)
	for _, s := range pods {
		for _, p := range s.HostPorts {
			if slices.ContainsFunc(taken, p.Conflicts) {
				return true
			}
		}
		taken = append(taken, s.HostPorts...)
	}
	return false
}

// overAttached reports whether the pods bring volumes to the node that it
// cannot attach; claims that several share count once.
func overAttached(n *model.Node, pods []*model.Shape) bool {
	for _, a := range n.Attached {
		own, shared := a.Own, slices.Clone(a.Shared)
		for _, s := range pods {
			for _, v := range s.Volumes {
				if v.Driver == a.Driver {
					own += v.Own
					shared = append(shared, v.Shared...)
				}
			}
		}
		slices.Sort(shared)
		total := own + len(slices.Compact(shared))
		if total > a.Limit && total > a.Own+len(a.Shared) {
			return true
		}
	}
	return false
}

// fresh is a node of the type as far as what it may attach goes.
func fresh(t *model.InstanceType) *model.Node {
	n := &model.Node{}
	for _, l := range t.VolumeLimits {
		n.Attached = append(n.Attached, model.Attached{Driver: l.Driver, Limit: l.Most})
	}
	return n
}

// attaches returns how many volumes of the driver the node of the launch attaches:
// those of each pod alone, and the claims that no pod elsewhere uses that needs a
// place, too; at least all that any one of the pods uses.
func (c *checker) attaches(l *model.Launch, driver string) int {
	mine, most := map[string]bool{}, 0
	for _, p := range l.Pods {
		mine[p.Key()] = true
	}
	own, claims := 0, map[string]bool{}
	for key, shape := range c.shapes {
		for _, v := range shape.Volumes {
			if v.Driver != driver {
				continue
			}
			if mine[key] {
				own += v.Own
				most = max(most, v.Own+len(v.Shared))
			}
			for _, claim := range v.Shared {
				all, known := claims[claim]
				claims[claim] = mine[key] && (all || !known)
			}
		}
	}
	for _, all := range claims {
		if all {
			own++
		}
	}
	return max(own, most)
}

// span is how many values of a label the types have, of those allowed.
func span(types []*model.InstanceType, key string, allowed model.Requirement) int {
	var values []string
	for _, t := range types {
		if r, ok := t.Requirements.Get(key); ok && !r.Complement {
			values = append(values, slices.DeleteFunc(slices.Clone(r.Values), func(v string) bool { return !allowed.Has(v) })...)
		}
	}
	slices.Sort(values)
	return len(slices.Compact(values))
}

// minValues checks that the launch's types span as many values as the pool
// demands, or that the plan says where they do not. Values that the launch
// excludes do not count: a NodeClaim cannot demand two of one.
func (c *checker) minValues(i int, pool *model.Pool, l *model.Launch) {
	var listed []*model.InstanceType
	for _, t := range pool.Types {
		if slices.Contains(l.Types, t.Name) {
			listed = append(listed, t)
		}
	}
	for _, r := range pool.Requirements {
		allowed, _ := l.Requirements.Get(r.Key)
		if r.Key == model.LabelCapacityType {
			allowed = model.NewRequirement(r.Key, model.In, l.CapacityTypes...)
		}
		spans := span(listed, r.Key, allowed)
		j := slices.IndexFunc(l.MinValues, func(m model.Relaxed) bool { return m.Key == r.Key })
		switch {
		case spans >= r.MinValues && j >= 0:
			c.fail("launch %d relaxes minValues of %s without need", i, r.Key)
		case spans >= r.MinValues:
		case !c.policy.RelaxMinValues:
			c.fail("launch %d spans %d values of %s, its pool demands %d", i, spans, r.Key, r.MinValues)
		case j < 0 || l.MinValues[j].Spans != spans:
			c.fail("launch %d spans %d values of %s and says %+v", i, spans, r.Key, l.MinValues)
		}
	}
}

// reservations checks that no reservation is promised more often than it can
// be had, and that launches which count on one become nothing else.
func (c *checker) reservations(plan *model.Plan) {
	left := c.reservable()
	for i, l := range plan.Launches {
		if len(l.ReservationIDs) > 0 && !slices.Equal(l.CapacityTypes, []string{model.Reserved}) {
			c.fail("launch %d counts on %v and may become %v", i, l.ReservationIDs, l.CapacityTypes)
		}
		for _, id := range l.ReservationIDs {
			if left[id]--; left[id] < 0 {
				c.fail("launch %d counts on reservation %s, which has no more", i, id)
			}
		}
	}
}

// reservable tells how many nodes each reservation still gives, by its ID.
func (c *checker) reservable() map[string]int64 {
	left := map[string]int64{}
	for i := range c.s.Pools {
		for _, t := range c.s.Pools[i].Types {
			for _, o := range t.Offerings {
				if n, ok := left[o.ReservationID]; !ok || o.ReservationLeft < n {
					left[o.ReservationID] = o.ReservationLeft
				}
			}
		}
	}
	for i := range c.s.Nodes {
		left[c.s.Nodes[i].Reservation]--
	}
	delete(left, "")
	return left
}
