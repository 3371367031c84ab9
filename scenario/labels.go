// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"karpenter/model"
)

// aliases are the short names of common labels, the table of README.md.
func aliases() [][2]string {
	return [][2]string{
		{"zone", model.LabelZone},
		{"region", model.LabelRegion},
		{"type", model.LabelInstanceType},
		{"arch", model.LabelArch},
		{"os", model.LabelOS},
		{"ct", model.LabelCapacityType},
		{"host", model.LabelHostname},
		{"pool", model.LabelNodePool},
	}
}

func labelOf(a atom) string {
	if !a.literal {
		for _, pair := range aliases() {
			if pair[0] == a.text {
				return pair[1]
			}
		}
	}
	return a.text
}

func aliasOf(label string) string {
	for _, pair := range aliases() {
		if pair[1] == label {
			return pair[0]
		}
		if pair[0] == label {
			return strconv.Quote(label)
		}
	}
	return inner(label)
}

// parseRequirements reads "zone In [a b]; cpu Gt 4, team=x". The keyword any
// is the set that demands nothing.
func parseRequirements(value string) (model.Requirements, error) {
	atoms, err := atomize(value)
	if err != nil {
		return nil, err
	}
	return requirementsOf(atoms)
}

func requirementsOf(atoms []atom) (model.Requirements, error) {
	if isKeyword(atoms, keywordAny) {
		return nil, nil
	}
	var out model.Requirements
	for _, part := range split(atoms, ";,") {
		if len(part) == 0 {
			continue
		}
		r, err := requirementOf(part)
		if err != nil {
			return nil, err
		}
		out = out.And(r)
	}
	return out, nil
}

// parseTerms reads alternatives "zone=a | zone=b".
func parseTerms(value string) ([]model.Requirements, error) {
	atoms, err := atomize(value)
	if err != nil {
		return nil, err
	}
	var out []model.Requirements
	for _, part := range split(atoms, "|") {
		if len(part) == 0 {
			return nil, errors.New("an alternative is empty; write any for one that demands nothing")
		}
		rs, err := requirementsOf(part)
		if err != nil {
			return nil, err
		}
		out = append(out, rs)
	}
	return out, nil
}

func requirementOf(part []atom) (model.Requirement, error) {
	bad := func() (model.Requirement, error) {
		return model.Requirement{}, fmt.Errorf("invalid requirement %q; write key=value, key!=value, key In [a b], "+
			"key NotIn [a b], key Exists, key DoesNotExist, key Gt 4 (Gte, Lt, Lte)", show(part))
	}
	if part[0].sign != 0 || len(part) < 2 {
		return bad()
	}
	key, rest := labelOf(part[0]), part[1:]
	r := model.Requirement{Key: key, Complement: true}
	switch {
	case rest[0].sign == '=':
		v, n := valueAt(rest[1:])
		r, rest = model.NewRequirement(key, model.In, v), rest[1+n:]
	case rest[0].sign == '!' && len(rest) > 1 && rest[1].sign == '=':
		v, n := valueAt(rest[2:])
		r, rest = model.NewRequirement(key, model.NotIn, v), rest[2+n:]
	case rest[0].text == string(model.In), rest[0].text == string(model.NotIn):
		values, n, ok := bracketed(rest[1:])
		if !ok {
			return bad()
		}
		r, rest = model.NewRequirement(key, model.Operator(rest[0].text), values...), rest[1+n:]
	case rest[0].text == string(model.Exists):
		rest = rest[1:]
	case rest[0].text == string(model.DoesNotExist):
		r, rest = model.Requirement{Key: key}, rest[1:]
	}
	for ; len(rest) > 0; rest = rest[2:] {
		if len(rest) < 2 || !extend(&r, rest[0], rest[1]) {
			return bad()
		}
	}
	return r, nil
}

// valueAt reads the value behind an equals sign, which may be missing.
func valueAt(atoms []atom) (string, int) {
	if len(atoms) == 0 || atoms[0].sign != 0 {
		return "", 0
	}
	return atoms[0].text, 1
}

// bracketed reads [a b c], or one bare value.
func bracketed(atoms []atom) (values []string, used int, ok bool) {
	if len(atoms) > 0 && atoms[0].sign == 0 {
		return []string{atoms[0].text}, 1, true
	}
	if len(atoms) == 0 || atoms[0].sign != '[' {
		return nil, 0, false
	}
	for i, a := range atoms[1:] {
		switch a.sign {
		case 0:
			values = append(values, a.text)
		case ',':
		case ']':
			return values, i + 2, true
		default:
			return nil, 0, false
		}
	}
	return nil, 0, false
}

