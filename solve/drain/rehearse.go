// SPDX-License-Identifier: Apache-2.0

package drain

import (
	"cmp"
	"iter"
	"math"
	"math/rand/v2"
	"slices"

	"karpenter/model"
	"karpenter/solve/fit"
	"karpenter/solve/pack"
)

// The scheduler decides where pods go that lose their node, one by one as they
// come, and likes the emptiest node best: a small pod may take the room that was
// meant for a large one, which then needs a node that no one planned. What looks
// like a saving may end as a loss, and as the reason for the next command. So a
// command is rehearsed with the scheduler's preference, in several orders, and what
// it would have to launch then is held against it. The scheduler knows nothing of
// CapacityBuffers either: what it puts into the room they keep drives them out, and
// they need room elsewhere.

// stand is a node in a rehearsal.
type stand struct {
	row      fit.NodeRow // without what stands in for buffers
	standIns []*model.Pending
	free     model.Resources
	reached  bool // pods have come to it
}

// rehearsal is what all rehearsals of an offer share.
type rehearsal struct {
	*inquiry
	stands []stand
	takes  map[*model.Pending][]bool  // by stand
	likes  map[*model.Pending][]liked // best first
}

// liked is how a pod likes a stand.
type liked struct {
	stand int
	left  float64 // how empty it is when the pod has come
	harms bool    // the pod drives out pods of buffers
}

// likedMore orders by what the scheduler likes best. Of equally empty nodes it takes any:
// one that it drives pods of buffers out of is assumed.
func likedMore(a, b liked) int {
	switch {
	case a.left != b.left:
		return cmp.Compare(b.left, a.left)
	case a.harms && !b.harms:
		return -1
	case b.harms && !a.harms:
		return 1
	}
	return cmp.Compare(a.stand, b.stand)
}

// rehearsed returns the offer, rehearsed. If that finds it wanting and it launches nodes, it is
// made again with more room on them.
func (ask *inquiry) rehearsed(o *offer) *offer {
	if ask.rehearse(o) || len(o.command.Launches) == 0 {
		return o
	}
	if roomy := ask.weighAs(o.sites, amply); roomy.good() && ask.rehearse(roomy) {
		return roomy
	}
	return o
}

// rehearse finds a good offer wanting that would not save enough in the worst
// rehearsal, and reports whether it did not. Pods with rules between pods stay in the
// zones they are planned in, and away from nodes with pods that they must not share one
// with; otherwise such rules, ports and volumes are not asked: the risk may be larger.
func (ask *inquiry) rehearse(o *offer) bool {
	if !o.good() {
		return true
	}
	most := withRounding(o.most) - float64(o.command.Cost-o.command.Savings)
	switch risk := ask.risk(o, most); {
	case math.IsInf(risk, 1):
		o.cause, o.why = model.ByPlace, "its pods find places only if the scheduler puts each where it is planned"
	case risk > most:
		o.cause, o.why = model.ByPrice, "no cheaper place: the saving depends on where the scheduler puts each pod"
	}
	return o.good()
}

// risk returns what nodes would cost for the pods that find no place in the
// worst of the rehearsals of the offer, or in the first for which they cost more
// than most.
func (ask *inquiry) risk(o *offer, most float64) float64 {
	stands := ask.stands(o)
	takes := ask.taking(o, stands)
	for i := range stands {
		for _, p := range stands[i].standIns {
			if takes[p] == nil {
				takes[p] = ask.admitting(stands, p, nil)
			}
		}
	}
	r := &rehearsal{ask, stands, takes, map[*model.Pending][]liked{}}
	count := 0
	for i := range o.pending {
		count += len(o.pending[i].Pods)
	}
	for i := range o.pending { // of so many stands, the other pods leave one as it is
		r.likes[&o.pending[i]] = r.best(&o.pending[i], count)
	}
	worst := 0.0
	for order := range orders(o.pending) {
		if worst = max(worst, r.shortfall(order)); worst > most {
			break
		}
	}
	return worst
}

