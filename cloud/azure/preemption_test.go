// SPDX-License-Identifier: Apache-2.0

package azure

import (
	"errors"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"karpenter/api/azure/v1beta1"
	v1 "karpenter/api/v1"
	"karpenter/model"
)

// node stores the Node of a claim's machine.
func (r *region) node(claim *v1.NodeClaim, conditions ...corev1.NodeCondition) *corev1.Node {
	r.t.Helper()
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-of-" + claim.Name}, Spec: corev1.NodeSpec{ProviderID: claim.Status.ProviderID}}
	must(r.t, r.api.Create(r.t.Context(), node))
	node.Status.Conditions = conditions
	must(r.t, r.api.Status().Update(r.t.Context(), node))
	return node
}

// TestPreemption covers spec 71/103: the claim of a Node whose eviction is announced
// goes at once, and its offering counts as short for a while.
func TestPreemption(t *testing.T) {
	for name, c := range map[string]struct {
		condition    corev1.NodeCondition
		capacityType string
		goes         bool
		short        []string
	}{
		"announced":   {corev1.NodeCondition{Type: preemptionScheduled, Status: corev1.ConditionTrue}, model.Spot, true, []string{"eastus-1 spot"}},
		"on demand":   {corev1.NodeCondition{Type: preemptionScheduled, Status: corev1.ConditionTrue}, model.OnDemand, true, nil},
		"called off":  {corev1.NodeCondition{Type: preemptionScheduled, Status: corev1.ConditionFalse}, model.Spot, false, nil},
		"other event": {corev1.NodeCondition{Type: nodeHealthy, Status: corev1.ConditionTrue}, model.Spot, false, nil},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRegion(t)
			claim := r.claim("default-a1b2c", d4s("eastus-1", c.capacityType)...)
			m := r.launch(claim)
			claim.Labels = m.Labels
			r.store(claim)
			node := r.node(claim, c.condition)
			if got := announced().Create(event.CreateEvent{Object: node}); got != c.goes {
				t.Errorf("the controller hears of it: %v", got)
			}
			for range 2 { // what is done already is not done again
				_, err := preempting{r.Provider}.Reconcile(t.Context(), reconcile.Request{NamespacedName: client.ObjectKeyFromObject(node)})
				must(t, err)
			}
			err := r.api.Get(t.Context(), client.ObjectKeyFromObject(claim), &v1.NodeClaim{})
			if gone := apierrors.IsNotFound(err); gone != c.goes {
				t.Errorf("the claim is gone: %v (%v)", gone, err)
			}
			r.wantShort("then", c.short...)
			want, events := []string(nil), 0
			if c.goes {
				want, events = []string{"default-a1b2c spot_interrupted"}, 4
			}
			if !slices.Equal(r.disrupted, want) || len(r.events) != events {
				t.Errorf("disrupted %q, events %q", r.disrupted, r.events)
			}
			r.clock.Step(preemptedFor + time.Second)
			r.wantShort("after a while")
		})
	}
}

// TestClassGoes covers spec 71/104: a pool whose class is being deleted has no
// types; another one has.
func TestClassGoes(t *testing.T) {
	r := newRegion(t)
	other := &v1beta1.AKSNodeClass{ObjectMeta: metav1.ObjectMeta{Name: "going", Finalizers: []string{v1beta1.TerminationFinalizer}}}
	must(t, r.api.Create(t.Context(), other))
	must(t, r.api.Delete(t.Context(), other))
	pool := r.pool.DeepCopy()
	pool.Spec.Template.Spec.NodeClassRef.Name = "going"
	if types, err := r.InstanceTypes(t.Context(), pool); !errors.Is(err, errNoClass) {
		t.Errorf("%d types, %v", len(types), err)
	}
	if types, err := r.InstanceTypes(t.Context(), r.pool); err != nil || len(types) == 0 {
		t.Errorf("of the other class: %d types, %v", len(types), err)
	}
}

// TestRepairsEnd: whatever a node is replaced for, its drain ends, though pods of a dead
// kubelet never do; half a minute before an eviction it does so in time.
func TestRepairsEnd(t *testing.T) {
	for _, p := range newRegion(t).RepairPolicies() {
		longest := 5 * time.Minute
		if p.ConditionType == preemptionScheduled {
			longest = 30 * time.Second
		}
		if bound := p.TerminationGracePeriod; bound == nil || *bound > longest {
			t.Errorf("%s=%s: the drain is bounded by %v", p.ConditionType, p.ConditionStatus, bound)
		}
	}
}
