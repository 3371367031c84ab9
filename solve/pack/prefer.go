package pack

import (
	"cmp"
	"slices"
	"sync"

	"karpenter/model"
	"karpenter/solve/fit"
	"karpenter/solve/topology"
)

// Preferences are honoured as long as the plan costs at most a little more
// than one that ignores them; those that cost most are given up first. They
// never leave a pod pending.

// Bounds of the search for what can be honoured.
const (
	honourSteps = 3 // plans that are tried
	hopeless    = 4 // a preference estimated to cost so many times what may be spent is not tried
)

// wish is one preference of the pods of a kind.
type wish struct {
	kind int
	list int // which of the lists of the Shape it is in
	at   int // its position there
	most int // of a preference to share no node with others alike: how many do so after all
	cost float64
}

// mostAlike is from how many pods alike on one node on it makes no difference
// that they would rather have one each.
const mostAlike = 64

// mostPreferences is how many preferred node affinity terms of a pod, heaviest
// first, are looked at.
const mostPreferences = 8

// The lists of a Shape that hold preferences.
const (
	inPreferences = iota
	inSpread
	inPodTerms
)

// outcome is a plan, with what it takes to compare it to others.
type outcome struct {
	by    *Packer
	plan  *model.Plan
	kept  []placement
	left  [][]model.Pod // by kind
	kinds []int         // of the verdicts of the plan
}

// honour returns the plan that honours as many preferences as the policy lets
// it, given the one that ignores them.
func (k *Packer) honour(ignoring *outcome) *outcome {
	wishes := k.wishes()
	spare := float64(ignoring.plan.Cost) * k.policy.PreferencePremium
	wishes = slices.DeleteFunc(wishes, func(w wish) bool { return w.cost > hopeless*spare && w.cost > 0 })
	for range honourSteps {
		if len(wishes) == 0 {
			break
		}
		out := k.grant(wishes, ignoring.kept).outcome()
		switch kinds := worse(out, ignoring); {
		case len(kinds) > 0:
			wishes = without(wishes, kinds)
		case relaxed(out.plan) > relaxed(ignoring.plan):
			wishes = cheapHalf(wishes)
		case float64(out.plan.Cost) <= float64(ignoring.plan.Cost)+spare:
			return inOwnWords(out, ignoring)
		default:
			wishes = cheapHalf(wishes)
		}
	}
	return ignoring
}

// inOwnWords gives a plan that honours preferences the verdicts of the one that
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

// worse returns the kinds that have more pods pending than they need to.
func worse(out, than *outcome) []int {
	var kinds []int
	for kind := range out.left {
		if len(out.left[kind]) > len(than.left[kind]) {
			kinds = append(kinds, kind)
		}
	}
	return kinds
}

// without drops the wishes of the kinds; where they have none, what others wish
// of other pods.
func without(wishes []wish, kinds []int) []wish {
	out := slices.DeleteFunc(slices.Clone(wishes), func(w wish) bool { return slices.Contains(kinds, w.kind) })
	if len(out) == len(wishes) {
		out = slices.DeleteFunc(out, func(w wish) bool { return w.list != inPreferences })
	}
	if len(out) == len(wishes) {
		return nil
	}
	return out
}

// cheapHalf drops the wishes that cost most until at most half the cost, and
// not all of them, are left.
func cheapHalf(wishes []wish) []wish {
	total, left := 0.0, 0.0
	for _, w := range wishes {
		total += w.cost
	}
	if total == 0 {
		return wishes[(len(wishes)+1)/2:]
	}
	for i := len(wishes) - 1; i > 0; i-- {
		if left += wishes[i].cost; left > total/2 {
			return wishes[i+1:]
		}
	}
	return wishes[1:]
}

