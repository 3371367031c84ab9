// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"context"
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	v1 "karpenter/api/v1"
	"karpenter/cloud"
	"karpenter/control/controltest"
)

// TestClaimsOf shows that the event of a Node reaches the claims of its
// instance, and no others.
func TestClaimsOf(t *testing.T) {
	c := controltest.New(t)
	if _, err := c.Do(`
		claim a {status: {providerID: "fake:///uid-of-a"}}
		claim b {status: {providerID: "fake:///uid-of-b"}}
		claim unlaunched
	`); err != nil {
		t.Fatal(err)
	}
	r := &Reconciler{Client: c.Client}
	for id, want := range map[string]string{"fake:///uid-of-a": "a", "fake:///other": "", "": ""} {
		got := ""
		for _, request := range r.claimsOf(context.Background(), &corev1.Node{Spec: corev1.NodeSpec{ProviderID: id}}) {
			got += request.Name
		}
		if got != want {
			t.Errorf("node %q wakes claims %q, want %q", id, got, want)
		}
	}
}

func TestMemory(t *testing.T) {
	claim := func(uid, version string) *v1.NodeClaim {
		return &v1.NodeClaim{ObjectMeta: metav1.ObjectMeta{Name: "a", UID: types.UID(uid), ResourceVersion: version}}
	}
	m := &memory{}
	machine := &cloud.Machine{ProviderID: "x"}
	m.launched(claim("1", "5"), machine)
	m.wrote(claim("1", "10"))

	for _, tt := range []struct {
		name     string
		claim    *v1.NodeClaim
		outdated bool
		machine  *cloud.Machine
	}{
		{"older than written", claim("1", "9"), true, machine},
		{"as written", claim("1", "10"), false, machine},
		{"newer, with more digits", claim("1", "100"), false, machine},
		{"a version that cannot be compared", claim("1", "abc"), false, machine},
		{"a claim recreated under the name", claim("2", "3"), false, nil},
	} {
		if got := m.isOutdated(tt.claim); got != tt.outdated {
			t.Errorf("%s: outdated is %t, want %t", tt.name, got, tt.outdated)
		}
		if got := m.machineOf(tt.claim); got != tt.machine {
			t.Errorf("%s: machine %v, want %v", tt.name, got, tt.machine)
		}
	}
	m.gaveUp(claim("1", "11"))
	deleting, now := claim("1", "12"), metav1.Now()
	deleting.DeletionTimestamp = &now
	if !m.isOutdated(claim("1", "11")) || m.isOutdated(deleting) {
		t.Error("a claim that was given up is news only once it shows as deleted")
	}
	m.wrote(claim("2", "3"))
	if m.machineOf(claim("1", "11")) != nil || m.machineOf(claim("2", "3")) != nil {
		t.Error("the machine of the old claim is still remembered")
	}
	m.forget("a")
	if len(m.claims) != 0 {
		t.Error("a forgotten claim is still remembered")
	}
}

func TestResult(t *testing.T) {
	conflict := apierrors.NewConflict(schema.GroupResource{}, "x", errors.New("modified"))
	failure := errors.New("failure")
	for _, tt := range []struct {
		name string
		err  error
		want error
	}{
		{"none", nil, nil},
		{"a conflict is no failure", conflict, nil},
		{"nor are several", errors.Join(conflict, nil, conflict), nil},
		{"a failure beside a conflict", errors.Join(conflict, errors.Join(failure)), failure},
	} {
		result, err := result(0, tt.err)
		if !errors.Is(err, tt.want) || (tt.want == nil) != (err == nil) {
			t.Errorf("%s: error %v, want %v", tt.name, err, tt.want)
		}
		if retry := result.Requeue; retry != (tt.err != nil && tt.want == nil) {
			t.Errorf("%s: got %+v", tt.name, result)
		}
	}
}
