// SPDX-License-Identifier: Apache-2.0

package pack

import (
	"encoding/binary"
	"slices"
	"strconv"

	"karpenter/model"
	"karpenter/solve/fit"
)

// outlook knows what may become of new nodes: any offer of the types their
// launch lists, also those that cannot be had just now.
type outlook struct {
	*draft
	bins []int     // by site after those of the Snapshot
	at   []*future // by bin, of the draft as it was when pods were counted; nil = not asked for yet
}

func (x *draft) newOutlook(bins []int) *outlook {
	return &outlook{draft: x, bins: bins, at: make([]*future, len(x.bins))}
}

// of returns the future of a site.
func (l *outlook) of(site int) *future {
	i := l.bins[site-len(l.snapshot.Nodes)]
	if l.at[i] == nil {
		l.at[i] = l.known(&l.draft.bins[i])
	}
	return l.at[i]
}

// known returns the future of a bin, which is that of every bin with the same
// requests and for the same demands, under the same limits.
func (l *outlook) known(b *bin) *future {
	about := l.about(b)
	requests := l.podRequests(*b)
	name := slices.Clone(about)
	for _, v := range requests {
		name = binary.AppendVarint(name, v)
	}
	for i, r := range l.limits.pools[l.poolOf(b.offer)].resources {
		name = binary.AppendVarint(name, b.capacity.At(r))
		name = binary.AppendVarint(name, l.limits.pools[l.poolOf(b.offer)].left[i])
	}
	f, ok := l.futures.byNode[string(name)]
	if !ok {
		if len(l.futures.byNode) == mostFutures || l.futures.ways > mostWays {
			*l.futures = *newFutures()
		}
		f = l.look(b, requests, about)
		l.futures.byNode[string(name)] = f
	}
	return f
}

// about tells what a bin is for apart from others.
func (l *outlook) about(b *bin) []byte {
	name := binary.AppendUvarint(nil, uint64(l.poolOf(b.offer)))
	name = strconv.AppendQuote(name, l.reservation(b.offer))
	name = strconv.AppendBool(strconv.AppendQuote(name, b.zone), b.onDemand)
	name = append(name, b.within.Key()...)
	for _, t := range b.take {
		d := l.demands[t.demand]
		name = append(name, d.Constraints()...)
		name = binary.AppendUvarint(name, uint64(d.Under(b.offer)))
	}
	return name
}

// look works out the future of a bin, which is that of every bin about the same that
// fits the same types.
func (l *outlook) look(b *bin, requests model.Resources, about []byte) *future {
	pool := l.pool(b.offer)
	fits := fit.NewBits(len(l.catalogue.Types))
	for t := pool.Types.From; t < pool.Types.To; t++ {
		if row := &l.catalogue.Types[t]; requests.Fits(row.Free) && l.limits.covers(row.Pool, b.capacity, row.Capacity) && l.supplied(row, b.take) {
			fits.Set(t)
		}
	}
	name := string(about) + fits.Key()
	if f, ok := l.futures.equal[name]; ok {
		return f
	}
	asked := l.askedOf(*b)
	f := &future{
		pool: l.poolOf(b.offer), demands: l.demandsWith(*b, asked), ways: l.ways(b, asked, fits),
		labels: map[string][]model.Requirement{}, values: map[question][]string{}, meets: map[*model.Requirements][2]bool{},
	}
	l.futures.equal[name] = f
	l.futures.ways += f.ways.Count()
	return f
}

// ways returns the offers that a launch of the bin, of which this is asked, may become: of
// types it can list, of those that fit, in capacity types it asks for.
func (l *outlook) ways(b *bin, asked model.Requirements, fits fit.Bits) fit.OfferSet {
	pool := l.pool(b.offer)
	window := pool.Offers.Window()
	fitting, listed := window.Empty(), window.Empty()
	for t := range fits.All() {
		window.Add(fitting, l.catalogue.Types[t].Offers)
	}
	now, possible := l.offersWithin(window, *b), pool.Allowed.Part(window)
	now.Keep(fitting)
	for _, r := range asked {
		possible.Keep(window.Of(l.catalogue.Match(r)))
	}
	l.keepAlike(window, possible, b.offer)
	for _, r := range l.catalogue.Spelling(model.LabelCapacityType).Labels {
		if some := window.Of(l.catalogue.Match(r)); !now.Overlaps(some) {
			possible.Remove(some)
		}
	}
	for t := range fits.All() {
		if of := l.catalogue.Types[t].Offers; window.Any(now, of) {
			window.Add(listed, of)
		}
	}
	possible.Keep(listed)
	return fit.SetIn(window, possible, len(l.catalogue.Offers))
}

