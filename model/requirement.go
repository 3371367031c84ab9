// SPDX-License-Identifier: Apache-2.0

package model

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// Operator relates a label to the values of a requirement. Gte and Lte are
// Karpenter's additions to the operators of Kubernetes.
type Operator string

// The eight operators a requirement may be written with.
const (
	In           Operator = "In"
	NotIn        Operator = "NotIn"
	Exists       Operator = "Exists"
	DoesNotExist Operator = "DoesNotExist"
	Gt           Operator = "Gt"
	Lt           Operator = "Lt"
	Gte          Operator = "Gte"
	Lte          Operator = "Lte"
)

// Bound is one end of an integer range; the zero value is "no bound".
type Bound struct {
	Set bool
	N   int64
}

// Requirement is the set of values a label may have: the listed Values, or,
// with Complement, every value but those; and within the inclusive integer
// bounds when one is set. Build one with NewRequirement.
type Requirement struct {
	Key        string
	Complement bool
	Values     []string // sorted, unique
	Gte, Lte   Bound
	MinValues  int // least number of distinct values the chosen types must span; 0 = no demand

	// Present says that the label must exist, where the other fields alone
	// would accept its absence: if values are only excluded, or if no value is
	// allowed, which then no node meets. Intersect sets it.
	Present bool
}

// NewRequirement builds the requirement "key op values". The values of Gt, Lt,
// Gte and Lte must hold one integer; text that is none allows nothing.
func NewRequirement(key string, op Operator, values ...string) Requirement {
	r := Requirement{Key: key}
	switch op {
	case In:
		r.Values = sortedSet(values)
	case NotIn:
		r.Complement, r.Values = true, sortedSet(values)
	case Exists:
		r.Complement = true
	case DoesNotExist:
	default:
		r = bounded(key, op, values)
	}
	return r
}

func bounded(key string, op Operator, values []string) Requirement {
	none := Requirement{Key: key, Present: true}
	if len(values) != 1 {
		return none
	}
	n, err := strconv.ParseInt(values[0], 10, 64)
	if err != nil {
		return none
	}
	r := Requirement{Key: key, Complement: true}
	switch {
	case op == Gt && n == math.MaxInt64:
		return none
	case n < 0, op == Lt && n == 0: // no label value is a negative number, and Kubernetes compares with none
		return none
	case op == Gt:
		r.Gte = Bound{true, n + 1}
	case op == Gte:
		r.Gte = Bound{true, n}
	case op == Lt:
		r.Lte = Bound{true, n - 1}
	case op == Lte:
		r.Lte = Bound{true, n}
	default:
		return none
	}
	return r
}

func sortedSet(values []string) []string {
	return slices.Compact(slices.Sorted(slices.Values(values)))
}

// Operator names the plainest operator that describes r. A requirement with
// bounds and no excluded values reads as Exists.
func (r Requirement) Operator() Operator {
	switch {
	case r.Complement && len(r.Values) > 0:
		return NotIn
	case r.Complement:
		return Exists
	case len(r.Values) > 0:
		return In
	}
	return DoesNotExist
}

// Has reports whether a label with this value satisfies r.
func (r Requirement) Has(value string) bool {
	_, listed := slices.BinarySearch(r.Values, value)
	return listed != r.Complement && r.within(value)
}

func (r Requirement) within(value string) bool {
	if !r.Gte.Set && !r.Lte.Set {
		return true
	}
	n, err := strconv.ParseInt(value, 10, 64)
	return err == nil && (!r.Gte.Set || n >= r.Gte.N) && (!r.Lte.Set || n <= r.Lte.N)
}

// AllowsAbsence reports whether a node without the label satisfies r.
func (r Requirement) AllowsAbsence() bool {
	op := r.Operator()
	return (op == NotIn || op == DoesNotExist) && !r.Present && !r.Gte.Set && !r.Lte.Set
}

// Number returns the first number from zero that r allows. A label that a NodePool
// asks for without naming values gets it.
func (r Requirement) Number() (string, bool) {
	if !r.Complement {
		return "", false
	}
	from := max(r.Gte.N, 0)
	for n := from; n <= from+int64(len(r.Values)); n++ { // one of these is left
		if value := strconv.FormatInt(n, 10); r.Has(value) {
			return value, true
		}
	}
	return "", false
}

