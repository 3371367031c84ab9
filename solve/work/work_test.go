// SPDX-License-Identifier: Apache-2.0

package work

import "testing"

func TestBudget(t *testing.T) {
	b := New(100)
	part := b.Part(0.5)
	part.Spend(60) // the last piece of work that was begun may overdraw
	if !part.Spent() || b.Spent() {
		t.Error("a part is spent by itself")
	}
	b.Return(part)
	if b.Left() != 40 || b.Used() != 60 {
		t.Errorf("%d left and %d used, want 40 and 60", b.Left(), b.Used())
	}
	var unlimited *Budget
	if unlimited.Spend(1 << 40); unlimited.Spent() {
		t.Error("a nil budget is unlimited")
	}
}
