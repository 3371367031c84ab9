// SPDX-License-Identifier: Apache-2.0

package pack

import (
	"cmp"
	"slices"
	"sync"

	"karpenter/model"
	"karpenter/solve/fit"
	"karpenter/solve/topology"
)

// Preferences are honored as long as the plan costs at most a little more
// than one that ignores them; those that cost most are abandoned first. They
// never leave a pod pending.

// Bounds of the search for what can be honored.
const (
	honourSteps = 4   // plans that are tried
	honourShare = 0.5 // of the budget that is left, for each of them
	hopeless    = 4   // a preference estimated to cost so many times what may be spent is not tried
)

// mostAlike is from how many pods alike on one node on it makes no difference
// that they would rather have one each.
const mostAlike = 64

// mostPreferences is how many preferred node affinity terms of a pod, heaviest
// first, are looked at.
const mostPreferences = 8

// inOwnWords gives a plan that honors preferences the verdicts of the one that
// ignores them. It leaves no more pods of any kind, so that there is one for
// each.
func inOwnWords(out, ignoring *outcome) *outcome {
	out.plan.Verdicts = nil
	for i, v := range ignoring.plan.Verdicts {
		if v.Pods = out.left[ignoring.kinds[i]]; len(v.Pods) > 0 {
			out.plan.Verdicts = append(out.plan.Verdicts, v)
		}
	}
	return out
}

// byWeight returns the positions of the terms that are preferences, heaviest
// first.
func byWeight(terms []model.PodTerm) []int {
	var out []int
	for i := range terms {
		if terms[i].Weight > 0 {
			out = append(out, i)
		}
	}
	slices.SortStableFunc(out, func(a, b int) int { return cmp.Compare(terms[b].Weight, terms[a].Weight) })
	return out
}

// share returns how many pods a rule among themselves lets share a node; 0 =
// any number.
func share(key string, selects *model.PodSelector, peer *model.Peer, most int) int {
	if key == model.LabelHostname && selects.Selects(peer) {
		return most
	}
	return 0
}

// granted returns the shape with a preferred node affinity as a demand. It is
// not among those the pod itself makes, by which the scheduler chooses the
// nodes that count for spread, and so stands with those of volumes.
func granted(s *model.Shape, w wish) *model.Shape {
	if w.list != inPreferences {
		return s
	}
	out := *s
	out.VolumeTerms = (&model.Shape{Terms: []model.Requirements{s.Preferences[w.at].Term}, VolumeTerms: s.VolumeTerms}).Alternatives()
	return &out
}

// relaxed counts the launches that span fewer values than their pool demands.
func relaxed(p *model.Plan) int {
	n := 0
	for i := range p.Launches {
		if len(p.Launches[i].MinValues) > 0 {
			n++
		}
	}
	return n
}

// honour returns the plan that honors as many preferences as the policy lets
// it, given the one that ignores them. First it is tried to honor all of them to
// the letter, then as far as the nodes go that are needed anyway.
func honour(q *problem, ignoring *outcome) *outcome {
	wishes := preferences(ignoring.draft)
	strictly := slices.ContainsFunc(wishes, func(w wish) bool { return w.most > w.strict })
	for range honourSteps {
		if q.budget.Spent() {
			break
		}
		spare := q.spare(wishes, ignoring.plan)
		most := ignoring.plan.Cost + max(spare, model.Price(float64(ignoring.plan.Cost)*q.policy.NodeCountPremium)) // which has any number of nodes
		wishes = slices.DeleteFunc(wishes, func(w wish) bool {
			return !strictly && (w.most >= mostAlike || w.cost > hopeless*float64(spare) && w.cost > 0)
		})
		if len(wishes) == 0 {
			break
		}
		x := buildWithPart(honourShare, q.grant(wishes, strictly, ignoring))
		if x.abandoned == whileWishing {
			strictly, wishes = false, cheapHalf(wishes)
			continue
		}
		kinds := deprived(x)
		var out *outcome
		var dear []string
		if len(kinds) == 0 {
			out = conclude(x)
			dear = q.overspent(wishes, out.plan, ignoring.plan)
			if standsUnwished(out.draft) && relaxed(out.plan) <= relaxed(ignoring.plan) && out.plan.Cost <= most && len(dear) == 0 {
				return inOwnWords(out, ignoring)
			}
		}
		switch {
		case strictly:
			strictly = false
		case len(kinds) > 0:
			wishes = without(wishes, kinds)
		case out.plan.Cost <= most && len(dear) > 0:
			wishes = q.cheapHalfIn(dear, wishes, out.plan)
		default:
			wishes = cheapHalf(wishes)
		}
	}
	return ignoring
}

