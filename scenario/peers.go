// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"karpenter/model"
)

// Words of the part of the language that picks pods. inner quotes names that
// look like one.
const (
	wordOf      = "of"
	wordIn      = "in"
	wordWhere   = "where"
	wordNothing = "nothing"
	wordAnti    = "anti"
)

// items splits a value at semicolons and reads each part; none is no items.
func items[T any](value string, read func([]atom) (T, error)) ([]T, error) {
	atoms, err := atomize(value)
	if err != nil || isKeyword(atoms, keywordNone) {
		return nil, err
	}
	var out []T
	for _, part := range split(atoms, ";") {
		if len(part) == 0 {
			continue
		}
		v, err := read(part)
		if err != nil {
			return nil, err
		}
		out = append(out, v)
	}
	return out, nil
}

// each is items as a parser of an option.
func each[T any](read func([]atom) (T, error)) func(string) ([]T, error) {
	return func(value string) ([]T, error) { return items(value, read) }
}

func written[T any](vs []T, write func(T) string) string {
	parts := make([]string, len(vs))
	for i, v := range vs {
		parts[i] = write(v)
	}
	return strings.Join(parts, "; ")
}

// cutWord splits atoms around the first that is the word.
func cutWord(atoms []atom, word string) (before, after []atom, found bool) {
	for i := range atoms {
		if isKeyword(atoms[i:i+1], word) {
			return atoms[:i], atoms[i+1:], true
		}
	}
	return atoms, nil, false
}

// selectorOf reads "[nothing] app=web,tier Exists [in NAMESPACES]", where
// NAMESPACES is names, none, any, or names "where" requirements.
func selectorOf(atoms []atom) (model.PodSelector, error) {
	s := model.PodSelector{Namespaces: []string{defaultNamespace}}
	if len(atoms) > 0 && isKeyword(atoms[:1], wordNothing) {
		s.Nothing, atoms = true, atoms[1:]
	}
	labels, namespaces, scoped := cutWord(atoms, wordIn)
	if len(labels) == 0 && !s.Nothing {
		return s, errors.New("it says not which pods; write of app=web, or of any")
	}
	var err error
	if s.Labels, err = requirementsOf(labels); err != nil || !scoped {
		return s, err
	}
	s.Namespaces = nil
	listed, demands, where := cutWord(namespaces, wordWhere)
	switch {
	case where:
		s.ByNamespace = true
		if s.NamespaceLabels, err = requirementsOf(demands); err != nil {
			return s, err
		}
	case isKeyword(listed, keywordAny):
		s.ByNamespace = true
		return s, nil
	}
	if isKeyword(listed, keywordNone) {
		return s, nil
	}
	for _, a := range listed {
		if a.sign != 0 {
			return s, fmt.Errorf("%q are no namespaces; write in a b, in any, in none, or in where team=x", show(listed))
		}
		s.Namespaces = append(s.Namespaces, a.text)
	}
	slices.Sort(s.Namespaces)
	s.Namespaces = slices.Compact(s.Namespaces)
	return s, nil
}

func selector(s *model.PodSelector) string {
	var parts []string
	usual := !s.ByNamespace && len(s.Namespaces) == 1 && s.Namespaces[0] == defaultNamespace
	if s.Nothing {
		parts = append(parts, wordNothing)
	}
	if !s.Nothing || len(s.Labels) > 0 {
		parts = append(parts, nested(s.Labels))
	}
	switch {
	case usual:
		return strings.Join(parts, " ")
	case len(s.Namespaces) > 0:
		parts = append(parts, wordIn)
		for _, n := range s.Namespaces {
			parts = append(parts, inner(n))
		}
	case s.ByNamespace && len(s.NamespaceLabels) == 0:
		return strings.Join(append(parts, wordIn, keywordAny), " ")
	case s.ByNamespace:
		parts = append(parts, wordIn)
	default:
		return strings.Join(append(parts, wordIn, keywordNone), " ")
	}
	if s.ByNamespace {
		parts = append(parts, wordWhere, nested(s.NamespaceLabels))
	}
	return strings.Join(parts, " ")
}

