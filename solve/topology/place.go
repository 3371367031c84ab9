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

// placeOf returns the place of a node with these labels.
func (st *State) placeOf(labels model.Requirements) Place {
	p := make(Place, len(st.Keys))
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

// filter says which sites a spread constraint looks at.
type filter struct {
	chosen      []model.Requirements // one of them must hold; nil = any node
	tolerations []model.Toleration
	honorTaints bool
	keys        []int // the node has a label for each
	memo        []int8
}

func newFilter(s *model.Shape, spread *model.Spread, keys []int) *filter {
	f := &filter{tolerations: s.Tolerations, honorTaints: spread.HonorTaints, keys: keys}
	if !spread.AnyNode {
		f.chosen = s.Chosen()
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

// allows reports whether a node with these labels and taints counts.
func (f *filter) allows(n *model.Node) bool {
	if f.honorTaints {
		if _, bad := model.Untolerated(firm(n.Taints), f.tolerations); bad {
			return false
		}
	}
	if f.chosen == nil {
		return true
	}
	return slices.ContainsFunc(f.chosen, func(alt model.Requirements) bool {
		_, ok := n.Labels.Satisfies(alt)
		return ok
	})
}

// firm returns the taints that keep pods away for good.
func firm(taints []model.Taint) []model.Taint {
	return slices.DeleteFunc(slices.Clone(taints), func(t model.Taint) bool { return t.Effect == model.PreferNoSchedule })
}
