// SPDX-License-Identifier: Apache-2.0

package model_test

import (
	"slices"
	"testing"

	"karpenter/model"
)

// TestAxisBorrowedNames: a name that no one borrows any more gives its position
// away, names that were handed out do not change, and a name that is indexed
// stays where it is.
func TestAxisBorrowedNames(t *testing.T) {
	axis := model.NewAxis()
	standard := len(axis.Names())
	check := func(when string, want ...string) {
		t.Helper()
		if got := axis.Names()[standard:]; !slices.Equal(got, want) {
			t.Fatalf("%s: the names are %v, want %v", when, got, want)
		}
	}
	for _, name := range []string{"a", "b", "c", "c"} {
		axis.Borrow(name)
	}
	before := axis.Names()
	check("borrowed", "a", "b", "c")
	axis.Return("a")
	axis.Return("c")
	check("c is borrowed once more", "a", "b", "c")
	if at := axis.Borrow("d"); at != standard {
		t.Errorf("d is at %d, want the free position %d", at, standard)
	}
	check("a was replaced", "d", "b", "c")
	axis.Return("c")
	check("the end is free", "d", "b")
	if at := axis.Index("b"); at != standard+1 {
		t.Errorf("b moved to %d when it was indexed", at)
	}
	axis.Return("b")
	axis.Return("d")
	check("b stays", "d", "b")
	if at := axis.Borrow("e"); at != standard {
		t.Errorf("e is at %d, want the free position %d", at, standard)
	}
	axis.Borrow("f")
	check("e and f are new", "e", "b", "f")
	if want := []string{"a", "b", "c"}; !slices.Equal(before[standard:], want) {
		t.Errorf("names handed out before are %v now, want %v", before[standard:], want)
	}
	if _, ok := axis.Position("e"); ok {
		t.Error("a borrowed name has a position of its own")
	}
	axis.Return("cpu")
	if at, ok := axis.Position("cpu"); at != model.CPU || !ok {
		t.Error("cpu was given away")
	}
}
