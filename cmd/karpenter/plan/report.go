// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"slices"
	"time"

	"karpenter/cmd/karpenter/explain"
	"karpenter/model"
)

// Version is of the shape of Report. It grows when a field changes its meaning
// or goes away; fields are added without.
const Version = 1

// Report is what would happen in one round of decisions. Dollars are per hour.
// Nodes that no NodeClaim manages count nowhere.
type Report struct {
	Version     int    `json:"version"`
	Time        string `json:"time"`        // of the situation, RFC 3339
	WouldChange bool   `json:"wouldChange"` // a node is launched or removed

	Changes []Change `json:"changes,omitempty"` // that were assumed, by NodePool
	Notes   []string `json:"notes,omitempty"`   // what the figures leave out

	Prices []string `json:"prices,omitempty"` // what they have besides instances, in words

	Before    Total  `json:"before"`
	Unchanged *Total `json:"unchanged,omitempty"` // after, if none of Changes were made
	After     Total  `json:"after"`
	Rest      *Rest  `json:"atRest,omitempty"` // where it leads, if that was asked
	Fresh     Total  `json:"fromScratch"`      // if all pods that may move were placed again
	Bound     Price  `json:"boundPerHour"`     // no nodes for the pods Fresh has placed cost less

	Launches    []Launch  `json:"launches"` // for pods that wait
	LaunchCost  Price     `json:"launchCostPerHour"`
	LaunchBound Price     `json:"launchBoundPerHour"` // no launches for those pods cost less
	Placements  []Place   `json:"placements"`         // of pods that wait, on nodes that are there or on their way
	Commands    []Command `json:"commands"`           // that take nodes away
	Evictions   int       `json:"evictions"`          // of pods, by all commands
	Pending     []Refusal `json:"pending"`            // pods that find no place
	Stays       []Stay    `json:"stays"`              // nodes that are kept, and why

	// Forgone is what pods that wait prefer and not all of them get, as it costs
	// too much. What each would cost, explain pod says.
	Forgone []explain.Forgone `json:"preferencesGivenUp,omitempty"`
	// Crowds are workloads and NodePools of which more is in one spot pool than is
	// asked for, as spreading them costs too much.
	Crowds []explain.Crowd `json:"crowds,omitempty"`
}

// Price is dollars per hour.
type Price float64

// Total is a number of nodes and their cost.
type Total struct {
	Nodes    int   `json:"nodes"`
	Cost     Price `json:"costPerHour"`
	Unpriced int   `json:"unpriced,omitempty"` // of the nodes, whose price is not known: it counts as 0
	Pending  int   `json:"pending"`            // pods without a place
}

// Launch is a node to be launched.
type Launch struct {
	explain.Launch
	PodNames []string `json:"podNames"` // namespace/name
}

// Place is pods that go to a node.
type Place struct {
	Node string   `json:"node"`
	Pods []string `json:"pods"` // namespace/name
}

// Command removes nodes together, once the nodes that it launches are ready.
type Command struct {
	Reason    string    `json:"reason"` // Empty, Drifted or Underutilized
	Nodes     []Leaving `json:"nodes"`
	Launches  []Launch  `json:"launches,omitempty"`
	Moves     []Place   `json:"moves,omitempty"` // of its pods to nodes that are there
	Cost      Price     `json:"costPerHour"`     // of Nodes
	Savings   Price     `json:"savingsPerHour"`  // negative when it costs more afterwards
	Evictions int       `json:"evictions"`
}

// Leaving is a node that is removed.
type Leaving struct {
	explain.Node
	Evictions int    `json:"evictions"`
	Why       string `json:"why,omitempty"` // it drifts, if one of the Changes is why
}

// Refusal is pods that stay pending for the same reasons.
type Refusal struct {
	Pods     []string       `json:"pods"` // namespace/name
	Requests string         `json:"requests"`
	Verdict  string         `json:"verdict"` // on one line
	Reason   string         `json:"reason,omitempty"`
	Pools    []explain.Pool `json:"nodePools,omitempty"`
}

// Stay is a node that is kept.
type Stay struct {
	Node    string           `json:"node"`
	Pool    string           `json:"nodePool"`
	Reasons []explain.Reason `json:"reasons"`
}

// Decider makes plans. Its functions are pure.
type Decider struct {
	Decide func(*model.Snapshot) *model.Plan
	Place  func(*model.Snapshot) *model.Plan // pending pods only
	ToRest bool                              // reports say where it leads
}

