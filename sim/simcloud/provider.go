// SPDX-License-Identifier: Apache-2.0

package simcloud

import (
	"context"
	"fmt"
	"maps"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	kwokv1alpha1 "karpenter/api/kwok/v1alpha1"
	v1 "karpenter/api/v1"
	"karpenter/cloud"
)

var _ cloud.Provider = (*Cloud)(nil)

// Name implements cloud.Provider.
func (c *Cloud) Name() string { return "sim" }

// NodeClasses implements cloud.Provider. The cloud has none of its own.
func (c *Cloud) NodeClasses() []schema.GroupVersionKind {
	return []schema.GroupVersionKind{kwokv1alpha1.GroupVersion().WithKind(kwokv1alpha1.Kind)}
}

// Create implements cloud.Provider.
func (c *Cloud) Create(ctx context.Context, claim *v1.NodeClaim) (*cloud.Machine, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.settle()
	if m := c.byUID[claim.UID]; m != nil {
		if m.Runs() {
			return copied(m), nil
		}
		return nil, &cloud.CreateError{Reason: "MachineEnded", Message: "the machine of the claim has ended"}
	}
	if ref := claim.Spec.NodeClassRef; ref != nil && c.classes[ref.Name] != "" {
		return nil, &cloud.NodeClassNotReadyError{Err: fmt.Errorf("node class %s: %s", ref.Name, c.classes[ref.Name])}
	}
	var failed []Offering
	for choice := range cloud.Choices(c.shown(), cloud.Demand(claim), claim.Spec.Resources.Requests) {
		o := offeringOf(choice)
		if c.empty[o] {
			failed = append(failed, o)
			continue
		}
		c.sellOutAll(failed)
		return copied(c.launch(claim, choice)), nil
	}
	c.sellOutAll(failed)
	return nil, &cloud.InsufficientCapacityError{Err: fmt.Errorf("no offering of %d that were tried can be launched", len(failed))}
}

func (c *Cloud) sellOutAll(failed []Offering) {
	for _, o := range failed {
		c.sellOut(o)
	}
	if len(failed) > 0 {
		c.version++
	}
}

func (c *Cloud) launch(claim *v1.NodeClaim, choice cloud.Choice) *Machine {
	o := offeringOf(choice)
	m := &Machine{
		Machine: cloud.Machine{
			ProviderID:  c.nextID(o.Zone),
			Claim:       claim.Name,
			ClaimUID:    claim.UID,
			Created:     time.Now(),
			ImageID:     "image-1",
			Labels:      choice.Labels(claim),
			Capacity:    choice.Capacity(),
			Allocatable: choice.Allocatable(),
		},
		Offering: o,
		Price:    choice.Offering.Price,
	}
	c.machines = append(c.machines, m)
	c.byUID[claim.UID] = m
	c.version++
	return m
}

func copied(m *Machine) *cloud.Machine {
	out := m.Machine
	out.Labels = maps.Clone(m.Labels)
	out.Capacity, out.Allocatable = m.Capacity.DeepCopy(), m.Allocatable.DeepCopy()
	return &out
}

// Delete implements cloud.Provider. The instance ends a while after the first
// call.
func (c *Cloud) Delete(ctx context.Context, claim *v1.NodeClaim) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.settle()
	m := c.find(claim.Status.ProviderID)
	if m == nil || !m.Runs() {
		return notFound(claim.Status.ProviderID)
	}
	if m.stops.IsZero() {
		m.Told = time.Now()
		m.stops, m.Deleting = m.Told.Add(c.stopping), true
		c.version++
	}
	return nil
}

// Get implements cloud.Provider.
func (c *Cloud) Get(ctx context.Context, providerID string) (*cloud.Machine, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.settle()
	if m := c.find(providerID); m != nil && c.visible(m) {
		return copied(m), nil
	}
	return nil, notFound(providerID)
}

func (c *Cloud) visible(m *Machine) bool {
	return m.Runs() && time.Since(m.Created) >= c.lag
}

// List implements cloud.Provider.
func (c *Cloud) List(ctx context.Context) ([]*cloud.Machine, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.settle()
	var out []*cloud.Machine
	for _, m := range c.machines {
		if c.visible(m) {
			out = append(out, copied(m))
		}
	}
	return out, nil
}

// InstanceTypes implements cloud.Provider.
func (c *Cloud) InstanceTypes(ctx context.Context, _ *v1.NodePool) ([]*cloud.InstanceType, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return c.Types(), nil
}

// IsDrifted implements cloud.Provider.
func (c *Cloud) IsDrifted(ctx context.Context, claim *v1.NodeClaim) (string, error) {
	if err := ctx.Err(); err != nil {
		return "", err
	}
	m, ok := c.Find(claim.Status.ProviderID)
	if !ok || !m.Runs() {
		return "", notFound(claim.Status.ProviderID)
	}
	return m.Drift, nil
}

// RepairBound is how long the drain of an unhealthy node may take.
const RepairBound = 5 * time.Minute

// RepairPolicies implements cloud.Provider.
func (c *Cloud) RepairPolicies() []cloud.RepairPolicy {
	const toleration = 10 * time.Minute
	bound := RepairBound
	return []cloud.RepairPolicy{
		{ConditionType: "Ready", ConditionStatus: "False", Toleration: toleration, TerminationGracePeriod: &bound, Action: cloud.ReplaceNode},
		{ConditionType: "Ready", ConditionStatus: "Unknown", ReasonRegex: ".*", Toleration: toleration, TerminationGracePeriod: &bound, Action: cloud.ReplaceNode},
	}
}

func notFound(providerID string) error {
	return &cloud.NotFoundError{Err: fmt.Errorf("machine %q", providerID)}
}
