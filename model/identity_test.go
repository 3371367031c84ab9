// SPDX-License-Identifier: Apache-2.0

package model_test

import (
	"strings"
	"testing"

	"karpenter/model"
	"karpenter/model/modeltest"
)

// names has one name for each element of Requests that modeltest fills in.
func names() []string { return model.NewAxis().Names() }

// TestShapeIdentityFields: shapes that differ in any field have different
// identities. A field that is new in Shape, or in a type that Shape uses, fails
// here until Identity has it.
func TestShapeIdentityFields(t *testing.T) {
	s := &model.Shape{}
	modeltest.Fill(s)
	was := s.Identity(names())
	seen := map[string]string{was: "the shape as it was"}
	for _, leaf := range modeltest.Leaves(s) {
		path := strings.Join(leaf.Path, " ")
		leaf.Change()
		text := s.Identity(names())
		other, known := seen[text]
		switch {
		case path == "Shape.Key":
			if text != was {
				t.Errorf("another key changes the identity: %s", text)
			}
		case known:
			t.Errorf("another %s makes the identity that of %s: %s", path, other, text)
		}
		seen[text] = path
		leaf.Undo()
	}
}

// TestShapeIdentityAxis: an identity does not depend on the order in which an
// axis came to know resources, nor on zeros.
func TestShapeIdentityAxis(t *testing.T) {
	identity := func(order ...string) string {
		axis := model.NewAxis()
		for _, name := range order {
			axis.Index(name)
		}
		requests := model.Resources{500, 1 << 30, 1}.With(axis.Index("example.com/a"), 2).With(axis.Index("example.com/b"), 3)
		return (&model.Shape{Requests: requests.With(axis.Index("example.com/c"), 0)}).Identity(axis.Names())
	}
	want := "cpu=500m memory=1Gi pods=1 example.com/a=2 example.com/b=3"
	for _, order := range [][]string{{}, {"example.com/b", "example.com/a"}, {"example.com/c", "x", "example.com/b"}} {
		if got := identity(order...); got != want {
			t.Errorf("on an axis that knew %v: got %q, want %q", order, got, want)
		}
	}
}

// TestShapeIdentityAmbiguity: values that look like the syntax of an identity
// don't make different shapes equal.
func TestShapeIdentityAmbiguity(t *testing.T) {
	taint := func(key, value string) model.Toleration { return model.Toleration{Key: key, Value: value} }
	in := func(values ...string) model.Requirements {
		return model.Requirements{model.NewRequirement("zone", model.In, values...)}
	}
	seen := map[string]model.Shape{}
	for _, s := range []model.Shape{
		{},
		{Tolerations: []model.Toleration{taint("a", "b c")}}, {Tolerations: []model.Toleration{taint("a b", "c")}},
		{Tolerations: []model.Toleration{taint("a", "")}}, {Tolerations: []model.Toleration{taint("", "a")}},
		{Tolerations: []model.Toleration{taint("a", `""`)}}, {Tolerations: []model.Toleration{taint("a", ")")}},
		{Selector: in("a", "b")}, {Selector: in("a b")}, {Selector: in(`a" "b`)}, {Selector: in("a", ")")},
		{Terms: []model.Requirements{in("a"), in("b")}}, {Terms: []model.Requirements{append(in("a"), in("b")...)}},
		{VolumeTerms: []model.Requirements{in("a"), in("b")}}, {Terms: []model.Requirements{in("a")}, VolumeTerms: []model.Requirements{in("b")}},
		{Refused: []string{"a", "b"}}, {Refused: []string{"a b"}}, {Refused: []string{"priority 1"}}, {Priority: 1},
		{Selector: model.Requirements{{Key: "zone", Gte: model.Bound{Set: true}}}}, {Selector: model.Requirements{{Key: "zone"}}},
		{Selector: model.Requirements{{Key: "zone", Lte: model.Bound{Set: true}}}},
	} {
		text := s.Identity(names())
		if other, known := seen[text]; known {
			t.Errorf("%+v and %+v are both %s", s, other, text)
		}
		seen[text] = s
	}
}
