// SPDX-License-Identifier: Apache-2.0

package cloudtest

import (
	"maps"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	v1 "karpenter/api/v1"
	"karpenter/cloud"
)

// Cloud is a provider under test and the world around it.
type Cloud struct {
	Provider cloud.Provider
	Pool     *v1.NodePool
	// Class is what claims refer to; it exists and is ready.
	Class v1.NodeClassReference

	// Store creates or updates a claim, with its status, where the provider
	// looks for claims. Nil for providers that do not look.
	Store func(t *testing.T, claim *v1.NodeClaim)
	// Settle lets the cloud finish everything that is in progress. Nil for
	// providers that do nothing between calls.
	Settle func(t *testing.T)
	// SellOut makes every launch of the offering fail from now on. Nil if the
	// provider does not support that.
	SellOut func(instanceType, zone, capacityType string)
}

// Factory makes a Cloud without machines.
type Factory func(t *testing.T) *Cloud

// Run checks that a provider keeps the contract of package cloud.
func Run(t *testing.T, factory Factory) {
	for name, check := range map[string]func(*testing.T, *Cloud){
		"describes itself the same each time":             testConstants,
		"describes its types in full":                     testTypes,
		"launches the cheapest compatible offering":       testCheapest,
		"returns labels and resources of the machine":     testMachine,
		"launches one machine per claim":                  testIdempotent,
		"launches one machine per claim concurrently":     testIdempotentConcurrent,
		"refuses what nothing satisfies":                  testRefuses,
		"goes on without offerings that have no capacity": testSoldOut,
		"finds instances by provider ID":                  testGet,
		"lists every machine once":                        testList,
		"deletes until there is nothing left":             testDelete,
		"takes repeated and pointless deletes":            testDeleteAgain,
		"finds no drift in a new machine":                 testDrift,
		"serves many callers at once":                     testConcurrency,
	} {
		t.Run(name, func(t *testing.T) { check(t, factory(t)) })
	}
}

// claim returns a stored claim of the pool with the requirements.
func (c *Cloud) claim(t *testing.T, name string, requirements ...v1.NodeSelectorRequirementWithMinValues) *v1.NodeClaim {
	t.Helper()
	out := &v1.NodeClaim{
		ObjectMeta: metav1.ObjectMeta{
			Name:   name,
			UID:    types.UID("uid-of-" + name),
			Labels: map[string]string{v1.NodePoolLabelKey: c.Pool.Name},
		},
		Spec: v1.NodeClaimSpec{Requirements: requirements, NodeClassRef: &c.Class},
	}
	c.store(t, out)
	return out
}

func in(key string, values ...string) v1.NodeSelectorRequirementWithMinValues {
	return v1.NodeSelectorRequirementWithMinValues{Key: key, Operator: corev1.NodeSelectorOpIn, Values: values}
}

func (c *Cloud) store(t *testing.T, claim *v1.NodeClaim) {
	t.Helper()
	if c.Store != nil {
		c.Store(t, claim)
	}
}

func (c *Cloud) settle(t *testing.T) {
	t.Helper()
	if c.Settle != nil {
		c.Settle(t)
	}
}

// record puts the machine into the claim as the lifecycle controller does.
func (c *Cloud) record(t *testing.T, claim *v1.NodeClaim, m *cloud.Machine) {
	t.Helper()
	labels := maps.Clone(m.Labels)
	maps.Copy(labels, claim.Labels)
	claim.Labels = labels
	claim.Status.ProviderID, claim.Status.ImageID = m.ProviderID, m.ImageID
	claim.Status.Capacity, claim.Status.Allocatable = m.Capacity, m.Allocatable
	claim.Status.Conditions = []v1.Condition{{
		Type: v1.LaunchedCondition, Status: metav1.ConditionTrue, LastTransitionTime: metav1.Now(), Reason: v1.LaunchedCondition,
	}}
	c.store(t, claim)
}

func (c *Cloud) launch(t *testing.T, claim *v1.NodeClaim) *cloud.Machine {
	t.Helper()
	m, err := c.Provider.Create(t.Context(), claim)
	if err != nil {
		t.Fatalf("create %s: %v", claim.Name, err)
	}
	c.record(t, claim, m)
	c.settle(t)
	return m
}

func (c *Cloud) types(t *testing.T) []*cloud.InstanceType {
	t.Helper()
	out, err := c.Provider.InstanceTypes(t.Context(), c.Pool)
	if err != nil {
		t.Fatalf("instance types: %v", err)
	}
	return out
}

// live returns the provider IDs of the listed machines that are not going
// away, sorted.
func (c *Cloud) live(t *testing.T) []string {
	t.Helper()
	machines, err := c.Provider.List(t.Context())
	if err != nil {
		t.Fatalf("list: %v", err)
	}
	var out []string
	for _, m := range machines {
		if !m.Deleting {
			out = append(out, m.ProviderID)
		}
	}
	slices.Sort(out)
	return out
}
