package pack

import (
	"cmp"
	"slices"

	"karpenter/model"
	"karpenter/solve/fit"
)

// menu is what can be bought in a pool as one of some offers.
type menu struct {
	choices []choice // cheapest first
	types   []string // capacity types that occur, sorted; positions are the bits of choice.types
}

// choice is a type row a launch may end up with, and its cheapest offer.
type choice struct {
	row   int
	offer int
	price model.Price
	types uint64 // capacity types it can be bought as
}

// render turns the planned bins into launches. Each launch lists every type
// of its pool that would do, so that the provider keeps its freedom, as far as
// the pool's limits allow whichever of them it becomes.
func (k *Packer) render(plan *model.Plan) {
	planned := k.limits
	k.limits = planned.clone()
	defer func() { k.limits = planned }() // verdicts are about what is planned, not about what it may become
	menus := map[string]*menu{}
	for _, b := range k.bins {
		requests := k.podRequests(b)
		offers := k.offersOf(b)
		key := offers.Key()
		if menus[key] == nil {
			menus[key] = k.menu(b.offer, offers)
		}
		template := model.Launch{Pool: k.pool(b.offer).Name, Requirements: k.demandsOf(b), Requests: requests}
		if id := k.reservation(b.offer); id != "" {
			template.ReservationIDs = []string{id}
		}
		limited := len(k.pool(b.offer).Limits) > 0
		for n := range b.count {
			if n == 0 || limited {
				k.offer(&template, b, requests, menus[key])
			}
			launch := template
			for _, p := range b.take {
				launch.Pods = append(launch.Pods, p.chosen[n*p.pods:(n+1)*p.pods]...)
			}
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
	if r, ok := k.reservationLabel(b.offer); ok {
		out = out.And(r)
	}
	return out.Without(model.LabelRegistered, model.LabelInitialized)
}

// offersOf is where a node of the bin could be bought.
func (k *Packer) offersOf(b bin) fit.Bits {
	out := k.pool(b.offer).Usable
	for _, p := range b.take {
		out = out.And(k.demands[p.demand].OffersAt(b.offer))
	}
	return k.alike(b.offer, out)
}

func (k *Packer) pool(offer int) *fit.Pool {
	return &k.catalogue.Pools[k.poolOf(offer)]
}

// menu returns the type rows that can be bought as one of the offers in the
// pool of the given one.
func (k *Packer) menu(offer int, offers fit.Bits) *menu {
	pool := k.pool(offer)
	out := &menu{}
	for i := range k.catalogue.Offers[pool.Offers.From:pool.Offers.To] {
		if ct := k.catalogue.Offers[pool.Offers.From+i].CapacityType; !slices.Contains(out.types, ct) {
			out.types = append(out.types, ct)
		}
	}
	slices.Sort(out.types)
	for i := pool.Types.From; i < pool.Types.To; i++ {
		row := &k.catalogue.Types[i]
		c := choice{row: i, offer: -1}
		for j := row.Offers.From; j < row.Offers.To; j++ {
			if !offers.Has(j) {
				continue
			}
			o := &k.catalogue.Offers[j]
			c.types |= 1 << slices.Index(out.types, o.CapacityType)
			if c.offer < 0 || o.Price < c.price {
				c.offer, c.price = j, o.Price
			}
		}
		if c.offer >= 0 {
			out.choices = append(out.choices, c)
		}
	}
	slices.SortStableFunc(out.choices, func(a, b choice) int {
		return cmp.Or(cmp.Compare(a.price, b.price), cmp.Compare(k.catalogue.Types[a.row].Name, k.catalogue.Types[b.row].Name))
	})
	return out
}

func (k *Packer) podRequests(b bin) model.Resources {
	var sum model.Resources
	for _, p := range b.take {
		sum = sum.Plus(k.demands[p.demand].Shape.Requests.Times(int64(p.pods)))
	}
	return sum
}

// offer fills in what the launch of a node of the bin may be bought as.
func (k *Packer) offer(l *model.Launch, b bin, requests model.Resources, m *menu) {
	pool := k.poolOf(b.offer)
	if len(k.floors[pool]) == 0 {
		k.list(l, requests, k.withinLimits(b, requests, m.choices), m.types)
		return
	}
	var choices []choice
	choices, l.MinValues = k.listed(b, k.varietyOf(pool, k.offersOf(b), l.Requirements), requests)
	k.list(l, requests, choices, m.types)
}

// withinLimits keeps the choices that have room for the pods and that the pool
// can afford, reserving for the largest of them in every limited resource.
func (k *Packer) withinLimits(b bin, requests model.Resources, choices []choice) []choice {
	pool := k.poolOf(b.offer)
	limited := len(k.limits.pools[pool].resources) > 0
	reserved := b.capacity
	out := make([]choice, 0, min(len(choices), k.policy.MaxTypes))
	for _, c := range choices {
		row := &k.catalogue.Types[c.row]
		if len(out) == k.policy.MaxTypes {
			break
		}
		if !requests.Fits(row.Free) || limited && !k.limits.raise(pool, reserved, row.Capacity) {
			continue
		}
		if limited {
			reserved = reserved.Max(row.Capacity)
		}
		out = append(out, c)
	}
	return out
}

// list fills in what the launch may be bought as.
func (k *Packer) list(l *model.Launch, requests model.Resources, choices []choice, capacityTypes []string) {
	l.Types, l.CapacityTypes = make([]string, 0, len(choices)), nil
	daemon := k.catalogue.Types[choices[0].row].Daemon
	var types uint64
	for _, c := range choices {
		row := &k.catalogue.Types[c.row]
		l.Types = append(l.Types, row.Name)
		types |= c.types
		if !row.Daemon.Equal(daemon) {
			daemon = daemon.Min(row.Daemon)
		}
	}
	for i, ct := range capacityTypes {
		if types&(1<<i) != 0 {
			l.CapacityTypes = append(l.CapacityTypes, ct)
		}
	}
	l.Requests = requests.Plus(daemon)
	o := &k.catalogue.Offers[choices[0].offer]
	l.Type, l.Zone, l.CapacityType, l.Price = l.Types[0], o.Zone, o.CapacityType, choices[0].price
}

// poolOf returns the index of the pool that the offer is of.
func (k *Packer) poolOf(offer int) int { return k.catalogue.Types[k.catalogue.Offers[offer].Type].Pool }