// best returns the stands that a pod of the entry likes best, at most so many.
func (r *rehearsal) best(p *model.Pending, most int) []liked {
	var out []liked
	r.work.Spend(standSteps * len(r.stands))
	for i := range r.stands {
		if !r.takes[p][i] {
			continue
		}
		l, ok := r.stands[i].likedBy(i, p)
		if !ok || len(out) == most && likedMore(out[most-1], l) < 0 {
			continue
		}
		if len(out) == most {
			out = out[:most-1]
		}
		at, _ := slices.BinarySearchFunc(out, l, likedMore)
		out = slices.Insert(out, at, l)
	}
	return out
}

// likedBy returns how a pod of the entry likes the stand as it is now, and whether it has room.
func (s *stand) likedBy(i int, p *model.Pending) (liked, bool) {
	if !p.Shape.Requests.Fits(s.free) {
		return liked{}, false
	}
	return liked{i, s.left(p.Shape.Requests), s.drivesOut(p.Shape.Requests)}, true
}

// taking returns by entry which of the stands, those of launches last, its pods
// may go to.
func (sc *scene) taking(o *offer, stands []stand) map[*model.Pending][]bool {
	planned := map[string]*model.Node{}
	launches := stands[len(stands)-len(o.command.Launches):]
	for i := range o.command.Moves {
		if site, known := sc.sites[o.command.Moves[i].Node]; known {
			planned[keyOf(&o.command.Moves[i].Pod)] = sc.stage[site].Node
		}
	}
	for i := range launches {
		for j := range o.command.Launches[i].Pods {
			planned[keyOf(&o.command.Launches[i].Pods[j])] = launches[i].row.Node
		}
	}
	out := map[*model.Pending][]bool{}
	for i := range o.pending {
		out[&o.pending[i]] = sc.admitting(stands, &o.pending[i], domains(&o.pending[i], planned))
	}
	return out
}

// admitting returns which of the stands, within the domains, a pod of the entry may
// go to.
func (sc *scene) admitting(stands []stand, p *model.Pending, domains map[string][]string) []bool {
	soft, out := pack.Soft(p.Shape), make([]bool, len(stands))
	apart := sc.memory.Apart(sc.s.Nodes, p.Shape, &p.Peer)
	for i := range stands {
		row := &stands[i].row
		out[i] = (row.Site >= len(apart) || !apart[row.Site]) && sc.within(row, domains) && row.Takes(soft)
	}
	return out
}

// domains returns by topology key, for those that rules between pods are about,
// the domains that the pods are planned in. Single nodes are not told apart.
func domains(p *model.Pending, planned map[string]*model.Node) map[string][]string {
	out := map[string][]string{}
	for _, s := range p.Shape.Spread {
		if !s.Soft && s.Key != model.LabelHostname {
			out[s.Key] = nil
		}
	}
	for _, t := range p.Shape.PodTerms {
		if t.Weight == 0 && t.Key != model.LabelHostname {
			out[t.Key] = nil
		}
	}
	for key := range out {
		for i := range p.Pods {
			if n := planned[keyOf(&p.Pods[i])]; n != nil {
				if domain, ok := n.Labels.Value(key); ok && !slices.Contains(out[key], domain) {
					out[key] = append(out[key], domain)
				}
			}
		}
	}
	return out
}

// within reports whether the node is in one of the domains of each key.
func (sc *scene) within(n *fit.NodeRow, domains map[string][]string) bool {
	for key, in := range domains {
		if d := sc.domain(n, key); !d.known || !slices.Contains(in, d.name) {
			return false
		}
	}
	return true
}

