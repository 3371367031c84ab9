// SPDX-License-Identifier: Apache-2.0

package model

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

// parse reads "key Op v1 v2", the way the tables below write requirements.
func parse(text string) Requirements {
	var out Requirements
	for part := range strings.SplitSeq(text, ";") {
		if f := strings.Fields(part); len(f) > 0 {
			out = out.And(NewRequirement(f[0], Operator(f[1]), f[2:]...))
		}
	}
	return out
}

// TestCompatible follows the examples of the requirements algebra: existing,
// incoming, and whether they get along.
func TestCompatible(t *testing.T) {
	for _, line := range strings.Split(strings.TrimSpace(`
		k Exists       | k DoesNotExist | no
		k DoesNotExist | k NotIn A      | yes
		k DoesNotExist | k Gt 1         | no
		k DoesNotExist | k DoesNotExist | yes
		k In A         | k NotIn A      | no
		k In A B       | k NotIn A      | yes
		k NotIn A      | k DoesNotExist | yes
		k NotIn A      | k NotIn B      | yes
		k In 9         | k Gt 9         | no
		k In 9         | k Gte 9        | yes
		k In 9         | k Lt 9         | no
		k In 9         | k Lte 9        | yes
		k Gt 1         | k Lt 1         | no
		k Gt 1         | k Lt 9         | yes
		k Gt 1         | k Lt 2         | no
		k In A         | k Gt 1         | no
		k In A         | k In B         | no
		k In A         | k In A B       | yes
		k Exists       | k In A         | yes
		k Exists       | k Gt 5         | yes
		k Gt 9223372036854775807 | k Exists | no
		k DoesNotExist | k Gt 9223372036854775807 | no
		k DoesNotExist | k In A; k In B           | no
		k DoesNotExist | k In A; k NotIn A        | no
		k DoesNotExist | k Exists; k NotIn A      | no
		k DoesNotExist | k Exists; k DoesNotExist | no
		k DoesNotExist | k Gt 1; k NotIn 5        | no
		k In B         | k Exists; k NotIn A      | yes
		               | k In A; k NotIn A        | no
		               | k Exists; k NotIn A      | no
		               | k Gt 1; k NotIn 5        | no
		               | k NotIn A      | yes
		               | k DoesNotExist | yes
		               | k In A         | no
		               | k Exists       | no
		               | w In A         | yes
		               | w Exists       | yes
	`), "\n") {
		f := strings.Split(strings.TrimSpace(line), "|")
		if len(f) == 2 { // an empty first column lost its space to TrimSpace
			f = append([]string{""}, f...)
		}
		got, ok := parse(f[0]).Compatible(parse(f[1]), NewLabelSet("w"))
		if want := strings.TrimSpace(f[2]) == "yes"; ok != want {
			t.Errorf("%s: got %v (%v)", strings.TrimSpace(line), ok, got)
		}
	}
}

func TestString(t *testing.T) {
	for text, want := range map[string]string{
		"k In b a":              "k In [a b]",
		"k NotIn a":             "k NotIn [a]",
		"k Exists":              "k Exists",
		"k DoesNotExist":        "k DoesNotExist",
		"k Gt 3; k Lte 9":       "k Exists >=4 <=9",
		"k In 1 2 3 4 5 6 7":    "k In [1 2 3 4 5 and 2 others]",
		"k In a b; k NotIn a":   "k In [b]",
		"k In 1 5 9; k Gt 4":    "k In [5 9]",
		"k Gt 5; k Lt 3":        "k DoesNotExist and Exists",
		"k Exists; k NotIn a":   "k NotIn [a] and Exists",
		"k Gt 5; k NotIn 7":     "k NotIn [7] >=6",
		"b In x; a In y":        "a In [y], b In [x]",
		LabelHostname + " In h": "",
	} {
		if got := parse(text).String(); got != want {
			t.Errorf("%s: got %q, want %q", text, got, want)
		}
	}
}