// standsUnwished reports whether the scheduler, which does not know the wishes as
// rules, would follow the plan and leave pods where an earlier plan put them.
func standsUnwished(x *draft) bool {
	if len(x.earlier) == 0 {
		return true
	}
	hard, q := *x, *x.problem
	q.wishes, q.earlier = nil, nil
	hard.problem = &q
	moves, _ := repair{&hard}.recount()
	for i, n := range hard.topology.Admit(moves) {
		if n < moves[i].Pods {
			return false
		}
	}
	return true
}

// preferences returns the wishes that could be met by themselves, those first
// that are estimated to cost most. A lighter one that a heavier one of the same
// pods excludes is none of them.
func preferences(x *draft) []wish {
	var out []wish
	nodes := nodesUsed(x)
	for kind := range x.snapshot.Pending {
		p := &x.snapshot.Pending[kind]
		if len(p.Shape.Refused) > 0 || len(p.Pods) == 0 {
			continue
		}
		if x.budget.Spent() {
			break
		}
		have := *p.Shape
		least := sync.OnceValue(func() float64 { return x.leastPrice(p.Shape, 0) })
		now := least // what a pod costs at least with what is granted
		grant := func(w wish) {
			with, cost := &have, now
			if w.list == inPreferences {
				with = granted(&have, w)
				cost = func() float64 { return x.leastPrice(with, 0) }
			}
			price := cost()
			if price < 0 && !x.someTakes(x.nodes, with) {
				return
			}
			if w.strict > 0 {
				for w.most = w.strict; w.most < mostAlike && w.most*nodes < len(p.Pods) && x.leastPrice(with, w.most) > price*(1+x.policy.PreferencePremium); {
					w.most *= 2
				}
			}
			w.cost = max(price-least(), 0) * float64(len(p.Pods))
			out, have, now = append(out, w), *with, func() float64 { return price }
		}
		for i := range min(len(p.Shape.Preferences), mostPreferences) {
			grant(wish{kind: kind, list: inPreferences, at: i})
		}
		keys := topologyKeys(p.Shape)
		for i, s := range p.Shape.Spread {
			if s.Soft && x.tells(&keys, s.Key) {
				grant(wish{kind: kind, list: inSpread, at: i, strict: share(s.Key, &s.Select, &p.Peer, s.MaxSkew)})
			}
		}
		for _, i := range byWeight(p.Shape.PodTerms) {
			t := &p.Shape.PodTerms[i]
			if !x.tells(&keys, t.Key) {
				continue
			}
			if t.Anti {
				grant(wish{kind: kind, list: inPodTerms, at: i, strict: share(t.Key, &t.Select, &p.Peer, 1)})
			} else if x.anySelected(&t.Select) {
				grant(wish{kind: kind, list: inPodTerms, at: i})
			}
		}
	}
	slices.SortStableFunc(out, func(a, b wish) int {
		p, q := &x.snapshot.Pending[a.kind], &x.snapshot.Pending[b.kind]
		return cmp.Or(cmp.Compare(b.cost, a.cost), cmp.Compare(p.Shape.Key, q.Shape.Key), cmp.Compare(p.Pods[0].Key(), q.Pods[0].Key()))
	})
	return out
}

// topologyKeys returns the topology keys that the pods must be spread or together by.
func topologyKeys(s *model.Shape) []string {
	var out []string
	for i := range s.Spread {
		if !s.Spread[i].Soft {
			out = append(out, s.Spread[i].Key)
		}
	}
	for i := range s.PodTerms {
		if s.PodTerms[i].Weight == 0 {
			out = append(out, s.PodTerms[i].Key)
		}
	}
	return out
}