// Of returns what would happen in the situation.
func Of(s *model.Snapshot, d Decider) Report {
	p := d.Decide(s)
	r := Report{
		Version: Version, Time: s.Now.UTC().Format(time.RFC3339),
		Before: before(s), Launches: []Launch{}, Placements: placed(p.Placements),
		LaunchCost: price(p.Cost), LaunchBound: price(p.Bound), Commands: []Command{}, Pending: []Refusal{},
		Stays: stays(s, p), Notes: append(goingAway(s), static(s)...), Prices: extras(s),
		Forgone: explain.AllForgone(s, p), Crowds: explain.AllCrowds(p),
	}
	r.After = after(s, p)
	for i := range p.Launches {
		r.Launches = append(r.Launches, launch(s, &p.Launches[i]))
	}
	for i := range p.Commands {
		c := command(s, &p.Commands[i])
		r.Commands = append(r.Commands, c)
		r.Evictions += c.Evictions
	}
	for i := range p.Verdicts {
		r.Pending = append(r.Pending, refusal(s, &p.Verdicts[i]))
	}
	r.WouldChange = len(r.Launches) > 0 || len(r.Commands) > 0 || len(static(s)) > 0
	if d.ToRest {
		r.Rest, r.Notes = restOf(s, p, d), append(r.Notes, usedUp(s)...)
	}
	place := d.Place
	if len(s.Nodes) == 0 { // the plan is the one from scratch
		place = func(*model.Snapshot) *model.Plan { return p }
	}
	fresh := explain.OfCluster(s, place)
	r.Fresh = Total{Nodes: fresh.Fresh.Nodes, Cost: Price(fresh.Fresh.Cost), Pending: fresh.Fresh.Pending}
	r.Bound = Price(fresh.Bound)
	return r
}

func price(p model.Price) Price { return Price(p.Dollars()) }

// before counts what is there, and the pods that wait.
func before(s *model.Snapshot) Total {
	var t Total
	var cost model.Price
	for i := range s.Nodes {
		n := &s.Nodes[i]
		if n.Claim == "" {
			continue
		}
		t.Nodes++
		cost += n.Price
		if n.Price == 0 {
			t.Unpriced++
		}
	}
	for _, p := range s.Pending {
		t.Pending += len(p.Pods)
	}
	t.Cost = price(cost)
	return t
}

// after counts what is there once the plan is carried out, and nodes that are
// going away are gone.
func after(s *model.Snapshot, p *model.Plan) Total {
	var t Total
	cost := p.Cost
	t.Nodes = len(p.Launches)
	gone := map[string]bool{}
	for i := range p.Commands {
		c := &p.Commands[i]
		for _, target := range c.Nodes {
			gone[target.Node] = true
		}
		t.Nodes += len(c.Launches)
		for j := range c.Launches {
			cost += c.Launches[j].Price
		}
	}
	for i := range s.Nodes {
		n := &s.Nodes[i]
		if n.Claim == "" || n.Deleting || gone[n.Name] {
			continue
		}
		t.Nodes++
		cost += n.Price
		if n.Price == 0 {
			t.Unpriced++
		}
	}
	for i := range p.Verdicts {
		t.Pending += len(p.Verdicts[i].Pods)
	}
	t.Cost = price(cost)
	return t
}

func launch(s *model.Snapshot, l *model.Launch) Launch {
	return Launch{Launch: *explain.LaunchOf(s, l), PodNames: names(l.Pods)}
}

func names(pods []model.Pod) []string {
	out := make([]string, len(pods))
	for i, p := range pods {
		out[i] = p.Key()
	}
	slices.Sort(out)
	return out
}

// placed groups placements by node, in the order the nodes are met.
func placed(all []model.Placement) []Place {
	at := map[string]int{}
	out := []Place{}
	for _, p := range all {
		i, known := at[p.Node]
		if !known {
			i = len(out)
			at[p.Node] = i
			out = append(out, Place{Node: p.Node})
		}
		out[i].Pods = append(out[i].Pods, p.Pod.Key())
	}
	for _, p := range out {
		slices.Sort(p.Pods)
	}
	return out
}

func command(s *model.Snapshot, c *model.Command) Command {
	out := Command{Reason: string(c.Reason), Moves: placed(c.Moves), Cost: price(c.Cost), Savings: price(c.Savings)}
	for _, target := range c.Nodes {
		l := Leaving{Node: *explain.NodeOf(s, target.Node), Evictions: movable(s, target.Node)}
		out.Nodes = append(out.Nodes, l)
		out.Evictions += l.Evictions
	}
	for i := range c.Launches {
		out.Launches = append(out.Launches, launch(s, &c.Launches[i]))
	}
	return out
}

// movable counts the pods that are evicted when the node goes.
func movable(s *model.Snapshot, node string) int {
	n := 0
	i := slices.IndexFunc(s.Nodes, func(n model.Node) bool { return n.Name == node })
	if i < 0 {
		return 0
	}
	for _, p := range s.Nodes[i].Movable {
		n += len(p.Pods)
	}
	return n
}

func refusal(s *model.Snapshot, v *model.Verdict) Refusal {
	return Refusal{
		Pods: names(v.Pods), Requests: v.Shape.Requests.Format(s.Resources), Verdict: v.String(),
		Reason: v.Reason, Pools: explain.Refusals(v),
	}
}

// stays returns the nodes that are kept, with the reasons that there are.
func stays(s *model.Snapshot, p *model.Plan) []Stay {
	out := []Stay{}
	for i := range s.Nodes {
		n := &s.Nodes[i]
		if n.Claim == "" {
			continue
		}
		if a, _ := explain.OfNode(s, p, n.Name); a.Fate == explain.Stays {
			out = append(out, Stay{Node: n.Name, Pool: n.Pool, Reasons: append([]explain.Reason{}, a.Reasons...)})
		}
	}
	return out
}