// stands returns the nodes that pods of the offer's nodes may go to, but those
// without room for any: the scheduler minds neither drift nor quiet.
func (sc *scene) stands(o *offer) []stand {
	if sc.stage == nil {
		sc.stage = make([]fit.NodeRow, len(sc.given.Nodes))
		for i := range sc.given.Nodes {
			sc.restage(i)
		}
	}
	var out []stand
	for i := range sc.stage {
		if sc.stage[i].Node != nil && !slices.Contains(o.sites, i) && (o.fits(sc.stage[i].Free) || sc.lodgers.fits(sc.stage[i].Free)) {
			out = append(out, stand{row: sc.stage[i], standIns: sc.lodgers.at[i], free: sc.stage[i].Free})
		}
	}
	for i := range o.command.Launches {
		l := &o.command.Launches[i]
		pool := &sc.s.Pools[sc.pools[l.Pool]]
		kind := pool.Types[slices.IndexFunc(pool.Types, func(t *model.InstanceType) bool { return t.Name == l.Type })]
		n := &model.Node{
			Name: "launch", Claim: "launch", Pool: l.Pool, Taints: pool.Taints, Capacity: kind.Capacity, Allocatable: kind.Allocatable, Devices: kind.Devices,
			Labels: kind.Requirements.And(l.Requirements...).And(model.LabelRequirements(map[string]string{
				model.LabelZone: l.Zone, model.LabelCapacityType: l.CapacityType, model.LabelInstanceType: l.Type, model.LabelNodePool: l.Pool,
			})...),
		}
		row := fit.NewNodeRow(n, len(sc.s.Nodes)+i, sc.s.Daemons, sc.memory.Book(&sc.s))
		out = append(out, stand{row: row, free: row.Free})
	}
	return out
}

// Beyond three orders that are always rehearsed, as many as these allow are drawn:
// at most so many, of no more pods together.
const (
	drawnOrders = 13
	drawnPods   = 200
)

// fits reports whether there is room for any of them.
func (l *lodgers) fits(free model.Resources) bool {
	return slices.ContainsFunc(l.shapes, func(s *model.Shape) bool { return s.Requests.Fits(free) })
}

// fits reports whether there is room for any pod of the offer's nodes.
func (o *offer) fits(free model.Resources) bool {
	return slices.ContainsFunc(o.pending, func(p model.Pending) bool { return p.Shape.Requests.Fits(free) })
}

// orders yields the entries in the orders their pods may come: the smallest first,
// the largest first, one of each in turn, and then any. The same entries come in
// the same orders. A slice is good until the next is asked for.
func orders(pending []model.Pending) iter.Seq[[]*model.Pending] {
	var bySize, order []*model.Pending
	for i := range pending {
		bySize = append(bySize, &pending[i])
	}
	slices.SortStableFunc(bySize, func(a, b *model.Pending) int {
		return cmp.Or(
			cmp.Compare(a.Shape.Requests.At(model.Memory), b.Shape.Requests.At(model.Memory)),
			cmp.Compare(a.Shape.Requests.At(model.CPU), b.Shape.Requests.At(model.CPU)))
	})
	for _, p := range bySize {
		for range p.Pods {
			order = append(order, p)
		}
	}
	return func(yield func([]*model.Pending) bool) {
		if !yield(order) || len(bySize) < 2 {
			return
		}
		slices.Reverse(order)
		if !yield(order) {
			return
		}
		order = inTurns(order[:0], bySize)
		if !yield(order) {
			return
		}
		rng := rand.New(rand.NewPCG(0, 0))
		for range min(drawnOrders, drawnPods/len(order)) {
			rng.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
			if !yield(order) {
				return
			}
		}
	}
}

// inTurns appends one pod of each entry, then a second of each, and so on.
func inTurns(order, entries []*model.Pending) []*model.Pending {
	for n := 0; ; n++ {
		before := len(order)
		for _, p := range entries {
			if n < len(p.Pods) {
				order = append(order, p)
			}
		}
		if len(order) == before {
			return order
		}
	}
}

