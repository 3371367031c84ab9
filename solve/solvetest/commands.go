// SPDX-License-Identifier: Apache-2.0

package solvetest

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"karpenter/model"
)

// commands checks what the plan removes: command by command, and all of it
// together with what else the plan does.
func (c *checker) commands(plan *model.Plan) {
	before := len(c.wrong)
	c.budgets(plan)
	gone := map[string]bool{}
	for i := range plan.Commands {
		for _, t := range plan.Commands[i].Nodes {
			if gone[t.Node] {
				c.fail("node %s is removed twice", t.Node)
			}
			gone[t.Node] = true
		}
	}
	for i := range plan.Commands {
		c.command(i, &plan.Commands[i])
	}
	c.static(plan)
	if len(c.wrong) == before && len(plan.Commands) > 0 {
		c.together(plan)
	}
	c.stays(plan, gone)
}

// budgets checks, in the order of the commands, that no pool loses more nodes
// than it allows for the reason; initialized nodes taken for any reason count.
func (c *checker) budgets(plan *model.Plan) {
	taken := map[string]int{}
	for i, cmd := range plan.Commands {
		for _, t := range cmd.Nodes {
			if n := c.node(t.Node); n != nil && n.Initialized {
				taken[n.Pool]++
				if cmd.Reason == model.Empty && n.Disruption.Returned {
					continue // whatever budgets say
				}
				if pool := c.pool(n.Pool); pool == nil || taken[n.Pool] > pool.Disruption.Allowed[cmd.Reason] {
					c.fail("command %d: pool %s loses %d nodes, more than it allows as %s", i, n.Pool, taken[n.Pool], cmd.Reason)
				}
			}
		}
	}
}

func (c *checker) node(name string) *model.Node {
	i := slices.IndexFunc(c.s.Nodes, func(n model.Node) bool { return n.Name == name })
	if i < 0 {
		return nil
	}
	return &c.s.Nodes[i]
}

func (c *checker) command(i int, cmd *model.Command) {
	var nodes []*model.Node
	at := -1
	for _, t := range cmd.Nodes {
		n := c.node(t.Node)
		if n == nil {
			c.fail("command %d takes %s away, which is no node", i, t.Node)
			return
		}
		if j := slices.IndexFunc(c.s.Nodes, func(o model.Node) bool { return o.Name == t.Node }); j < at {
			c.fail("command %d does not name its nodes in order", i)
		} else {
			at = j
		}
		if t.Claim != n.Claim {
			c.fail("command %d says that the claim of %s is %s", i, t.Node, t.Claim)
		}
		if why := c.objection(n, cmd.Reason); why != "" && !(why == notDrifted && c.accompanies(n, cmd)) {
			c.fail("command %d takes %s away as %s, which %s", i, n.Name, cmd.Reason, why)
		}
		nodes = append(nodes, n)
		c.whole(i, cmd, n)
	}
	if len(nodes) == 0 || slices.ContainsFunc(nodes, func(n *model.Node) bool { return c.pool(n.Pool) == nil }) {
		c.fail("command %d takes nothing away, or what is not ours", i)
		return
	}
	if cmd.Reboot {
		if len(cmd.Launches)+len(cmd.Moves) > 0 || cmd.Reason != model.Unhealthy || !nodes[0].Disruption.Reboot || len(nodes) != 1 {
			c.fail("command %d reboots what is not to be rebooted, or does more than that", i)
		}
		return
	}
	c.money(i, cmd, nodes)
	if c.pool(nodes[0].Pool).Static != nil {
		c.substitute(i, cmd, nodes)
		return
	}
	c.cargo(i, cmd, nodes)
	if cmd.Reason == model.Underutilized {
		c.scores(i, cmd, nodes)
		c.cheaper(i, cmd, nodes)
	}
}

const notDrifted = "has not drifted"

// accompanies reports whether the node goes because of a drifted node of the command with
// pods of the same PodGroups, whose pods are disrupted together.
func (c *checker) accompanies(n *model.Node, cmd *model.Command) bool {
	if len(n.Disruption.Together) == 0 {
		return false
	}
	return slices.ContainsFunc(cmd.Nodes, func(t model.Target) bool {
		o := c.node(t.Node)
		return o != n && o != nil && len(o.Disruption.Together) > 0 && !o.Disruption.Drifted.IsZero()
	})
}

