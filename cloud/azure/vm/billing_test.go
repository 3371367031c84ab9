// SPDX-License-Identifier: Apache-2.0

package vm

import (
	"slices"
	"testing"
)

// TestBillsAreForgotten: what is known of a virtual machine goes with its claim.
func TestBillsAreForgotten(t *testing.T) {
	v := New(Config{})
	for _, name := range []string{"a", "b", "c"} {
		v.setBill(name, bill{added: name != "b"})
	}
	if got := v.unbilled([]string{"b", "c", "d"}); !slices.Equal(got, []string{"b", "d"}) {
		t.Errorf("without a bill are %q", got)
	}
	if len(v.bills) != 2 {
		t.Errorf("remembered are %v", v.bills)
	}
}
