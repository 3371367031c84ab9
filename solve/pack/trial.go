package pack

import (
	"cmp"
	"slices"

	"karpenter/model"
	"karpenter/solve/cover"
	"karpenter/solve/fit"
	"karpenter/solve/work"
)

// Trial is where pods would go, without a proof and without reasons.
type Trial struct {
	Moves    []model.Placement
	Launches []model.Launch
	Left     []model.Pod // that find no place
	Cost     model.Price // of Launches
	Dear     bool        // given up, as the pods left cost more than was asked about
	Late     bool        // given up when new nodes were looked for already

	packer *Packer
}

// Try places the pending pods of s as a plan would. It gives up when what is
// left of them after the nodes there are is worth more than most, or when
// anything is and most is less than zero; worth says what a pod of a pending
// entry costs at least where it is bought a node.
func Try(s *model.Snapshot, p model.Policy, m *fit.Memory, most model.Price, worth []float64, budget *work.Budget) *Trial {
	k := New(s, p, m, budget)
	k.bare = &bare{most: float64(most)*(1+1e-6) + 8, nothing: most < 0, worth: worth} // rounding must not stand in the way
	out := k.best()
	t := &Trial{
		Moves: out.plan.Placements, Launches: out.plan.Launches, Cost: out.plan.Cost, Dear: out.by.dear(), Late: k.bare.late, packer: out.by,
	}
	for i := range out.plan.Verdicts {
		t.Left = append(t.Left, out.plan.Verdicts[i].Pods...)
	}
	return t
}

// bare is how a Packer works that only tries.
type bare struct {
	most    float64
	nothing bool      // may be bought
	worth   []float64 // by kind
	dear    bool      // what is left costs more than most
	late    bool      // as the covering program of a tier says
}

// tooDear reports whether what is left costs too much to be tried.
func (k *Packer) tooDear() bool {
	if k.bare == nil || k.bare.worth == nil {
		return false
	}
	sum, left := 0.0, 0
	for _, d := range k.demands {
		sum, left = sum+k.bare.worth[d.kind]*float64(len(d.left)+len(d.stuck)), left+len(d.left)+len(d.stuck)
	}
	k.bare.dear = sum > k.bare.most || k.bare.nothing && left > 0
	return k.bare.dear
}

func (k *Packer) dear() bool { return k.bare != nil && k.bare.dear }

// Option is a type that a launch lists, with what it may cost: the offerings it
// may become, cheapest first.
type Option struct {
	Type   string
	Quotes []Quote
}

// Quote is one offering.
type Quote struct {
	CapacityType, Zone string
	Price              model.Price
}

// Options returns what the launch may become, in the order of its Types.
func (t *Trial) Options(launch int) []Option {
	k := t.packer
	bin := 0
	for at := k.bins[bin].count; at <= launch; at += k.bins[bin].count {
		bin++
	}
	offers := k.offersOf(k.bins[bin])
	pool := k.pool(k.bins[bin].offer)
	rows := map[string]*fit.TypeRow{}
	for i := pool.Types.From; i < pool.Types.To; i++ {
		rows[k.catalogue.Types[i].Name] = &k.catalogue.Types[i]
	}
	l := &t.Launches[launch]
	out := make([]Option, 0, len(l.Types))
	for _, name := range l.Types {
		o := Option{Type: name}
		for i := rows[name].Offers.From; i < rows[name].Offers.To; i++ {
			if c := k.catalogue.Offers[i]; offers.Has(i) && slices.Contains(l.CapacityTypes, c.CapacityType) {
				o.Quotes = append(o.Quotes, Quote{c.CapacityType, c.Zone, c.Price})
			}
		}
		slices.SortStableFunc(o.Quotes, func(a, b Quote) int { return cmp.Compare(a.Price, b.Price) })
		out = append(out, o)
	}
	return out
}

// Worth returns for each pending entry of s a price that no plan can beat for
// one of its pods, where all of them are bought new nodes: however pods are put
// together, a node costs no less than they add up to. Limits and rules between
// pods are not asked.
func Worth(s *model.Snapshot, p model.Policy, m *fit.Memory, budget *work.Budget) []float64 {
	k := New(s, p, m, budget)
	out := make([]float64, len(s.Pending))
	for tier := range k.tiers() {
		var open []*demand
		for _, d := range k.demands {
			if out[d.kind] == 0 && d.Offers.And(k.reserved).Empty() { // nothing is worth much that a reservation takes
				open = append(open, d)
			}
		}
		q := k.problem(open, tier)
		values := cover.Prove(&q.Problem, cover.Values(&q.Problem, cover.Unlimited(), k.budget), k.budget)
		for i, d := range q.demands {
			out[d.kind] = values[i]
		}
	}
	return out
}

// Takes reports whether the node has room for a pod of the shape, rules between
// pods not asked.
func Takes(n *fit.NodeRow, s *model.Shape) bool {
	return fit.Room(n.Free, s.Requests, 1) > 0 && alone(Soft(s), n, 1) > 0
}