// whole checks that the command takes all nodes away with pods of PodGroups on the node
// whose pods are disrupted together.
func (c *checker) whole(i int, cmd *model.Command, n *model.Node) {
	if cmd.Reason == model.Unhealthy || cmd.Reason == model.Empty || cmd.Reason == model.Drifted && n.Disruption.Deadline {
		return
	}
	for _, o := range c.s.Nodes {
		if shares(&o, n) && !slices.ContainsFunc(cmd.Nodes, func(t model.Target) bool { return t.Node == o.Name }) {
			c.fail("command %d takes %s away without %s, which has pods of the same PodGroup", i, n.Name, o.Name)
		}
	}
}

// shares reports whether both nodes have pods of one PodGroup whose pods are disrupted together.
func shares(a, b *model.Node) bool {
	return slices.ContainsFunc(a.Disruption.Together, func(g string) bool { return slices.Contains(b.Disruption.Together, g) })
}

// objection says why a node may not be removed for the reason; "" = it may.
func (c *checker) objection(n *model.Node, reason model.Reason) string {
	d, pool := &n.Disruption, c.pool(n.Pool)
	switch {
	case n.Claim == "" || pool == nil:
		return "is not ours"
	case reason == model.Unhealthy:
		if n.Deleting || !n.Registered || d.Unhealthy == "" || !d.Reboot && pool.Static != nil && pool.Static.Active > pool.Static.Replicas {
			return "is not to be repaired"
		}
	case pool.Static != nil && (reason != model.Drifted || pool.Static.Active > pool.Static.Replicas):
		return "is of a static pool"
	case n.Deleting || n.Closed || !n.Initialized && !(n.Registered && d.Returned && reason == model.Empty):
		return "is not there yet, or no more"
	case d.Blocked != "":
		return "is blocked"
	case d.Held != "" && !(reason == model.Drifted && d.Deadline):
		return "is held"
	case reason == model.Drifted:
		if d.Drifted.IsZero() && (c.policy.RebalancePremium == nil || d.Advised.IsZero()) {
			return notDrifted
		}
	case reason == model.Empty && d.Returned:
		if !d.Empty {
			return "is not empty"
		}
	case !d.Consolidatable || pool.Disruption.Never:
		return "is to be left alone"
	case reason == model.Empty:
		if !d.Empty {
			return "is not empty"
		}
	case reason == model.Underutilized:
		if pool.Disruption.Policy == model.WhenEmpty {
			return "goes only when it is empty"
		}
		if d.Empty && len(n.Movable) == 0 {
			return "is empty"
		}
		for _, key := range []string{model.LabelInstanceType, model.LabelCapacityType, model.LabelZone} {
			if _, ok := n.Labels.Value(key); !ok {
				return "has no label " + key
			}
		}
		kind, _ := n.Labels.Value(model.LabelInstanceType)
		if n.Price == 0 && !slices.ContainsFunc(pool.Types, func(t *model.InstanceType) bool { return t.Name == kind }) {
			return "is of a type its pool does not know"
		}
	default:
		return "is no reason"
	}
	return ""
}

// substitute checks the replacement of a node of a static pool: one for one,
// whatever pods there are.
func (c *checker) substitute(i int, cmd *model.Command, nodes []*model.Node) {
	if cmd.TerminateFirst != "" {
		if len(nodes) != 1 || len(cmd.Launches)+len(cmd.Moves) > 0 {
			c.fail("command %d terminates first and does more", i)
		}
		return
	}
	if len(nodes) != 1 || len(cmd.Launches) != 1 || len(cmd.Moves) > 0 || len(cmd.Launches[0].Pods) > 0 || cmd.Launches[0].Pool != nodes[0].Pool {
		c.fail("command %d is not one new node for one of the static pool %s", i, nodes[0].Pool)
	}
}

// static checks that no static pool gets more nodes than its limit while they
// are replaced.
func (c *checker) static(plan *model.Plan) {
	for i := range c.s.Pools {
		pool := &c.s.Pools[i]
		if pool.Static == nil {
			continue
		}
		more := 0
		for _, cmd := range plan.Commands {
			for _, l := range cmd.Launches {
				if l.Pool == pool.Name {
					more++
				}
			}
		}
		for _, l := range pool.Limits {
			if n := pool.Static.Active + pool.Static.Leaving + pool.Static.Pending + more; l.Resource == model.Nodes && more > 0 && int64(n) > l.Max {
				c.fail("static pool %s could have %d nodes, its limit is %d", pool.Name, n, l.Max)
			}
		}
	}
}

