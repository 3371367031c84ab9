// SPDX-License-Identifier: Apache-2.0

package cloudtest

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"

	v1 "karpenter/api/v1"
	"karpenter/cloud"
)

// Method names a method of cloud.Provider in calls of Fake.
type Method string

// The methods that tests can make fail and whose calls are recorded.
const (
	Create        Method = "Create"
	Delete        Method = "Delete"
	Get           Method = "Get"
	List          Method = "List"
	InstanceTypes Method = "InstanceTypes"
	IsDrifted     Method = "IsDrifted"
)

// Fake is a cloud provider in memory for tests of the code that uses one. Its
// machines run until Delete or Lose. Safe for concurrent use.
type Fake struct {
	clock clock.PassiveClock

	mu          sync.Mutex
	types       []*cloud.InstanceType
	poolTypes   map[string][]*cloud.InstanceType
	poolErrors  map[string]error
	next        map[Method][]error
	calls       map[Method][]*v1.NodeClaim
	gets        []string
	creates     int // launches left; negative = no limit
	drift       string
	nodeClasses []schema.GroupVersionKind
	policies    []cloud.RepairPolicy
	machines    map[string]*cloud.Machine // by provider ID
	slow        int                       // answers nil that Delete gives before NotFound
	dying       map[string]int            // provider ID → answers nil left
	launched    map[string]string         // identity of a claim → provider ID
}

var _ cloud.Provider = (*Fake)(nil)

// NewFake returns a provider with DefaultTypes that serves the node class
// karpenter.kwok.sh/v1alpha1 KWOKNodeClass and stamps machines by the clock.
func NewFake(clk clock.PassiveClock) *Fake {
	return &Fake{
		clock:       clk,
		types:       DefaultTypes(),
		poolTypes:   map[string][]*cloud.InstanceType{},
		poolErrors:  map[string]error{},
		next:        map[Method][]error{},
		calls:       map[Method][]*v1.NodeClaim{},
		creates:     -1,
		nodeClasses: []schema.GroupVersionKind{{Group: "karpenter.kwok.sh", Version: "v1alpha1", Kind: "KWOKNodeClass"}},
		machines:    map[string]*cloud.Machine{},
		slow:        1,
		dying:       map[string]int{},
		launched:    map[string]string{},
	}
}

// SetTypes replaces the types of pools without types of their own.
func (f *Fake) SetTypes(types ...*cloud.InstanceType) { f.set(func() { f.types = types }) }

// SetPoolTypes gives a pool types of its own.
func (f *Fake) SetPoolTypes(pool string, types ...*cloud.InstanceType) {
	f.set(func() { f.poolTypes[pool] = types })
}

// FailPool makes InstanceTypes fail for a pool; a nil error ends it.
func (f *Fake) FailPool(pool string, err error) { f.set(func() { f.poolErrors[pool] = err }) }

// FailNext makes the next calls of a method fail with the errors, one each.
func (f *Fake) FailNext(method Method, errs ...error) {
	f.set(func() { f.next[method] = append(f.next[method], errs...) })
}

// AllowCreates limits how many more machines may be launched; the launches
// after that are answered with InsufficientCapacity. Negative means no limit.
func (f *Fake) AllowCreates(n int) { f.set(func() { f.creates = n }) }

// SellOut makes an offering unavailable, among the types of all pools.
func (f *Fake) SellOut(instanceType, zone, capacityType string) {
	f.set(func() {
		f.types = without(f.types, instanceType, zone, capacityType)
		for pool, types := range f.poolTypes {
			f.poolTypes[pool] = without(types, instanceType, zone, capacityType)
		}
	})
}

// without returns types with an offering made unavailable, in copies.
func without(types []*cloud.InstanceType, name, zone, capacityType string) []*cloud.InstanceType {
	types = slices.Clone(types)
	for i, it := range types {
		if it.Name != name {
			continue
		}
		sold := *it
		sold.Offerings = slices.Clone(it.Offerings)
		for j := range sold.Offerings {
			if o := &sold.Offerings[j]; o.Zone() == zone && o.CapacityType() == capacityType {
				o.Available = false
			}
		}
		types[i] = &sold
	}
	return types
}

// SetDrift sets the answer of IsDrifted.
func (f *Fake) SetDrift(reason string) { f.set(func() { f.drift = reason }) }

// SetRepairPolicies sets the answer of RepairPolicies.
func (f *Fake) SetRepairPolicies(policies ...cloud.RepairPolicy) {
	f.set(func() { f.policies = policies })
}

// SetNodeClasses sets the answer of NodeClasses.
func (f *Fake) SetNodeClasses(kinds ...schema.GroupVersionKind) {
	f.set(func() { f.nodeClasses = kinds })
}

// SetSlowDelete sets how often Delete answers nil before NotFound; 1 at first.
func (f *Fake) SetSlowDelete(n int) { f.set(func() { f.slow = n }) }

// Add adds a machine that was not launched by Create.
func (f *Fake) Add(m cloud.Machine) { f.set(func() { f.machines[m.ProviderID] = &m }) }

// Lose makes a machine vanish, as when the cloud takes it back.
func (f *Fake) Lose(providerID string) { f.set(func() { delete(f.machines, providerID) }) }

func (f *Fake) set(change func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change()
}

// Calls returns the claims a method was called with, in order. Failed calls
// count. Only Create, Delete and IsDrifted have claims.
func (f *Fake) Calls(method Method) []*v1.NodeClaim {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.calls[method])
}