// wishes returns the preferences that could be met by themselves, those first
// that are estimated to cost most. A lighter one that a heavier one of the same
// pods excludes is none of them.
func (k *Packer) wishes() []wish {
	var out []wish
	for kind := range k.snapshot.Pending {
		p := &k.snapshot.Pending[kind]
		if len(p.Shape.Refused) > 0 || len(p.Pods) == 0 {
			continue
		}
		have := *p.Shape
		least := sync.OnceValue(func() float64 { return k.leastPrice(p.Shape, 0) })
		grant := func(w wish) {
			price := k.leastPrice(granted(&have, w), w.most)
			for ; w.most > 0 && w.most < mostAlike && price > least()*(1+k.policy.PreferencePremium); w.most *= 2 {
				price = k.leastPrice(&have, 2*w.most)
			}
			with := granted(&have, w)
			if w.most >= mostAlike || price < 0 && !k.someNodeTakes(with) {
				return
			}
			w.cost = max(price-least(), 0) * float64(len(p.Pods))
			out, have = append(out, w), *with
		}
		for i := range min(len(p.Shape.Preferences), mostPreferences) {
			grant(wish{kind: kind, list: inPreferences, at: i})
		}
		for i, s := range p.Shape.Spread {
			if s.Soft {
				grant(wish{kind: kind, list: inSpread, at: i, most: share(s.Key, &s.Select, &p.Peer, s.MaxSkew)})
			}
		}
		for _, i := range byWeight(p.Shape.PodTerms) {
			if t := &p.Shape.PodTerms[i]; t.Anti {
				grant(wish{kind: kind, list: inPodTerms, at: i, most: share(t.Key, &t.Select, &p.Peer, 1)})
			} else if k.anySelected(&t.Select) {
				grant(wish{kind: kind, list: inPodTerms, at: i})
			}
		}
	}
	slices.SortStableFunc(out, func(a, b wish) int {
		p, q := &k.snapshot.Pending[a.kind], &k.snapshot.Pending[b.kind]
		return cmp.Or(cmp.Compare(b.cost, a.cost), cmp.Compare(p.Shape.Key, q.Shape.Key), cmp.Compare(p.Pods[0].Key(), q.Pods[0].Key()))
	})
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

// anySelected reports whether the selector picks any pod there is.
func (k *Packer) anySelected(s *model.PodSelector) bool {
	if slices.ContainsFunc(k.snapshot.Pending, func(p model.Pending) bool { return s.Selects(&p.Peer) }) {
		return true
	}
	return slices.ContainsFunc(k.snapshot.Nodes, func(n model.Node) bool {
		return slices.ContainsFunc(n.Residents, func(r model.Resident) bool { return !r.Terminating && s.Selects(&r.Peer) })
	})
}

// leastPrice returns the price of the least part of a new node that a pod of
// the shape takes, when at most so many share one; -1 when none can be bought.
func (k *Packer) leastPrice(s *model.Shape, most int) float64 {
	d := k.compile(model.Pending{Shape: s})
	if d.Offers.Empty() {
		d = k.compile(model.Pending{Shape: Soft(s)})
	}
	least := -1.0
	for o := range d.Offers.All() {
		room := fit.Room(k.catalogue.Types[k.catalogue.Offers[o].Type].Free, s.Requests, 1<<30)
		if most > 0 {
			room = min(room, most)
		}
		if room == 0 {
			continue
		}
		if price := float64(k.catalogue.Offers[o].Price) / float64(room); least < 0 || price < least {
			least = price
		}
	}
	return least
}

func (k *Packer) someNodeTakes(s *model.Shape) bool {
	return slices.ContainsFunc(k.nodes, func(n fit.NodeRow) bool { return fit.Room(n.Free, s.Requests, 1) > 0 && n.Takes(Soft(s)) })
}

// grant returns a Packer to which the wishes are rules. What is kept on nodes
// of earlier plans stays there.
func (k *Packer) grant(wishes []wish, kept []placement) *Packer {
	s := *k.snapshot
	s.Pending = slices.Clone(s.Pending)
	with := map[int]topology.Wishes{}
	for _, w := range wishes {
		p := &s.Pending[w.kind]
		p.Shape = granted(p.Shape, w)
		rules := with[w.kind]
		switch w.list {
		case inSpread:
			spread := p.Shape.Spread[w.at]
			spread.Soft, spread.MaxSkew = false, max(spread.MaxSkew, w.most)
			rules.Spread = append(rules.Spread, spread)
		case inPodTerms:
			if term := p.Shape.PodTerms[w.at]; w.most > 1 {
				rules.Spread = append(rules.Spread, model.Spread{Key: term.Key, MaxSkew: w.most, Select: term.Select, AnyNode: true})
			} else {
				term.Weight = 0
				rules.PodTerms = append(rules.PodTerms, term)
			}
		}
		with[w.kind] = rules
	}
	out := &Packer{snapshot: &s, policy: k.policy, memory: k.memory, learned: map[lesson]int{}, wary: map[int]bool{}, granted: with, budget: k.budget}
	out.kept = append([]placement{}, kept...)
	if k.bare != nil {
		out.bare = &bare{}
	}
	return out.again()
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

// liking returns the positions of the nodes in the order d looks at them: those
// first that meet more of its preferences.
func (k *Packer) liking(d *demand) []int {
	out := make([]int, len(k.nodes))
	for i := range out {
		out[i] = i
	}
	prefers := k.snapshot.Pending[d.kind].Shape.Preferences
	if len(prefers) == 0 || k.policy.IgnorePreferences {
		return out
	}
	score := make([]int32, len(k.nodes))
	for i := range k.nodes {
		for _, p := range prefers {
			if _, ok := k.nodes[i].Labels.Satisfies(p.Term); ok {
				score[i] += p.Weight
			}
		}
	}
	slices.SortStableFunc(out, func(a, b int) int { return cmp.Compare(score[b], score[a]) })
	return out
}
