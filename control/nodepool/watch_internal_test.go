// SPDX-License-Identifier: Apache-2.0

package nodepool

import (
	"context"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/event"

	v1 "karpenter/api/v1"
	"karpenter/control/controltest"
)

// TestPoolsOf shows that the event of a node class reaches the pools that
// refer to it.
func TestPoolsOf(t *testing.T) {
	c := controltest.New(t)
	if _, err := c.Do(`
		pool a
		pool b {spec: {template: {spec: {nodeClassRef: {name: other}}}}}
		pool c {spec: {template: {spec: {nodeClassRef: {kind: OtherClass}}}}}
		pool d
	`); err != nil {
		t.Fatal(err)
	}
	kind := schema.GroupKind{Group: "karpenter.kwok.sh", Kind: "KWOKNodeClass"}
	for class, want := range map[string]string{"default": "a d", "other": "b", "none": ""} {
		var names []string
		for _, request := range poolsOf(context.Background(), c.Client, kind, class) {
			names = append(names, request.Name)
		}
		if got := strings.Join(names, " "); got != want {
			t.Errorf("class %s wakes pools %q, want %q", class, got, want)
		}
	}
}

// TestDecided shows which events of a claim make the health of its pool worth
// a look.
func TestDecided(t *testing.T) {
	c := controltest.New(t)
	plain, registered, deleting := c.NewClaim("a"), c.NewClaim("a"), c.NewClaim("a")
	registered.StatusConditions(c.Clock.Now()).SetTrue(v1.RegisteredCondition)
	now := metav1.NewTime(c.Clock.Now())
	deleting.DeletionTimestamp = &now
	p := decided()
	for _, tt := range []struct {
		name string
		got  bool
		want bool
	}{
		{"created", p.Create(event.CreateEvent{Object: plain}), false},
		{"unchanged", p.Update(event.UpdateEvent{ObjectOld: plain, ObjectNew: plain}), false},
		{"registered", p.Update(event.UpdateEvent{ObjectOld: plain, ObjectNew: registered}), true},
		{"given up", p.Update(event.UpdateEvent{ObjectOld: plain, ObjectNew: deleting}), true},
		{"gone", p.Delete(event.DeleteEvent{Object: plain}), true},
	} {
		if tt.got != tt.want {
			t.Errorf("%s: admitted is %t, want %t", tt.name, tt.got, tt.want)
		}
	}
	if requests := poolOf(context.Background(), plain); len(requests) != 1 || requests[0].Name != "default" {
		t.Errorf("claim wakes %v, want its pool", requests)
	}
}
