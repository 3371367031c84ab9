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
	if some := part.Part(1); some.Late() || part.Late() {
		t.Error("a part is late as soon as it is spent")
	}
	late := b.Part(1).Part(1)
	if late.Spend(300); !late.Late() || !b.Late() || b.Spent() {
		t.Error("what is spent of a part is not seen to be late before it is returned")
	}
	if b.Spend(300); !part.Late() || !part.Part(1).Late() || !b.Late() {
		t.Error("parts do not see that the whole is overdrawn")
	}
	whole := New(100)
	some := whole.Part(1)
	own := some.Own(1)
	if own.Spend(150); whole.Late() {
		t.Error("what another goroutine spends counts before it is returned")
	}
	if some.Return(own); some.Left() != -50 || whole.Late() {
		t.Errorf("%d left", some.Left())
	}
	if some.Spend(60); !whole.Late() {
		t.Error("what was returned does not count")
	}
	if whole.Return(some); whole.Used() != 210 || !whole.Late() {
		t.Errorf("%d used", whole.Used())
	}
	var unlimited *Budget
	if unlimited.Spend(1 << 40); unlimited.Spent() {
		t.Error("a nil budget is unlimited")
	}
}