// Intersect returns the requirement that both r and s demand.
func (r Requirement) Intersect(s Requirement) Requirement {
	out := Requirement{
		Key:        r.Key,
		Complement: r.Complement && s.Complement,
		Gte:        tighter(r.Gte, s.Gte, func(a, b int64) int64 { return max(a, b) }),
		Lte:        tighter(r.Lte, s.Lte, func(a, b int64) int64 { return min(a, b) }),
		MinValues:  max(r.MinValues, s.MinValues),
	}
	if contradict(out.Gte, out.Lte) {
		return Requirement{Key: r.Key, MinValues: out.MinValues, Present: true}
	}
	switch {
	case r.Complement && s.Complement:
		out.Values = sortedSet(slices.Concat(r.Values, s.Values))
	case r.Complement:
		out.Values = without(s.Values, r.Values)
	case s.Complement:
		out.Values = without(r.Values, s.Values)
	default:
		out.Values = common(r.Values, s.Values)
	}
	out.Values = slices.DeleteFunc(out.Values, func(v string) bool { return !out.within(v) })
	if !out.Complement {
		out.Gte, out.Lte = Bound{}, Bound{}
	}
	out.Present = out.AllowsAbsence() && !(r.AllowsAbsence() && s.AllowsAbsence())
	return out
}

// Intersects reports whether some value satisfies both r and s. Two complements
// always intersect, because no list excludes all values, unless every number up
// to an upper bound is excluded: other spellings of a number do not count.
func (r Requirement) Intersects(s Requirement) bool {
	gte := tighter(r.Gte, s.Gte, func(a, b int64) int64 { return max(a, b) })
	lte := tighter(r.Lte, s.Lte, func(a, b int64) int64 { return min(a, b) })
	if contradict(gte, lte) {
		return false
	}
	if r.Complement && s.Complement {
		return !lte.Set || anyNumber(gte, lte, slices.Concat(r.Values, s.Values))
	}
	concrete, other := r, s
	if concrete.Complement {
		concrete, other = s, r
	}
	return slices.ContainsFunc(concrete.Values, func(v string) bool { return other.Has(v) && concrete.within(v) })
}

// Within reports whether every value r allows also satisfies s, so that
// whatever the label turns out to be, s holds.
func (r Requirement) Within(s Requirement) bool {
	if !r.Complement {
		if len(r.Values) == 0 {
			return s.AllowsAbsence()
		}
		return !slices.ContainsFunc(r.Values, func(v string) bool { return !s.Has(v) })
	}
	if r.AllowsAbsence() && !s.AllowsAbsence() {
		return false
	}
	if !s.Complement || (s.Gte.Set && (!r.Gte.Set || r.Gte.N < s.Gte.N)) || (s.Lte.Set && (!r.Lte.Set || r.Lte.N > s.Lte.N)) {
		return false
	}
	return !slices.ContainsFunc(s.Values, func(v string) bool { return r.Has(v) })
}

// anyNumber reports whether some number within the bounds is not excluded.
func anyNumber(gte, lte Bound, excluded []string) bool {
	_, ok := Requirement{Complement: true, Values: sortedSet(excluded), Gte: gte, Lte: lte}.Number()
	return ok
}

func tighter(a, b Bound, pick func(a, b int64) int64) Bound {
	switch {
	case !a.Set:
		return b
	case !b.Set:
		return a
	}
	return Bound{true, pick(a.N, b.N)}
}

func contradict(gte, lte Bound) bool { return gte.Set && lte.Set && gte.N > lte.N }

func without(values, excluded []string) []string {
	return filter(values, func(v string) bool { _, found := slices.BinarySearch(excluded, v); return !found })
}

func common(a, b []string) []string {
	return filter(a, func(v string) bool { _, found := slices.BinarySearch(b, v); return found })
}

func filter(values []string, keep func(string) bool) []string {
	var out []string
	for _, v := range values {
		if keep(v) {
			out = append(out, v)
		}
	}
	return out
}

// shownValues is how many values String lists before it counts the rest.
const shownValues = 5

// String prints "key Op [a b …]" with bounds, minValues and Present behind it.
func (r Requirement) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s", r.Key, r.Operator())
	if n := len(r.Values); n > shownValues {
		fmt.Fprintf(&b, " [%s and %d others]", strings.Join(r.Values[:shownValues], " "), n-shownValues)
	} else if n > 0 {
		fmt.Fprintf(&b, " [%s]", strings.Join(r.Values, " "))
	}
	if r.Gte.Set {
		fmt.Fprintf(&b, " >=%d", r.Gte.N)
	}
	if r.Lte.Set {
		fmt.Fprintf(&b, " <=%d", r.Lte.N)
	}
	if r.MinValues > 0 {
		fmt.Fprintf(&b, " minValues %d", r.MinValues)
	}
	if r.Present {
		b.WriteString(" and Exists")
	}
	return b.String()
}