// spreadOf reads "zone skew=1 min=3 soft any-node honor-taints of app=web".
func spreadOf(item []atom) (model.Spread, error) {
	s := model.Spread{MaxSkew: 1}
	head, picks, ok := cutWord(item, wordOf)
	if !ok || len(head) == 0 || head[0].sign != 0 {
		return s, fmt.Errorf("invalid spread %q; write zone skew=1 of app=web", show(item))
	}
	s.Key = labelOf(head[0])
	for rest := head[1:]; len(rest) > 0; {
		used := 1
		switch {
		case rest[0].text == "soft":
			s.Soft = true
		case rest[0].text == "any-node":
			s.AnyNode = true
		case rest[0].text == "honor-taints":
			s.HonorTaints = true
		default:
			n, err := numberAt(rest)
			switch {
			case err == nil && rest[0].text == "skew":
				s.MaxSkew = n
			case err == nil && rest[0].text == "min":
				s.MinDomains = n
			default:
				return s, fmt.Errorf("a spread has no %q; it has skew=1 min=3 soft any-node honor-taints, then of and a selector", show(rest))
			}
			used = 3
		}
		rest = rest[used:]
	}
	var err error
	s.Select, err = selectorOf(picks)
	return s, err
}

// numberAt reads the number of word=number.
func numberAt(atoms []atom) (int, error) {
	if len(atoms) < 3 || atoms[1].sign != '=' || atoms[2].sign != 0 {
		return 0, errors.New("no number")
	}
	return parseWhole(atoms[2].text)
}

func spread(s model.Spread) string {
	parts := []string{aliasOf(s.Key), "skew=" + strconv.Itoa(s.MaxSkew)}
	if s.MinDomains != 0 {
		parts = append(parts, "min="+strconv.Itoa(s.MinDomains))
	}
	for _, w := range []string{when(s.Soft, "soft"), when(s.AnyNode, "any-node"), when(s.HonorTaints, "honor-taints")} {
		if w != "" {
			parts = append(parts, w)
		}
	}
	return strings.Join(append(parts, wordOf, selector(&s.Select)), " ")
}

// weightAt reads "10:" in front of a preference.
func weightAt(item []atom) (weight int32, rest []atom, err error) {
	if len(item) < 2 || item[0].sign != 0 || item[1].sign != ':' {
		return 0, item, nil
	}
	weight, err = parseWhole32(item[0].text)
	return weight, item[2:], err
}

// termOf reads "zone of app=web", with a weight in front of a preference and
// with anti in front of the opposite.
func termOf(item []atom) (model.PodTerm, error) {
	weight, rest, err := weightAt(item)
	t := model.PodTerm{Weight: weight}
	if len(rest) > 0 && isKeyword(rest[:1], wordAnti) {
		t.Anti, rest = true, rest[1:]
	}
	key, picks, ok := cutWord(rest, wordOf)
	if err != nil || !ok || len(key) != 1 || key[0].sign != 0 {
		return t, fmt.Errorf("invalid term %q; write zone of app=web, or 10: zone of app=web for a preference", show(item))
	}
	t.Key = labelOf(key[0])
	t.Select, err = selectorOf(picks)
	return t, err
}

func antiTermOf(item []atom) (model.PodTerm, error) {
	t, err := termOf(item)
	t.Anti = true
	return t, err
}

func podTerm(t model.PodTerm) string {
	text := aliasOf(t.Key) + " " + wordOf + " " + selector(&t.Select)
	if t.Weight != 0 {
		return strconv.Itoa(int(t.Weight)) + ": " + text
	}
	return text
}

// eitherTerm writes a term that does not follow from its option.
func eitherTerm(t model.PodTerm) string {
	text := podTerm(t)
	if !t.Anti {
		return text
	}
	if weight, rest, ok := strings.Cut(text, ": "); ok && t.Weight != 0 {
		return weight + ": " + wordAnti + " " + rest
	}
	return wordAnti + " " + text
}

// podTerms writes terms as near= and anti=; where their order is another, all
// in near=.
func podTerms(terms []model.PodTerm) [][2]string {
	if len(terms) == 0 {
		return nil
	}
	first := slices.IndexFunc(terms, func(t model.PodTerm) bool { return t.Anti })
	if first < 0 {
		first = len(terms)
	}
	if slices.ContainsFunc(terms[first:], func(t model.PodTerm) bool { return !t.Anti }) {
		return [][2]string{{"near", written(terms, eitherTerm)}}
	}
	var out [][2]string
	if first > 0 {
		out = append(out, [2]string{"near", written(terms[:first], podTerm)})
	}
	if first < len(terms) {
		out = append(out, [2]string{"anti", written(terms[first:], podTerm)})
	}
	return out
}

// preferenceOf reads "10: zone=a, arch=arm64".
func preferenceOf(item []atom) (model.Preference, error) {
	weight, rest, err := weightAt(item)
	if err != nil || len(rest) == 0 || len(rest) == len(item) {
		return model.Preference{}, fmt.Errorf("invalid preference %q; write 10: zone=a", show(item))
	}
	rs, err := requirementsOf(rest)
	return model.Preference{Weight: weight, Term: rs}, err
}

