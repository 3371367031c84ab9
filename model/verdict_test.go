// SPDX-License-Identifier: Apache-2.0

package model

import (
	"fmt"
	"strings"
	"testing"
)

// TestBrief has more pools than fit into an event: the one that would suit but
// for its limits comes first, and none is forgotten.
func TestBrief(t *testing.T) {
	v := Verdict{}
	for i := range 20 {
		v.Pools = append(v.Pools, PoolVerdict{Pool: fmt.Sprint("p", i), Steps: []Step{{"offerings", 40, "", false}, {"label team In [a]", 0, "", false}}})
	}
	v.Pools[7].Suits = true
	v.Pools[7].Steps[1].Constraint = "limits cpu=16"
	if got := v.Brief(10_000); got != v.String() {
		t.Errorf("shortened without need: %s", got)
	}
	const room = 200
	got := v.Brief(room)
	want := "nodepool p7: 40 offerings → 0 after limits cpu=16; nodepool p0: 40 offerings → 0 after label team In [a]; " +
		"nodepool p1: 40 offerings → 0 after label team In [a]; NodePools not shown: 17"
	if got != want || len(got) > room {
		t.Errorf("got %d bytes\n%s\nwant\n%s", len(got), got, want)
	}
	v.Pools[7].Steps[1].Constraint = strings.Repeat("x", 300)
	if got := v.Brief(room); !strings.HasPrefix(got, "nodepool p7") || !strings.HasSuffix(got, "NodePools not shown: 19") {
		t.Errorf("the first is not whole: %s", got)
	}
}