// shortfall puts pods in the order on the emptiest node that takes each, and
// returns what nodes would cost at least for those that find none, and what the
// cheapest nodes cost for pods of buffers that they drive out: what a buffer needs is
// launched with nothing else. It is infinite when there is no such node.
func (r *rehearsal) shortfall(order []*model.Pending) float64 {
	for i := range r.stands {
		r.stands[i].free, r.stands[i].reached = r.stands[i].row.Free, false
	}
	least, worth := 0.0, 0.0
	var reached []int
	r.work.Spend(len(r.stands))
	for _, p := range order {
		best, found := r.choose(p, reached)
		if !found {
			least, worth = max(least, r.cheapestFor(p).price), worth+r.worth[p.Shape]
			continue
		}
		s := &r.stands[best]
		if !s.reached {
			s.reached, reached = true, append(reached, best)
		}
		s.free = s.free.Minus(p.Shape.Requests)
	}
	var again bill
	for _, p := range drivenOut(r.stands) {
		r.work.Spend(len(r.stands))
		i := 0
		for i < len(r.stands) && !(r.takes[p][i] && p.Shape.Requests.Fits(r.stands[i].free)) {
			i++
		}
		if i == len(r.stands) {
			again.add(p, r.cheapestFor(p))
			continue
		}
		r.stands[i].free = r.stands[i].free.Minus(p.Shape.Requests)
	}
	return max(least, worth) + again.total
}

// choose returns the stand that a pod of the entry likes best, now that pods have reached some.
func (r *rehearsal) choose(p *model.Pending, reached []int) (stand int, found bool) {
	var best liked
	for _, l := range r.likes[p] {
		if !r.stands[l.stand].reached {
			best, found = l, true
			break
		}
	}
	r.work.Spend(standSteps * (1 + len(reached)))
	for _, i := range reached {
		if !r.takes[p][i] {
			continue
		}
		if l, ok := r.stands[i].likedBy(i, p); ok && (!found || likedMore(l, best) < 0) {
			best, found = l, true
		}
	}
	return best.stand, found
}

// standSteps is what it takes to see whether a node takes a pod.
const standSteps = 3

// bill is the nodes that are launched for buffers in a rehearsal.
type bill struct {
	total float64
	nodes []bought
}

// add puts a pod on a node that is launched already, or on another one.
func (b *bill) add(p *model.Pending, c cheapest) {
	i := slices.IndexFunc(b.nodes, func(n bought) bool { return c.demand.Offers.Has(n.offer) && p.Shape.Requests.Fits(n.free) })
	if i < 0 {
		i = len(b.nodes)
		b.total += c.price
		b.nodes = append(b.nodes, c.bought)
	}
	b.nodes[i].free = b.nodes[i].free.Minus(p.Shape.Requests)
}

// drivesOut reports whether a pod leaves no room for all of the pods of buffers.
func (s *stand) drivesOut(requests model.Resources) bool {
	for _, p := range s.standIns {
		requests = requests.Plus(p.Shape.Requests)
	}
	return len(s.standIns) > 0 && !requests.Fits(s.free)
}

// drivenOut has the pods that stand in for buffers stay where there is still room
// for them, and returns the others.
func drivenOut(stands []stand) []*model.Pending {
	var out []*model.Pending
	for i := range stands {
		for _, p := range stands[i].standIns {
			if !p.Shape.Requests.Fits(stands[i].free) {
				out = append(out, p)
				continue
			}
			stands[i].free = stands[i].free.Minus(p.Shape.Requests)
		}
	}
	return out
}

// left is how empty the node is, in the scheduler's eyes, when a pod has come.
func (s *stand) left(requests model.Resources) float64 {
	sum := 0.0
	for _, r := range []int{model.CPU, model.Memory} {
		if has := s.row.Allocatable.At(r); has > 0 {
			sum += float64(s.free.At(r)-requests.At(r)) / float64(has)
		}
	}
	return sum
}
