// SPDX-License-Identifier: Apache-2.0

package nodepool

import (
	"fmt"
	"sync"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	v1 "karpenter/api/v1"
)

func claimOf(pool *v1.NodePool, name string) *v1.NodeClaim {
	return &v1.NodeClaim{ObjectMeta: metav1.ObjectMeta{
		Name: name, UID: types.UID(name),
		Labels:          map[string]string{v1.NodePoolLabelKey: pool.Name},
		OwnerReferences: []metav1.OwnerReference{{Kind: "NodePool", Name: pool.Name, UID: pool.UID}},
	}}
}

// TestIsHealthy covers spec 30/51. There is no dry run to be tested: outcomes
// are noted first, and judged then.
func TestIsHealthy(t *testing.T) {
	tests := []struct {
		name     string
		outcomes []bool // oldest first
		want     bool
	}{
		{"spec 30/51 one success", []bool{true}, true},
		{"spec 30/51 two failures, then a success", []bool{false, false, true}, false},
		{"spec 30/51 half and half", []bool{true, true, false, false}, false},
		{"spec 30/51 the other way around", []bool{false, false, true, true}, false},
		{"spec 30/51 by turns", []bool{false, true, false, true}, false},
		{"one failure in four", []bool{true, false, true, true}, true},
		{"old failures fall out of the window", []bool{false, false, true, true, true}, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := &record{}
			for i, ok := range tt.outcomes {
				r.push(outcome{claim: types.UID(fmt.Sprint(i)), ok: ok})
			}
			if got := r.isHealthy(); got != tt.want {
				t.Errorf("healthy is %t, want %t", got, tt.want)
			}
		})
	}
}

// TestHealthConcurrently covers spec 30/51 for claims that end at once, in
// whatever order.
func TestHealthConcurrently(t *testing.T) {
	pool := &v1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: "p", UID: "p"}}
	h := &Health{}
	var running sync.WaitGroup
	for i := range window {
		claim := claimOf(pool, fmt.Sprint(i))
		running.Go(func() {
			if i%2 == 0 {
				h.Succeeded(claim)
			} else {
				h.Failed(claim, v1.RegistrationFailedReason, "")
			}
		})
	}
	running.Wait()
	r := h.pools[pool.UID]
	if len(r.outcomes) != window || r.isHealthy() {
		t.Errorf("outcomes %v are healthy: %t, want %d and unhealthy", r.outcomes, r.isHealthy(), window)
	}
	if got := h.judge(pool).status; got != metav1.ConditionFalse {
		t.Errorf("verdict is %q after two failures, want False", got)
	}
}

// TestHealthForgets shows that a deleted pool leaves nothing behind.
func TestHealthForgets(t *testing.T) {
	pool := &v1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: "p", UID: "p"}}
	h := &Health{}
	h.Succeeded(claimOf(pool, "a"))
	h.Succeeded(&v1.NodeClaim{ObjectMeta: metav1.ObjectMeta{Name: "standalone", UID: "s"}})
	h.forget(pool.Name)
	if len(h.pools) != 0 {
		t.Errorf("%d pools are still remembered", len(h.pools))
	}
}