// TestRequirementWithEveryNumberExcluded covers bounds between which every number is excluded.
func TestRequirementWithEveryNumberExcluded(t *testing.T) {
	bounds := NewRequirement("k", Gte, "3").Intersect(NewRequirement("k", Lte, "4"))
	if bounds.Intersects(NewRequirement("k", NotIn, "3", "4")) || !bounds.Intersects(NewRequirement("k", NotIn, "3", "a")) {
		t.Error("3 to 4 without 3 and 4 is nothing, without 3 it is 4")
	}
	if below := NewRequirement("k", Lt, "1"); below.Intersects(NewRequirement("k", NotIn, "0")) {
		t.Error("no number is below 0")
	}
}

// TestRequirementsAgreeWithMembership checks on random requirements that the set operations agree with
// membership, value by value.
func TestRequirementsAgreeWithMembership(t *testing.T) {
	values := []string{"a", "b", "1", "2", "3", "7"}
	rng := rand.New(rand.NewPCG(1, 2))
	random := func() Requirement {
		ops := []Operator{In, NotIn, Exists, DoesNotExist, Gt, Lt, Gte, Lte}
		switch op := ops[rng.IntN(len(ops))]; op {
		case In, NotIn:
			return NewRequirement("k", op, values[rng.IntN(len(values))], values[rng.IntN(len(values))])
		case Gt, Lt, Gte, Lte:
			return NewRequirement("k", op, fmt.Sprint(rng.IntN(8)))
		default:
			return NewRequirement("k", op)
		}
	}
	for range 20_000 {
		a, b := random(), random()
		both := a.Intersect(b)
		if got, want := both.String(), b.Intersect(a).String(); got != want {
			t.Fatalf("%v ∩ %v is %s one way and %s the other", a, b, got, want)
		}
		for _, v := range values {
			if both.Has(v) != (a.Has(v) && b.Has(v)) {
				t.Fatalf("%v ∩ %v = %v is wrong about %s", a, b, both, v)
			}
			if both.Has(v) && !a.Intersects(b) {
				t.Fatalf("%v and %v share %s but do not intersect", a, b, v)
			}
			if a.Within(b) && a.Has(v) && !b.Has(v) {
				t.Fatalf("%v is within %v but only the first has %s", a, b, v)
			}
		}
	}
}

func TestTolerates(t *testing.T) {
	taint := Taint{Key: "dedicated", Value: "gpu", Effect: NoSchedule}
	for _, c := range []struct {
		toleration Toleration
		want       bool
	}{
		{Toleration{Key: "dedicated", Value: "gpu", Effect: NoSchedule}, true},
		{Toleration{Key: "dedicated", Value: "gpu"}, true},
		{Toleration{Key: "dedicated", Value: "gpu", Effect: NoExecute}, false},
		{Toleration{Key: "dedicated", Value: "cpu"}, false},
		{Toleration{Key: "dedicated", Exists: true}, true},
		{Toleration{Exists: true}, true},
		{Toleration{Exists: true, Effect: NoExecute}, false},
		{Toleration{}, false},
		{Toleration{Key: "other", Exists: true}, false},
	} {
		if got := c.toleration.Tolerates(taint); got != c.want {
			t.Errorf("%+v: got %v", c.toleration, got)
		}
	}
}

func TestFits(t *testing.T) {
	for _, c := range []struct {
		request, free Resources
		want          bool
	}{
		{Resources{100, 10}, Resources{100, 10}, true},
		{Resources{101}, Resources{100, 10}, false},
		{Resources{0, 0, 0, 0, 0, 0}, Resources{100}, true},  // spec 20/31: zero of an unknown resource
		{Resources{0, 0, 0, 0, 0, 1}, Resources{100}, false}, // spec 20/31: one of it
		{Resources{1}, Resources{5, -1}, false},
	} {
		if got := c.request.Fits(c.free); got != c.want {
			t.Errorf("%v in %v: got %v", c.request, c.free, got)
		}
	}
}