// cargo checks that every pod of the nodes that may move has one place, and
// that no one else has one.
func (c *checker) cargo(i int, cmd *model.Command, nodes []*model.Node) {
	places := map[string]int{}
	for _, m := range cmd.Moves {
		places[m.Pod.Key()]++
		n := c.node(m.Node)
		switch {
		case n == nil:
			c.fail("command %d moves %s to %s, which is no node", i, m.Pod.Key(), m.Node)
		case n.Closed || n.Claim != "" && !n.Initialized:
			c.fail("command %d moves %s to %s, which is closed or not initialized", i, m.Pod.Key(), m.Node)
		case cmd.Reason != model.Drifted && cmd.Reason != model.Unhealthy && n.Disruption.Settling:
			c.fail("command %d moves %s to %s, which is settling", i, m.Pod.Key(), m.Node)
		}
	}
	for _, l := range cmd.Launches {
		for _, p := range l.Pods {
			places[p.Key()]++
		}
		if len(l.Pods) == 0 {
			c.fail("command %d launches a %s without pods", i, l.Type)
		}
	}
	for _, n := range nodes {
		for _, m := range n.Movable {
			if len(m.Shape.Refused) > 0 {
				c.fail("command %d moves %s, for which nothing can be planned", i, m.Pods[0].Key())
			}
			for _, p := range m.Pods {
				if places[p.Key()] != 1 && (cmd.TerminateFirst == "" || places[p.Key()] > 1) {
					c.fail("command %d has %d places for %s", i, places[p.Key()], p.Key())
				}
				delete(places, p.Key())
			}
		}
	}
	for key := range places {
		c.fail("command %d has a place for %s, which is not on its nodes", i, key)
	}
}

// money checks what the command says it costs and saves.
func (c *checker) money(i int, cmd *model.Command, nodes []*model.Node) {
	cost := model.Price(0)
	for _, n := range nodes {
		cost += n.Price
	}
	savings := cost
	for _, l := range cmd.Launches {
		savings -= l.Price
	}
	if cmd.Cost != cost || cmd.Savings != savings {
		c.fail("command %d says it saves %d of %d, it is %d of %d", i, cmd.Savings, cmd.Cost, savings, cost)
	}
}

// cheaper checks that what replaces the nodes costs less than they do,
// whatever instances the launches become.
func (c *checker) cheaper(i int, cmd *model.Command, nodes []*model.Node) {
	if owed := Owed(c.s, c.policy, cmd); float64(cmd.Savings) < owed*(1-1e-9)-1 {
		c.fail("command %d saves %d of %d, and must save %.0f", i, cmd.Savings, cmd.Cost, owed)
	}
	if len(cmd.Launches) == 0 {
		return
	}
	if cmd.Savings <= 0 {
		c.fail("command %d saves %d of %d", i, cmd.Savings, cmd.Cost)
	}
	sum := model.Price(0)
	for j := range cmd.Launches {
		l := &cmd.Launches[j]
		pool := c.pool(l.Pool)
		if pool == nil {
			c.fail("command %d launches in %s, which is no pool", i, l.Pool)
			return
		}
		sum += dearest(pool, l)
		if len(l.CapacityTypes) != 1 {
			c.fail("command %d launches a machine that may become any of %v: it was priced as one", i, l.CapacityTypes)
		}
		if len(l.MinValues) > 0 {
			c.fail("command %d relaxes minValues", i)
		}
		c.unlike(i, l, nodes)
		c.spotToSpot(i, l, nodes)
	}
	if sum >= cmd.Cost {
		c.fail("command %d may come to cost %d instead of %d", i, sum, cmd.Cost)
	}
}

// dearest is the most a launch may come to cost.
func dearest(pool *model.Pool, l *model.Launch) model.Price {
	most := model.Price(0)
	for _, o := range outcomes(pool, l) {
		if o.offer.Available {
			most = max(most, o.offer.Price)
		}
	}
	return most
}

// unlike checks that the launch does not launch again what it replaces: no node
// that goes is of a type it lists, for no more money, and where its pods could
// stay.
func (c *checker) unlike(i int, l *model.Launch, nodes []*model.Node) {
	tied := func(n *model.Node) bool { // it cannot be kept
		return slices.ContainsFunc(nodes, func(o *model.Node) bool { return o != n && shares(o, n) })
	}
	if len(nodes) < 2 || slices.ContainsFunc(nodes, tied) {
		return
	}
	for _, n := range nodes {
		kind, _ := n.Labels.Value(model.LabelInstanceType)
		ct, _ := n.Labels.Value(model.LabelCapacityType)
		_, suits := n.Labels.Intersects(l.Requirements)
		if slices.Contains(l.Types, kind) && n.Pool == l.Pool && ct == l.CapacityType && suits && n.Price <= l.Price {
			c.fail("command %d launches what might be another %s for %d and removes %s, which costs %d", i, kind, l.Price, n.Name, n.Price)
		}
	}
}

