// SPDX-License-Identifier: Apache-2.0

package model

import (
	"slices"
	"strconv"
	"strings"
)

// Identity returns a text that is equal exactly for shapes that are equal in
// every field but Key. The names are those of the axis that Requests is on: the
// text has quantities by name, so it doesn't depend on how an axis numbers them.
//
// Plans depend on the order of these texts where nothing else tells pods apart,
// so changing them changes plans.
func (s *Shape) Identity(names []string) string {
	w := &identity{}
	w.resources(s.Requests, names)
	each(w, "select", s.Selector, w.requirement)
	each(w, "affinity", s.Terms, w.requirements)
	each(w, "prefer", s.Preferences, func(p Preference) {
		w.number(int64(p.Weight))
		w.requirements(p.Term)
	})
	each(w, "tolerate", s.Tolerations, w.toleration)
	if s.Priority != 0 {
		w.plain("priority")
		w.number(int64(s.Priority))
	}
	each(w, "spread", s.Spread, w.spread)
	each(w, "pods", s.PodTerms, func(t PodTerm) {
		w.text(t.Key)
		w.flags(t.Anti)
		w.number(int64(t.Weight))
		w.selector(&t.Select)
	})
	each(w, "ports", s.HostPorts, func(p HostPort) {
		w.number(int64(p.Port))
		w.text(p.Protocol)
		w.text(p.IP)
	})
	each(w, "volumes", s.Volumes, func(v Volumes) {
		w.text(v.Driver)
		w.number(int64(v.Own))
		each(w, "", v.Shared, w.text)
	})
	each(w, "volumes-in", s.VolumeTerms, w.requirements)
	each(w, "claims", s.Claims, w.claim)
	each(w, "devices-in", s.DeviceTerms, w.requirements)
	each(w, "group-in", s.GroupTerms, w.requirements)
	each(w, "refused", s.Refused, w.text)
	return w.String()
}

func (w *identity) claim(c DeviceClaim) {
	w.text(c.Name)
	w.text(c.Shared)
	each(w, "", c.Requests, func(r DeviceRequest) {
		w.text(r.Name)
		each(w, "", r.Ways, w.way)
		if r.Resource != "" {
			each(w, "resource", []string{r.Resource}, w.text)
		}
	})
	each(w, "", c.Constraints, func(c DeviceConstraint) {
		each(w, "", c.Requests, w.text)
		w.text(c.Match)
		w.text(c.Distinct)
	})
}

func (w *identity) way(a DeviceWay) {
	w.text(a.Name)
	w.text(a.Class)
	each(w, "", a.Selectors, w.text)
	w.flags(a.All, a.Admin)
	w.number(int64(a.Count))
	each(w, "", a.Tolerations, w.toleration)
	each(w, "", a.Takes, func(t DeviceAmount) {
		w.text(t.Name)
		w.number(t.Value)
	})
}

// identity writes words with a space between them. A part always has the same
// number of words or is in parentheses, and no text looks like a parenthesis, so
// different values have different texts.
type identity struct{ strings.Builder }

// plain writes a word that needs no quotes.
func (w *identity) plain(word string) {
	if w.Len() > 0 {
		w.WriteByte(' ')
	}
	w.WriteString(word)
}

func (w *identity) number(n int64) { w.plain(strconv.FormatInt(n, 10)) }

// text writes any string, in quotes where it could be taken for something else.
func (w *identity) text(s string) {
	ordinary := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '.' || r == '-' || r == '_' || r == '/'
	}
	if s == "" || strings.ContainsFunc(s, func(r rune) bool { return !ordinary(r) }) {
		s = strconv.Quote(s)
	}
	w.plain(s)
}

// flags writes a digit for each.
func (w *identity) flags(list ...bool) {
	digits := make([]byte, len(list))
	for i, set := range list {
		digits[i] = '0'
		if set {
			digits[i] = '1'
		}
	}
	w.plain(string(digits))
}

// each writes a list in parentheses, after its name. A list that has a name is
// left out if it is empty.
func each[T any](w *identity, name string, list []T, write func(T)) {
	if name != "" && len(list) == 0 {
		return
	}
	w.plain(name + "(")
	for _, v := range list {
		write(v)
	}
	w.plain(")")
}

// resources writes the quantities that are not zero: those that every axis
// numbers alike first, then by name.
func (w *identity) resources(r Resources, names []string) {
	order := make([]int, 0, len(r))
	for i, v := range r {
		if v != 0 {
			order = append(order, i)
		}
	}
	standard, _ := slices.BinarySearch(order, firstExtended)
	slices.SortFunc(order[standard:], func(a, b int) int { return strings.Compare(names[a], names[b]) })
	for _, i := range order {
		w.text(names[i])
		w.WriteString("=" + FormatQuantity(i, r[i]))
	}
}

func (w *identity) requirements(list Requirements) { each(w, "", list, w.requirement) }

func (w *identity) requirement(r Requirement) {
	w.text(r.Key)
	w.flags(r.Complement, r.Present)
	w.bound(r.Gte)
	w.bound(r.Lte)
	w.number(int64(r.MinValues))
	each(w, "", r.Values, w.text)
}

func (w *identity) bound(b Bound) {
	if !b.Set {
		w.plain("~")
		return
	}
	w.number(b.N)
}

func (w *identity) toleration(t Toleration) {
	w.text(t.Key)
	w.flags(t.Exists)
	w.text(string(t.Compare))
	w.text(t.Value)
	w.text(string(t.Effect))
}

func (w *identity) spread(s Spread) {
	w.text(s.Key)
	w.number(int64(s.MaxSkew))
	w.number(int64(s.MinDomains))
	w.flags(s.Soft, s.AnyNode, s.HonorTaints)
	w.selector(&s.Select)
}

func (w *identity) selector(s *PodSelector) {
	w.flags(s.Nothing, s.ByNamespace)
	each(w, "", s.Namespaces, w.text)
	w.requirements(s.NamespaceLabels)
	w.requirements(s.Labels)
}
