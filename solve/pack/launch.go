package pack

import (
	"cmp"
	"slices"

	"karpenter/model"
	"karpenter/solve/fit"
)

// choice is a type row a launch may end up with, and its cheapest offer.
type choice struct {
	row   int
	offer int
	price model.Price
}

// render turns the planned bins into launches. Each launch lists every type
// of its pool that would do, so that the provider keeps its freedom, as far as
// the pool's limits allow whichever of them it becomes.
func (k *Packer) render(plan *model.Plan) {
	for _, b := range k.bins {
		demands := k.demandsOf(b)
		choices, offers := k.choices(b, demands)
		for n := range b.count {
			launch := k.launch(b, n, demands)
			listed := k.withinLimits(b, choices)
			k.list(&launch, listed, offers)
			plan.Launches = append(plan.Launches, launch)
			plan.Cost += launch.Price
		}
	}
}

// demandsOf is what a node of the bin must satisfy: what its pool demands and
// what each of its shapes does.
func (k *Packer) demandsOf(b bin) model.Requirements {
	out := k.pool(b.offer).Requirements
	for _, p := range b.take {
		out = out.And(k.demands[p.demand].At(b.offer)...)
	}
	return out.Without(model.LabelRegistered, model.LabelInitialized)
}

func (k *Packer) pool(offer int) *fit.Pool {
	return &k.catalogue.Pools[k.catalogue.Types[k.catalogue.Offers[offer].Type].Pool]
}

// choices returns the type rows of the bin's pool that could hold its pods,
// cheapest first, and the offers they could be bought as.
func (k *Packer) choices(b bin, demands model.Requirements) ([]choice, fit.Bits) {
	pool := k.pool(b.offer)
	offers := pool.Usable.And(k.catalogue.MatchAll(demands))
	need := k.podRequests(b)
	var out []choice
	for i := pool.Types.From; i < pool.Types.To; i++ {
		row := &k.catalogue.Types[i]
		if !need.Fits(row.Free) {
			continue
		}
		c := choice{row: i, offer: -1}
		for j := row.Offers.From; j < row.Offers.To; j++ {
			if price := k.catalogue.Offers[j].Price; offers.Has(j) && (c.offer < 0 || price < c.price) {
				c.offer, c.price = j, price
			}
		}
		if c.offer >= 0 {
			out = append(out, c)
		}
	}
	slices.SortStableFunc(out, func(a, b choice) int {
		return cmp.Or(cmp.Compare(a.price, b.price), cmp.Compare(k.catalogue.Types[a.row].Name, k.catalogue.Types[b.row].Name))
	})
	return out, offers
}

func (k *Packer) podRequests(b bin) model.Resources {
	var sum model.Resources
	for _, p := range b.take {
		sum = sum.Plus(k.demands[p.demand].Shape.Requests.Times(int64(p.pods)))
	}
	return sum
}

// withinLimits keeps the choices the pool can afford, reserving room for the
// largest of them in every limited resource.
func (k *Packer) withinLimits(b bin, choices []choice) []choice {
	pool := k.catalogue.Types[k.catalogue.Offers[b.offer].Type].Pool
	reserved := k.capacity(b.offer)
	var out []choice
	for _, c := range choices {
		if len(out) == k.policy.MaxTypes {
			break
		}
		if k.limits.raise(pool, reserved, k.catalogue.Types[c.row].Capacity) {
			reserved = reserved.Max(k.catalogue.Types[c.row].Capacity)
			out = append(out, c)
		}
	}
	return out
}

// launch names the pods of the n-th node of the bin.
func (k *Packer) launch(b bin, n int, demands model.Requirements) model.Launch {
	l := model.Launch{Pool: k.pool(b.offer).Name, Requirements: demands, Requests: k.podRequests(b)}
	for _, p := range b.take {
		l.Pods = append(l.Pods, p.chosen[n*p.pods:(n+1)*p.pods]...)
	}
	return l
}

// list fills in what the launch may be bought as.
func (k *Packer) list(l *model.Launch, choices []choice, offers fit.Bits) {
	daemon := k.catalogue.Types[choices[0].row].Daemon
	for _, c := range choices {
		row := &k.catalogue.Types[c.row]
		l.Types = append(l.Types, row.Name)
		daemon = daemon.Min(row.Daemon)
		for j := row.Offers.From; j < row.Offers.To; j++ {
			if ct := k.catalogue.Offers[j].CapacityType; offers.Has(j) && !slices.Contains(l.CapacityTypes, ct) {
				l.CapacityTypes = append(l.CapacityTypes, ct)
			}
		}
	}
	slices.Sort(l.CapacityTypes)
	l.Requests = l.Requests.Plus(daemon)
	o := &k.catalogue.Offers[choices[0].offer]
	l.Type, l.Zone, l.CapacityType, l.Price = l.Types[0], o.Zone, o.CapacityType, choices[0].price
}