// leastSpot is how many types there must be, and no more are listed, when one
// spot node is replaced by another.
const leastSpot = 15

func (c *checker) spotToSpot(i int, l *model.Launch, nodes []*model.Node) {
	for _, n := range nodes {
		if ct, _ := n.Labels.Value(model.LabelCapacityType); ct != model.Spot {
			return
		}
	}
	switch demanding := slices.ContainsFunc(c.pool(l.Pool).Requirements, func(r model.Requirement) bool { return r.MinValues > leastSpot }); {
	case !slices.Contains(l.CapacityTypes, model.Spot):
	case !c.policy.SpotToSpot:
		c.fail("command %d replaces spot by spot", i)
	case len(nodes) > 1:
	case len(l.Types) < leastSpot || len(l.Types) > leastSpot && !demanding:
		c.fail("command %d replaces a spot node by one of %d types", i, len(l.Types))
	}
}

// leastScore is what a Balanced pool wants.
const leastScore = 0.5

// scores checks that Balanced pools approve, and that no one else is asked.
func (c *checker) scores(i int, cmd *model.Command, nodes []*model.Node) {
	type part struct{ cost, disruption float64 }
	parts := map[string]part{}
	for _, n := range nodes {
		if c.pool(n.Pool).Disruption.Policy == model.Balanced {
			p := parts[n.Pool]
			parts[n.Pool] = part{p.cost + float64(n.Price), p.disruption + n.Disruption.Cost}
		}
	}
	if len(cmd.Scores) != len(parts) {
		c.fail("command %d has %d scores for %d Balanced pools", i, len(cmd.Scores), len(parts))
	}
	for _, s := range cmd.Scores {
		p, all := parts[s.Pool], part{}
		for _, n := range c.s.Nodes {
			if n.Pool == s.Pool && n.Claim != "" {
				all = part{all.cost + float64(n.Price), all.disruption + n.Disruption.Cost}
			}
		}
		want := 0.0
		if share := p.cost / max(float64(cmd.Cost), 1) * float64(cmd.Savings); share > 0 && all.cost > 0 && all.disruption > 0 {
			want = share / all.cost / (p.disruption / all.disruption)
		}
		if math.Abs(want-s.Value) > 1e-6*want || s.Value < leastScore {
			c.fail("command %d scores %g for %s, it is %g", i, s.Value, s.Pool, want)
		}
	}
}

// stays checks that every node that is kept although something spoke for
// taking it away says why, and only those.
func (c *checker) stays(plan *model.Plan, gone map[string]bool) {
	said := map[string]int{}
	for _, s := range plan.Stays {
		said[s.Node]++
		if s.Why == "" || s.Cause == "" || c.node(s.Node) == nil {
			c.fail("node %s stays for no reason: %+v", s.Node, s)
		}
		if scored := s.Score.Pool != ""; scored != strings.Contains(s.Why, "is Balanced") || scored && s.Score.Value >= leastScore {
			c.fail("node %s stays with a score that is not why: %+v", s.Node, s)
		}
	}
	for _, n := range c.s.Nodes {
		pool := c.pool(n.Pool)
		asked := n.Claim != "" && n.Initialized && !n.Deleting && pool != nil &&
			(n.Disruption.Consolidatable && pool.Static == nil || !n.Disruption.Drifted.IsZero())
		switch {
		case gone[n.Name] && said[n.Name] > 0, said[n.Name] > 1:
			c.fail("node %s stays %d times, and is removed: %v", n.Name, said[n.Name], gone[n.Name])
		case asked && !gone[n.Name] && said[n.Name] == 0:
			c.fail("node %s stays and does not say why", n.Name)
		}
	}
}

// together checks the state after all commands and all else the plan does, as
// a plan for the situation without the nodes that go, with their pods pending.
func (c *checker) together(plan *model.Plan) {
	s, all := Merged(c.s, plan)
	t := newChecker(s, c.policy)
	t.placements(all)
	t.launches(all)
	t.reservations(all)
	for _, wrong := range t.wrong {
		c.fail("with all commands: %s", wrong)
	}
	if len(t.wrong) == 0 {
		c.inTurn(plan)
	}
}

