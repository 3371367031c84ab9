package topology

import (
	"slices"

	"karpenter/model"
)

// Place is the domains a node is in, by key; see State.Keys.
type Place [][]int

// Hostname stands for the hostname among keys: every node is a domain of it.
const Hostname = -1

// domains numbers the values of one key.
type domains struct {
	names []string
	index map[string]int
}

// Domain returns the number of a value of a key.
func (st *State) Domain(key int, value string) int {
	d := &st.domains[key]
	if i, ok := d.index[value]; ok {
		return i
	}
	if d.index == nil {
		d.index = map[string]int{}
	}
	d.index[value] = len(d.names)
	d.names = append(d.names, value)
	return len(d.names) - 1
}

// Value returns the value a domain of a key stands for.
func (st *State) Value(key, domain int) string { return st.domains[key].names[domain] }

// At returns the place of a site.
func (st *State) At(site int) Place { return st.sites[site] }

// placeOf returns the place of a site.
func (st *State) placeOf(site int) Place {
	p, labels := make(Place, len(st.Keys)), st.nodes[site].Labels
	if site >= st.own {
		for k, key := range st.Keys {
			for _, v := range st.outlook.Values(site, nil, key) {
				p[k] = append(p[k], st.Domain(k, v))
			}
		}
		return p
	}
	for k, key := range st.Keys {
		r, ok := labels.Get(key)
		if !ok || r.Complement {
			continue
		}
		for _, v := range r.Values {
			p[k] = append(p[k], st.Domain(k, v))
		}
	}
	return p
}

// key returns the number of a topology key, which it may add.
func (st *State) key(name string) int {
	if name == model.LabelHostname {
		return Hostname
	}
	if i := slices.Index(st.Keys, name); i >= 0 {
		return i
	}
	st.Keys = append(st.Keys, name)
	st.domains = append(st.domains, domains{})
	return len(st.Keys) - 1
}

// named reports whether the site has a hostname: the scheduler goes by the
// label, and a node that starts will have it.
func (st *State) named(site int) bool {
	if site >= st.own || !st.nodes[site].Registered {
		return true
	}
	_, ok := st.nodes[site].Labels.Get(model.LabelHostname)
	return ok
}

// filter says which sites a spread constraint looks at.
type filter struct {
	chosen      []model.Requirements // one of them must hold; nil = any node
	tolerations []model.Toleration
	honorTaints bool
	keys        []int // the node has a label for each
	named       bool  // and a hostname
	memo        []int8
}

func newFilter(s *model.Shape, spread *model.Spread, keys []int) *filter {
	f := &filter{tolerations: s.Tolerations, honorTaints: spread.HonorTaints, keys: keys}
	f.named = slices.ContainsFunc(s.Spread, func(other model.Spread) bool { return !other.Soft && other.Key == model.LabelHostname })
	demandsNothing := func(alt model.Requirements) bool { return len(alt) == 0 }
	if alternatives := s.Chosen(); !spread.AnyNode && !slices.ContainsFunc(alternatives, demandsNothing) {
		f.chosen = alternatives
	}
	return f
}

// settled reports whether the place has one domain for every key the filter
// asks about.
func (f *filter) settled(p Place) bool {
	return !slices.ContainsFunc(f.keys, func(k int) bool { return len(p[k]) != 1 })
}

// labelled reports whether the place has some domain for every key the filter
// asks about.
func (f *filter) labelled(p Place) bool {
	return !slices.ContainsFunc(f.keys, func(k int) bool { return len(p[k]) == 0 })
}

// tolerates reports whether the taints of a node let it count.
func (f *filter) tolerates(n *model.Node) bool {
	_, bad := model.Untolerated(firm(n.Taints), f.tolerations)
	return !f.honorTaints || !bad
}

// allows reports whether a node with these labels counts, whatever those turn
// out to be.
func (f *filter) allows(labels model.Requirements) bool {
	return f.chosen == nil || slices.ContainsFunc(f.chosen, func(alt model.Requirements) bool {
		_, ok := labels.Satisfies(alt)
		return ok
	})
}

// mayAllow reports whether labels that are not all settled may turn out such
// that the node counts.
func (f *filter) mayAllow(labels model.Requirements) bool {
	return f.chosen == nil || slices.ContainsFunc(f.chosen, func(alt model.Requirements) bool {
		_, ok := labels.Compatible(alt, nil)
		return ok
	})
}

// Whether a site counts for a filter.
const (
	unknown = iota
	never
	perhaps
	surely
)

// counts tells whether a site counts for the filter.
func (st *State) counts(f *filter, site int) int8 {
	if f.memo == nil {
		f.memo = make([]int8, len(st.nodes))
	}
	if f.memo[site] == unknown {
		f.memo[site] = st.look(f, site)
	}
	return f.memo[site]
}

func (st *State) look(f *filter, site int) int8 {
	n := &st.nodes[site]
	some, all := f.mayAllow(n.Labels), f.allows(n.Labels)
	if site >= st.own && f.chosen != nil {
		some, all = st.outlook.Meets(site, f.chosen)
	}
	switch {
	case !f.tolerates(n) || !some || f.named && !st.named(site):
		return never
	case all:
		return surely
	}
	return perhaps
}

// Outlook knows what may become of the nodes that a plan adds to those there
// are.
type Outlook interface {
	// Meets reports whether the site meets one of the alternatives in some and
	// in all of the ways it may turn out.
	Meets(site int, alternatives []model.Requirements) (some, all bool)
	// Values returns the values of a label the site may turn out with where it
	// meets one of the alternatives, or in any way when they are nil.
	Values(site int, alternatives []model.Requirements, key string) []string
}

// findDomains notes the domains that have a node which counts for the tally,
// or may have one.
func (st *State) findDomains(t *tally) {
	if t.key == Hostname {
		return
	}
	for site := range st.nodes {
		n, p := &st.nodes[site], st.sites[site]
		switch {
		case n.Deleting || !t.filter.labelled(p) || st.counts(t.filter, site) == never:
		case len(p[t.key]) == 1 && st.counts(t.filter, site) == surely:
			t.here = put(t.here, p[t.key][0], true)
		case site < st.own:
			for _, d := range p[t.key] {
				if t.filter.mayAllow(n.Labels.And(model.NewRequirement(st.Keys[t.key], model.In, st.Value(t.key, d)))) {
					t.maybe = put(t.maybe, d, append(value(t.maybe, d), site))
				}
			}
		default:
			for _, v := range st.outlook.Values(site, t.filter.chosen, st.Keys[t.key]) {
				d := st.Domain(t.key, v)
				t.maybe = put(t.maybe, d, append(value(t.maybe, d), site))
			}
		}
	}
}

// firm returns the taints that keep pods away for good.
func firm(taints []model.Taint) []model.Taint {
	return slices.DeleteFunc(slices.Clone(taints), func(t model.Taint) bool { return t.Effect == model.PreferNoSchedule })
}