// GetCalls returns the provider IDs Get was called with, in order.
func (f *Fake) GetCalls() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.gets)
}

// Machines returns the running machines, sorted by provider ID.
func (f *Fake) Machines() []cloud.Machine {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.sorted()
}

func (f *Fake) sorted() []cloud.Machine {
	out := make([]cloud.Machine, 0, len(f.machines))
	for _, m := range f.machines {
		out = append(out, *m)
	}
	slices.SortFunc(out, func(a, b cloud.Machine) int { return strings.Compare(a.ProviderID, b.ProviderID) })
	return out
}

func (f *Fake) fail(method Method) error {
	errs := f.next[method]
	if len(errs) == 0 {
		return nil
	}
	f.next[method] = errs[1:]
	return errs[0]
}

// Name implements cloud.Provider.
func (f *Fake) Name() string { return "fake" }

// NodeClasses implements cloud.Provider.
func (f *Fake) NodeClasses() []schema.GroupVersionKind {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.nodeClasses)
}

// Create implements cloud.Provider. It launches the cheapest compatible
// offering of all the types it knows.
func (f *Fake) Create(_ context.Context, claim *v1.NodeClaim) (*cloud.Machine, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.calls[Create] = append(f.calls[Create], claim.DeepCopy())
	if err := f.fail(Create); err != nil {
		return nil, err
	}
	if m, ok := f.machines[f.launched[identity(claim)]]; ok {
		return copied(m), nil
	}
	if f.creates == 0 {
		return nil, &cloud.InsufficientCapacityError{Err: fmt.Errorf("no launches left")}
	}
	types := f.typesOf(claim.Labels[v1.NodePoolLabelKey])
	for choice := range cloud.Choices(types, cloud.Demand(claim), claim.Spec.Resources.Requests) {
		m := f.launch(claim, choice)
		f.creates = max(f.creates-1, -1)
		return copied(m), nil
	}
	return nil, &cloud.InsufficientCapacityError{Err: fmt.Errorf("no offering satisfies %s", claim.Name)}
}

func (f *Fake) launch(claim *v1.NodeClaim, choice cloud.Choice) *cloud.Machine {
	m := &cloud.Machine{
		ProviderID:  "fake:///" + identity(claim),
		Claim:       claim.Name,
		ClaimUID:    claim.UID,
		Created:     f.clock.Now(),
		ImageID:     "fake-image",
		Labels:      choice.Labels(claim),
		Capacity:    choice.Capacity(),
		Allocatable: choice.Allocatable(),
	}
	f.machines[m.ProviderID], f.launched[identity(claim)] = m, m.ProviderID
	return m
}

// identity is the claim's UID, or its name where a test left the UID out.
func identity(claim *v1.NodeClaim) string { return cmp.Or(string(claim.UID), claim.Name) }

func copied(m *cloud.Machine) *cloud.Machine {
	out := *m
	out.Labels = maps.Clone(m.Labels)
	out.Capacity, out.Allocatable = m.Capacity.DeepCopy(), m.Allocatable.DeepCopy()
	return &out
}

// Delete implements cloud.Provider. The machine is gone from Get and List at
// the first call.
func (f *Fake) Delete(_ context.Context, claim *v1.NodeClaim) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.calls[Delete] = append(f.calls[Delete], claim.DeepCopy())
	if err := f.fail(Delete); err != nil {
		return err
	}
	id := claim.Status.ProviderID
	if _, ok := f.machines[id]; ok {
		delete(f.machines, id)
		f.dying[id] = f.slow
	}
	if f.dying[id] > 0 {
		f.dying[id]--
		return nil
	}
	return &cloud.NotFoundError{Err: fmt.Errorf("machine %s", id)}
}

// Get implements cloud.Provider.
func (f *Fake) Get(_ context.Context, providerID string) (*cloud.Machine, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.gets = append(f.gets, providerID)
	if err := f.fail(Get); err != nil {
		return nil, err
	}
	if m, ok := f.machines[providerID]; ok {
		return copied(m), nil
	}
	return nil, &cloud.NotFoundError{Err: fmt.Errorf("machine %s", providerID)}
}

// List implements cloud.Provider.
func (f *Fake) List(context.Context) ([]*cloud.Machine, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.fail(List); err != nil {
		return nil, err
	}
	var out []*cloud.Machine
	for _, m := range f.sorted() {
		out = append(out, copied(&m))
	}
	return out, nil
}

// InstanceTypes implements cloud.Provider.
func (f *Fake) InstanceTypes(_ context.Context, pool *v1.NodePool) ([]*cloud.InstanceType, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.fail(InstanceTypes); err != nil {
		return nil, err
	}
	if err := f.poolErrors[pool.Name]; err != nil {
		return nil, err
	}
	return f.typesOf(pool.Name), nil
}

func (f *Fake) typesOf(pool string) []*cloud.InstanceType {
	if own, ok := f.poolTypes[pool]; ok {
		return own
	}
	return f.types
}

// IsDrifted implements cloud.Provider.
func (f *Fake) IsDrifted(_ context.Context, claim *v1.NodeClaim) (string, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.calls[IsDrifted] = append(f.calls[IsDrifted], claim.DeepCopy())
	if err := f.fail(IsDrifted); err != nil {
		return "", err
	}
	return f.drift, nil
}

// RepairPolicies implements cloud.Provider.
func (f *Fake) RepairPolicies() []cloud.RepairPolicy {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.policies)
}