// inTurn checks that kube-scheduler could bind the pods of each command as
// planned when its nodes are gone, those of commands further down are not, and
// all that were pending, or moved by commands above, are where they were
// planned.
func (c *checker) inTurn(plan *model.Plan) {
	sites, teams := c.layOut(plan)
	bind(teams)
	for i := range plan.Commands {
		cmd := &plan.Commands[i]
		sites = slices.DeleteFunc(sites, func(s *site) bool { // the pods of a node that is rebooted stay there
			return !cmd.Reboot && slices.ContainsFunc(cmd.Nodes, func(t model.Target) bool { return t.Node == s.name })
		})
		launched, movers, around := c.movers(cmd, sites)
		for _, s := range launched {
			s.name = fmt.Sprintf("command %d: %s", i, s.name)
		}
		sites = append(sites, launched...)
		if why := replay(slices.Concat(sites, around), movers); why != "" {
			c.fail("the scheduler would not follow command %d: %s", i, why)
			return
		}
		bind(movers)
	}
}

// movers returns the sites that the command launches, who goes where, and what
// else could be there for all one knows.
func (c *checker) movers(cmd *model.Command, sites []*site) (launched []*site, movers []team, around []*site) {
	s := *c.s
	s.Nodes, s.Pending = nil, nil
	for _, target := range cmd.Nodes {
		s.Pending = append(s.Pending, c.node(target.Node).Movable...)
	}
	t := newChecker(&s, c.policy)
	launched, movers = t.layOut(&model.Plan{Launches: cmd.Launches})
	for _, m := range cmd.Moves {
		p := t.pending[m.Pod.Key()]
		i := slices.IndexFunc(movers, func(o team) bool { return o.pending == p && o.site.name == m.Node })
		if i < 0 {
			at := sites[slices.IndexFunc(sites, func(s *site) bool { return s.name == m.Node })]
			i, movers = len(movers), append(movers, team{pending: p, site: at})
		}
		movers[i].left++
	}
	if c.cautious { // a node can always be added, so that there are hosts and zones with none
		around = append(around, &site{name: "another host", blank: true})
		for _, m := range movers {
			for _, o := range (&adder{checker: t, pod: m.pending}).offered() {
				around = append(around, o.site)
			}
		}
	}
	return launched, movers, around
}

// bind sends all pods of the teams that are left to their sites.
func bind(teams []team) {
	for _, t := range teams {
		for range t.left {
			t.site.bind(t.pending)
		}
	}
}

func nodeNamed(s *model.Snapshot, name string) *model.Node {
	return &s.Nodes[slices.IndexFunc(s.Nodes, func(n model.Node) bool { return n.Name == name })]
}

// Merged returns the situation without the nodes that the plan removes, with
// their pods pending, and what the plan does as an answer to that. Launches for
// no one, which replace nodes of static pools, are left out; so are pods of
// buffers planned on drifted and unhealthy nodes that go, which give way.
func Merged(s *model.Snapshot, plan *model.Plan) (*model.Snapshot, *model.Plan) {
	out, all := *s, *plan
	out.Nodes, out.Pending = nil, slices.Clone(s.Pending)
	all.Placements, all.Launches, all.Commands = slices.Clone(plan.Placements), slices.Clone(plan.Launches), nil
	gone := map[string]bool{}
	waits := map[string]bool{} // pods that get a place only when their node is gone
	for _, cmd := range plan.Commands {
		for _, t := range cmd.Nodes {
			gone[t.Node] = !cmd.Reboot
			all.Placements = slices.DeleteFunc(all.Placements, func(p model.Placement) bool {
				return (cmd.Reason == model.Drifted || cmd.Reason == model.Unhealthy) && p.Pod.Buffer != "" && p.Node == t.Node
			})
			for _, m := range nodeNamed(s, t.Node).Movable {
				for _, p := range m.Pods {
					waits[p.Key()] = cmd.TerminateFirst != ""
				}
			}
		}
		for _, m := range cmd.Moves {
			delete(waits, m.Pod.Key())
		}
		all.Placements = append(all.Placements, cmd.Moves...)
		for _, l := range cmd.Launches {
			if len(l.Pods) > 0 {
				all.Launches, all.Cost = append(all.Launches, l), all.Cost+l.Price
			}
		}
	}
	for _, n := range s.Nodes {
		if gone[n.Name] {
			for _, m := range n.Movable {
				m.Pods = slices.DeleteFunc(slices.Clone(m.Pods), func(p model.Pod) bool { return waits[p.Key()] })
				if len(m.Pods) > 0 {
					out.Pending = append(out.Pending, m)
				}
			}
		} else {
			out.Nodes = append(out.Nodes, n)
		}
	}
	return &out, &all
}