// extend adds a bound or minValues to r.
func extend(r *model.Requirement, word, number atom) bool {
	n, err := strconv.ParseInt(number.text, 10, 64)
	if err != nil || word.sign != 0 || number.sign != 0 {
		return false
	}
	switch word.text {
	case string(model.Gte):
		r.Gte = model.Bound{Set: true, N: n}
	case string(model.Lte):
		r.Lte = model.Bound{Set: true, N: n}
	case string(model.Gt):
		if n == math.MaxInt64 {
			*r = model.Requirement{Key: r.Key, MinValues: r.MinValues, Present: true}
			return true
		}
		r.Gte = model.Bound{Set: true, N: n + 1}
	case string(model.Lt):
		if n == math.MinInt64 {
			*r = model.Requirement{Key: r.Key, MinValues: r.MinValues, Present: true}
			return true
		}
		r.Lte = model.Bound{Set: true, N: n - 1}
	case "minValues":
		r.MinValues = int(n)
	default:
		return false
	}
	return true
}

// clauses writes each of rs in full.
func clauses(rs model.Requirements) []string {
	var out []string
	for _, r := range rs {
		if r.Present {
			out = append(out, aliasOf(r.Key)+" "+string(model.Exists))
		}
		out = append(out, clause(r))
	}
	return out
}

// clause writes r but for Present.
func clause(r model.Requirement) string {
	bounded := r.Gte.Set || r.Lte.Set
	if !r.Complement && len(r.Values) == 1 && !bounded && r.MinValues == 0 {
		return aliasOf(r.Key) + "=" + inner(r.Values[0])
	}
	var b strings.Builder
	b.WriteString(aliasOf(r.Key))
	switch op := r.Operator(); {
	case op == model.Exists && bounded:
	case len(r.Values) > 0:
		parts := make([]string, len(r.Values))
		for i, v := range r.Values {
			parts[i] = inner(v)
		}
		fmt.Fprintf(&b, " %s [%s]", op, strings.Join(parts, " "))
	default:
		fmt.Fprintf(&b, " %s", op)
	}
	if r.Gte.Set {
		fmt.Fprintf(&b, " Gte %d", r.Gte.N)
	}
	if r.Lte.Set {
		fmt.Fprintf(&b, " Lte %d", r.Lte.N)
	}
	if r.MinValues != 0 {
		fmt.Fprintf(&b, " minValues %d", r.MinValues)
	}
	return b.String()
}

// requirements writes rs as a value: with commas when it stays free of blanks.
func requirements(rs model.Requirements) string {
	if len(rs) == 0 {
		return keywordAny
	}
	parts := clauses(rs)
	if slices.ContainsFunc(parts, func(s string) bool { return strings.Contains(s, " ") }) {
		return strings.Join(parts, "; ")
	}
	return strings.Join(parts, ",")
}

// nested writes rs as a part of a value that has a use for semicolons itself.
func nested(rs model.Requirements) string {
	if len(rs) == 0 {
		return keywordAny
	}
	return strings.Join(clauses(rs), ", ")
}

func terms(ts []model.Requirements) string {
	parts := make([]string, len(ts))
	for i, t := range ts {
		parts[i] = requirements(t)
	}
	return strings.Join(parts, " | ")
}

// over returns defaults with the keys of explicit replaced by explicit.
func over(defaults, explicit model.Requirements) model.Requirements {
	var keys []string
	for _, r := range explicit {
		keys = append(keys, r.Key)
	}
	return defaults.Without(keys...).And(explicit...)
}

// beyond returns the explicit part with which over(defaults, part) is actual;
// ok is false when a default is missing from actual, so that none exists.
func beyond(defaults, actual model.Requirements) (part model.Requirements, ok bool) {
	for _, d := range defaults {
		if _, found := actual.Get(d.Key); !found {
			return nil, false
		}
	}
	for _, a := range actual {
		if d, found := defaults.Get(a.Key); !found || !sameRequirement(d, a) {
			part = append(part, a)
		}
	}
	return part, true
}

func sameRequirement(a, b model.Requirement) bool {
	return a.Key == b.Key && a.Complement == b.Complement && slices.Equal(a.Values, b.Values) &&
		a.Gte == b.Gte && a.Lte == b.Lte && a.MinValues == b.MinValues && a.Present == b.Present
}

// pinned returns the requirements of rs with exactly one value: what is known
// of a node's labels.
func pinned(rs model.Requirements) model.Requirements {
	var out model.Requirements
	for _, r := range rs {
		if !r.Complement && len(r.Values) == 1 {
			out = append(out, model.Requirement{Key: r.Key, Values: r.Values})
		}
	}
	return out
}