func preference(p model.Preference) string {
	return strconv.Itoa(int(p.Weight)) + ": " + nested(p.Term)
}

// parseLabels reads "app=web,tier=db"; any is no labels.
func parseLabels(value string) ([]model.Label, error) {
	atoms, err := atomize(value)
	if err != nil {
		return nil, err
	}
	return labelsOf(atoms)
}

func labelsOf(atoms []atom) ([]model.Label, error) {
	rs, err := requirementsOf(atoms)
	if err != nil {
		return nil, err
	}
	var out []model.Label
	for _, r := range rs {
		if r.Complement || len(r.Values) != 1 || r.MinValues != 0 {
			return nil, fmt.Errorf("%q are no labels; write app=web,tier=db", show(atoms))
		}
		out = append(out, model.Label{Key: r.Key, Value: r.Values[0]})
	}
	return out, nil
}

func labels(ls []model.Label) string {
	if len(ls) == 0 {
		return keywordAny
	}
	parts := make([]string, len(ls))
	for i, l := range ls {
		parts[i] = aliasOf(l.Key) + "=" + inner(l.Value)
	}
	return strings.Join(parts, ",")
}

// residentOf reads "3 terminating app=web in kube-system where team=a anti
// host of app=web".
func residentOf(item []atom) (model.Resident, error) {
	r := model.Resident{Count: 1, Peer: model.Peer{Namespace: defaultNamespace}}
	bad := fmt.Errorf("%q are no pods of a node; write 3 app=web, or 1 app=db anti host of app=db", show(item))
	head, terms, anti := cutWord(item, wordAnti)
	if len(head) > 0 && head[0].sign == 0 && (len(head) == 1 || head[1].sign == 0) {
		n, err := parseWhole(head[0].text)
		if err == nil {
			r.Count, head = n, head[1:]
		}
	}
	if len(head) > 1 && isKeyword(head[:1], "terminating") {
		r.Terminating, head = true, head[1:]
	}
	own, home, ok := cutWord(head, wordIn)
	if len(own) == 0 {
		return r, bad
	}
	var err error
	if r.Labels, err = labelsOf(own); err != nil {
		return r, err
	}
	if ok {
		name, demands, where := cutWord(home, wordWhere)
		if len(name) != 1 || name[0].sign != 0 {
			return r, bad
		}
		r.Namespace = name[0].text
		if where {
			if r.NamespaceLabels, err = labelsOf(demands); err != nil {
				return r, err
			}
		}
	}
	for anti {
		var term []atom
		term, terms, anti = cutWord(terms, wordAnti)
		t, err := antiTermOf(term)
		if err != nil {
			return r, err
		}
		r.Anti = append(r.Anti, t)
	}
	return r, nil
}

func resident(r model.Resident) string {
	parts := []string{strconv.Itoa(r.Count)}
	if r.Terminating {
		parts = append(parts, "terminating")
	}
	parts = append(parts, labels(r.Labels))
	if r.Namespace != defaultNamespace || len(r.NamespaceLabels) > 0 {
		parts = append(parts, wordIn, inner(r.Namespace))
	}
	if len(r.NamespaceLabels) > 0 {
		parts = append(parts, wordWhere, labels(r.NamespaceLabels))
	}
	for _, t := range r.Anti {
		parts = append(parts, wordAnti, podTerm(t))
	}
	return strings.Join(parts, " ")
}

// asks reports whether the line has a selector that looks at pods.
func (d *directive) asks() bool {
	return slices.ContainsFunc(d.options, func(t token) bool {
		switch t.key {
		case "spread", "near", "anti":
			return d.word == "pods" || d.word == "daemonset"
		case "runs":
			atoms, err := atomize(t.value)
			_, _, found := cutWord(atoms, wordAnti)
			return err == nil && found
		}
		return false
	})
}

// asked reports whether the text of s will have such a line.
func asked(s *model.Snapshot) bool {
	asks := func(s *model.Shape) bool { return len(s.Spread) > 0 || len(s.PodTerms) > 0 }
	pods := func(p model.Pending) bool { return asks(p.Shape) }
	return slices.ContainsFunc(s.Pending, pods) ||
		slices.ContainsFunc(s.Daemons, func(d model.Daemon) bool { return asks(d.Shape) }) ||
		slices.ContainsFunc(s.Nodes, func(n model.Node) bool {
			return slices.ContainsFunc(n.Residents, func(r model.Resident) bool { return len(r.Anti) > 0 }) || slices.ContainsFunc(n.Movable, pods)
		})
}