// tells adds a topology key to those that pods are to be placed by, and reports
// whether there are few enough combinations of domains to do so.
func (x *draft) tells(keys *[]string, key string) bool {
	if key == model.LabelHostname || slices.Contains(*keys, key) {
		return true
	}
	domains := 1
	for _, k := range append(*keys, key) {
		if k != model.LabelHostname {
			domains *= max(x.atlas.domains(k), 1)
		}
		if domains > mostPlaces {
			return false
		}
	}
	*keys = append(*keys, key)
	return true
}

// nodesUsed returns how many nodes get pods in the plan, at least one.
func nodesUsed(x *draft) int {
	sites, n := map[int]bool{}, 0
	for _, p := range x.placed {
		sites[p.site] = true
	}
	for i := range x.bins {
		n += x.bins[i].count
	}
	return max(n+len(sites), 1)
}

// anySelected reports whether the selector picks any pod that is to be placed or stays.
func (q *problem) anySelected(s *model.PodSelector) bool {
	pending := slices.ContainsFunc(q.snapshot.Pending, func(p model.Pending) bool { return s.Selects(&p.Peer) })
	return pending || len(q.memory.Selected(q.snapshot.Nodes, s)) > 0
}

// stepsPerAlternative is what it takes to find the offers for one of the terms of a shape.
const stepsPerAlternative = 512

// leastPrice returns the price of the least part of a new node that a pod of
// the shape takes, when at most so many share one; 0 = any number. It is -1 when
// none can be launched.
func (q *problem) leastPrice(s *model.Shape, most int) float64 {
	d := q.narrowed(q.catalogue.Once(s))
	if d.Offers.Empty() {
		d = q.narrowed(q.catalogue.Once(Soft(s)))
	}
	least := -1.0
	q.budget.Spend(len(q.catalogue.Offers) + stepsPerAlternative*len(s.Terms))
	for t := range q.catalogue.Types {
		row := &q.catalogue.Types[t]
		if !d.Offers.Any(row.Offers) {
			continue
		}
		room := fit.Room(row.Free, s.Requests, 1<<30)
		if most > 0 {
			room = min(room, most)
		}
		for o := row.Offers.From; o < row.Offers.To && room > 0; o++ {
			if price := float64(q.catalogue.Offers[o].Price) / float64(room); (least < 0 || price < least) && d.Offers.Has(o) {
				least = price
			}
		}
	}
	return least
}

// grant returns the problem in which the wishes are rules. What the outcome that
// ignores them keeps on nodes of earlier plans stays there.
func (q *problem) grant(wishes []wish, strictly bool, ignoring *outcome) *problem {
	s := *q.snapshot
	s.Pending = slices.Clone(s.Pending)
	with := map[int]topology.Wishes{}
	for _, w := range wishes {
		most := w.most
		if strictly {
			most = w.strict
		}
		p := &s.Pending[w.kind]
		p.Shape = granted(p.Shape, w)
		rules := with[w.kind]
		switch w.list {
		case inSpread:
			spread := p.Shape.Spread[w.at]
			spread.Soft, spread.MaxSkew = false, max(spread.MaxSkew, most)
			rules.Spread = append(rules.Spread, spread)
		case inPodTerms:
			if term := p.Shape.PodTerms[w.at]; most > 1 {
				rules.Spread = append(rules.Spread, model.Spread{Key: term.Key, MaxSkew: most, Select: term.Select, AnyNode: true})
			} else {
				term.Weight = 0
				rules.PodTerms = append(rules.PodTerms, term)
			}
		}
		with[w.kind] = rules
	}
	base := *q
	base.wishes, base.earlier = with, append([]placement{}, ignoring.draft.keptStill()...)
	for _, pods := range ignoring.left {
		base.leaves = append(base.leaves, len(pods))
	}
	if q.trial != nil {
		base.trial = &trial{}
	}
	return newProblem(base, &s)
}