// match returns the offers that could meet the requirements.
func (l *outlook) match(alt *model.Requirements) *matching {
	m, ok := l.futures.matches[alt]
	if !ok {
		m = &matching{all: l.catalogue.MatchAll(*alt)}
		for _, r := range *alt {
			m.each = append(m.each, l.catalogue.Match(r))
		}
		l.futures.matches[alt] = m
	}
	return m
}

// stepsPerTerm is what it takes to see whether a new node can meet a node affinity term.
const stepsPerTerm = 512

// Meets is as the interface says.
func (l *outlook) Meets(site int, alternatives []model.Requirements) (some, all bool) {
	f := l.of(site)
	answer, ok := f.meets[&alternatives[0]]
	if !ok {
		some, all = l.meets(f, alternatives)
		answer = [2]bool{some, all}
		f.meets[&alternatives[0]] = answer
	}
	return answer[0], answer[1]
}

func (l *outlook) meets(f *future, alternatives []model.Requirements) (some, all bool) {
	var met []fit.Bits
	for i, alt := range alternatives {
		l.budget.Spend(stepsPerTerm)
		if _, ok := f.demands.Intersects(alt); !ok {
			continue
		}
		some = some || l.possible(f, &alternatives[i])
		open := slices.DeleteFunc(slices.Clone(alt), func(r model.Requirement) bool { return !l.catalogue.Open(f.pool, r.Key) })
		if _, ok := f.demands.Satisfies(open); ok {
			met = append(met, l.match(&alternatives[i]).all)
		}
	}
	l.budget.Spend(2 * len(met) * f.ways.Count())
	return some, len(met) > 0 && f.ways.Within(met...)
}

// possible reports whether a claim for the future may turn out to meet the
// requirements: a claim lists values for each label, not which of them go
// together. A label that the pool leaves open gets some value, but none that
// pods ask for by name.
func (l *outlook) possible(f *future, alt *model.Requirements) bool {
	for i, offers := range l.match(alt).each {
		if r := &(*alt)[i]; !f.ways.OverlapsBits(offers) || l.unnamed(f, r.Key) && named(r) {
			return false
		}
	}
	return true
}

// unnamed reports whether nodes of the future get some value of the label that no one asked for.
func (l *outlook) unnamed(f *future, key string) bool {
	own, _ := f.demands.Get(key)
	return own.Complement && !own.AllowsAbsence() && !l.snapshot.WellKnown.Has(key)
}

// named reports whether the requirement asks for values by name.
func named(r *model.Requirement) bool {
	return !r.Complement && len(r.Values) > 0 && !slices.ContainsFunc(r.Values, isNumber)
}

// isNumber reports whether a value may be one that is invented for an open label.
func isNumber(value string) bool {
	_, err := strconv.Atoi(value)
	return err == nil
}

// Values is as the interface says.
func (l *outlook) Values(site int, alternatives []model.Requirements, key string) []string {
	f, q := l.of(site), question{key: key}
	if alternatives != nil {
		q.alternatives = &alternatives[0]
	}
	values, ok := f.values[q]
	if !ok {
		values = l.values(f, alternatives, key)
		f.values[q] = values
	}
	return values
}

// labelsOf returns the values that nodes of the future can have of a label.
func (l *outlook) labelsOf(f *future, key string) []model.Requirement {
	labels, known := f.labels[key]
	if known {
		return labels
	}
	spelled := l.catalogue.Spelling(key)
	l.budget.Spend(f.ways.Count())
	seen := fit.NewBits(len(spelled.Labels))
	for o := range f.ways.All() {
		if i := spelled.Of[o]; i >= 0 {
			seen.Set(int(i))
		}
	}
	for i := range seen.All() {
		labels = append(labels, spelled.Labels[i])
	}
	f.labels[key] = labels
	return labels
}

func (l *outlook) values(f *future, alternatives []model.Requirements, key string) []string {
	own, _ := f.demands.Get(key)
	if n, ok := l.invented(own); ok {
		own = model.NewRequirement(key, model.In, n)
	}
	out, labels := l.futures.values[:0], l.labelsOf(f, key)
	look := func(demand model.Requirement) {
		l.budget.Spend(stepsPerTerm + len(labels))
		for _, r := range labels {
			if r.Complement {
				r = r.Intersect(demand)
			}
			if r.Complement {
				continue
			}
			for _, v := range r.Values {
				if r.Has(v) && demand.Has(v) {
					out = append(out, v)
				}
			}
		}
	}
	if alternatives == nil {
		look(own)
	}
	for i, alt := range alternatives {
		if _, ok := f.demands.Intersects(alt); !ok || !l.possible(f, &alternatives[i]) {
			continue
		}
		also, asks := alt.Get(key)
		if !asks && !own.Complement { // with this one, all are possible
			out = out[:0]
			look(own)
			break
		}
		look(own.Intersect(also))
	}
	l.futures.values = out
	return l.futures.list(out)
}
