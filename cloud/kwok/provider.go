// SPDX-License-Identifier: Apache-2.0

package kwok

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kwokv1alpha1 "karpenter/api/kwok/v1alpha1"
	"karpenter/api/unreadable"
	v1 "karpenter/api/v1"
	"karpenter/cloud"
	"karpenter/cloud/nodeprice"
	"karpenter/model"
)

// Marks on the Nodes of this provider.
const (
	// FakeKey, as a label and annotation with FakeValue, lets kwok or a
	// simulated kubelet adopt the Node.
	FakeKey   = "kwok.x-k8s.io/node"
	FakeValue = "fake"

	// PriceLabelKey is the price of the instance in dollars per hour, with
	// NodeOverlays, without what the node costs besides it.
	PriceLabelKey = "eks-node-viewer/instance-price"

	partitionLabelKey = "kwok-partition"
	partition         = "a"
)

// Config is what a Provider and its Boot work with.
type Config struct {
	Client    client.Client // may read from a cache
	Live      client.Reader // must not
	Catalogue *Catalogue
	Clock     clock.PassiveClock
	// Overlay applies NodeOverlays to the types of a NodePool, so that a launch
	// uses the prices and capacities that it was planned with; see
	// overlay.Store. Nil means there are none.
	Overlay func(pool string, types []*cloud.InstanceType) ([]*cloud.InstanceType, error)
	// Extras returns what nodes of a NodePool cost besides their instances. Nil
	// means nothing.
	Extras func(ctx context.Context, pool string) ([]model.Extra, error)
}

// Provider makes Nodes without machines. Safe for concurrent use.
type Provider struct {
	client       client.Client
	live         client.Reader
	clock        clock.PassiveClock
	stock        *stock
	devices      *deviceSource
	launchErrors map[offeringKey]string
	overlay      func(string, []*cloud.InstanceType) ([]*cloud.InstanceType, error) // nil = none
	extras       func(context.Context, string) ([]model.Extra, error)               // nil = none
	prices       nodeprice.Store
}

var _ cloud.Provider = (*Provider)(nil)

// New returns a provider for the catalogue. It needs a Boot with the same
// Config.
func New(c Config) *Provider {
	return &Provider{
		client:       c.Client,
		live:         c.Live,
		clock:        c.Clock,
		stock:        newStock(c.Catalogue.types),
		devices:      &deviceSource{live: c.Live},
		launchErrors: c.Catalogue.launchErrors,
		overlay:      c.Overlay,
		extras:       c.Extras,
	}
}

// Name implements cloud.Provider.
func (p *Provider) Name() string { return "kwok" }

// NodeClasses implements cloud.Provider.
func (p *Provider) NodeClasses() []schema.GroupVersionKind {
	return []schema.GroupVersionKind{kwokv1alpha1.GroupVersion().WithKind(kwokv1alpha1.Kind)}
}

// Create implements cloud.Provider. It writes nothing; see the package's
// description of what a machine is.
func (p *Provider) Create(ctx context.Context, claim *v1.NodeClaim) (*cloud.Machine, error) {
	current := &v1.NodeClaim{}
	if err := p.live.Get(ctx, client.ObjectKeyFromObject(claim), current); err != nil {
		return nil, fmt.Errorf("read claim %s: %w", claim.Name, err)
	}
	if current.UID != claim.UID {
		return nil, fmt.Errorf("claim %s has been replaced", claim.Name)
	}
	if _, ok := nodeOf(current.Status.ProviderID); ok {
		return recorded(current), nil
	}
	if err := p.classReady(ctx, claim); err != nil {
		return nil, err
	}
	types, extras, err := p.typesFor(ctx, claim)
	if err != nil {
		return nil, err
	}
	var failed []offeringKey
	defer func() { p.stock.soldOut(p.clock.Now(), failed) }()
	for choice := range cloud.Choices(types, cloud.Demand(claim), claim.Spec.Resources.Requests) {
		key := keyOf(choice.Type, choice.Offering)
		if p.launchErrors[key] == "" {
			return p.machine(claim, choice, extras), nil
		}
		failed = append(failed, key)
	}
	return nil, &cloud.InsufficientCapacityError{Err: refusal(failed)}
}

// typesFor returns what is available as the claim's pool sees it, and what of the
// prices is not for the instance.
func (p *Provider) typesFor(ctx context.Context, claim *v1.NodeClaim) (types []*cloud.InstanceType, extras []model.Extra, err error) {
	types, pool := p.stock.types(p.clock.Now()), claim.Labels[v1.NodePoolLabelKey]
	if pool == "" {
		return types, nil, nil
	}
	if p.overlay != nil {
		if types, err = p.overlay(pool, types); err != nil {
			return nil, nil, err
		}
	}
	if p.extras != nil {
		if extras, err = p.extras(ctx, pool); err != nil {
			return nil, nil, err
		}
	}
	return p.prices.Add(pool, types, extras), extras, nil
}

// refusal returns the error for a launch without a usable offering.
func refusal(failed []offeringKey) error {
	if len(failed) == 0 {
		return errors.New("no available offering satisfies the claim")
	}
	const shown = 5
	var names []string
	for _, key := range failed[:min(shown, len(failed))] {
		names = append(names, key.String())
	}
	text := strings.Join(names, ", ")
	if more := len(failed) - shown; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return fmt.Errorf("no compatible offering has capacity: %s", text)
}

func (p *Provider) classReady(ctx context.Context, claim *v1.NodeClaim) error {
	if claim.Spec.NodeClassRef == nil {
		return &cloud.NodeClassNotReadyError{Err: errors.New("claim names no node class")}
	}
	class := &kwokv1alpha1.KWOKNodeClass{}
	err := p.client.Get(ctx, client.ObjectKey{Name: claim.Spec.NodeClassRef.Name}, class)
	if apierrors.IsNotFound(err) {
		return &cloud.InsufficientCapacityError{Err: fmt.Errorf("node class %s does not exist", claim.Spec.NodeClassRef.Name)}
	}
	if err != nil {
		return fmt.Errorf("read node class %s: %w", claim.Spec.NodeClassRef.Name, err)
	}
	if err := unreadable.Error(class); err != nil {
		return &cloud.NodeClassNotReadyError{Err: fmt.Errorf("node class %s: %w", class.Name, err)}
	}
	if ready := meta.FindStatusCondition(class.Status.Conditions, v1.ReadyCondition); ready != nil && ready.Status == metav1.ConditionFalse {
		return &cloud.NodeClassNotReadyError{Err: fmt.Errorf("node class %s: %s", class.Name, ready.Message)}
	}
	return nil
}

// machine is the machine the claim will record.
func (p *Provider) machine(claim *v1.NodeClaim, choice cloud.Choice, extras []model.Extra) *cloud.Machine {
	labels := choice.Labels(claim)
	labels[PriceLabelKey] = fmt.Sprintf("%f", nodeprice.Instance(choice.Type, choice.Offering, extras).Dollars())
	maps.Copy(labels, fixedLabels(claim))
	return &cloud.Machine{
		ProviderID:  scheme + nodeName(claim),
		Claim:       claim.Name,
		ClaimUID:    claim.UID,
		Created:     p.clock.Now(),
		Labels:      labels,
		Annotations: map[string]string{FakeKey: FakeValue},
		Capacity:    choice.Capacity(),
		Allocatable: choice.Allocatable(),
	}
}

func fixedLabels(claim *v1.NodeClaim) map[string]string {
	host := claim.Name
	if len(host) > maxName {
		host = nodeName(claim)
	}
	return map[string]string{partitionLabelKey: partition, corev1.LabelHostname: host, FakeKey: FakeValue}
}

// recorded is the machine a claim has recorded.
func recorded(claim *v1.NodeClaim) *cloud.Machine {
	return &cloud.Machine{
		ProviderID:  claim.Status.ProviderID,
		Claim:       claim.Name,
		ClaimUID:    claim.UID,
		Created:     launchedAt(claim),
		ImageID:     claim.Status.ImageID,
		Labels:      maps.Clone(claim.Labels),
		Annotations: map[string]string{FakeKey: FakeValue},
		Capacity:    claim.Status.Capacity.DeepCopy(),
		Allocatable: claim.Status.Allocatable.DeepCopy(),
		Deleting:    !claim.DeletionTimestamp.IsZero(),
	}
}

func booted(node *corev1.Node) *cloud.Machine {
	ref, _ := owner(node)
	return &cloud.Machine{
		ProviderID:  node.Spec.ProviderID,
		Claim:       ref.Name,
		ClaimUID:    ref.UID,
		Created:     node.CreationTimestamp.Time,
		Labels:      maps.Clone(node.Labels),
		Annotations: map[string]string{FakeKey: FakeValue},
		Capacity:    node.Status.Capacity.DeepCopy(),
		Allocatable: node.Status.Allocatable.DeepCopy(),
		Deleting:    !node.DeletionTimestamp.IsZero(),
	}
}

func launchedAt(claim *v1.NodeClaim) time.Time {
	if c := condition(claim, v1.LaunchedCondition); c != nil {
		return c.LastTransitionTime.Time
	}
	return claim.CreationTimestamp.Time
}

func condition(claim *v1.NodeClaim, name string) *v1.Condition {
	for i := range claim.Status.Conditions {
		if claim.Status.Conditions[i].Type == name {
			return &claim.Status.Conditions[i]
		}
	}
	return nil
}

func isTrue(claim *v1.NodeClaim, name string) bool {
	c := condition(claim, name)
	return c != nil && c.Status == metav1.ConditionTrue
}

// booting reports whether the claim has a machine whose Node has not been
// seen yet. A registered claim without Node has lost its machine instead.
func booting(claim *v1.NodeClaim) bool {
	_, ours := nodeOf(claim.Status.ProviderID)
	return ours && isTrue(claim, v1.LaunchedCondition) && !isTrue(claim, v1.RegisteredCondition)
}

// Delete implements cloud.Provider. The machine is gone at once; a claim that
// is not being deleted yet is deleted with it, or it would boot again.
func (p *Provider) Delete(ctx context.Context, claim *v1.NodeClaim) error {
	name, ok := nodeOf(claim.Status.ProviderID)
	if !ok {
		return notFound(claim.Status.ProviderID)
	}
	if err := p.endClaim(ctx, claim); err != nil {
		return err
	}
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if err := p.client.Delete(ctx, node); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("delete node %s: %w", name, err)
	}
	return notFound(claim.Status.ProviderID)
}

// Reboot implements cloud.Rebooter: the Node gets another boot ID.
func (p *Provider) Reboot(ctx context.Context, claim *v1.NodeClaim, operationID string) error {
	if claim.Status.NodeName == "" {
		return fmt.Errorf("reboot instance of node claim %s: it has no node", claim.Name)
	}
	node := &corev1.Node{}
	err := p.client.Get(ctx, client.ObjectKey{Name: claim.Status.NodeName}, node)
	if apierrors.IsNotFound(err) {
		return notFound(claim.Status.ProviderID)
	}
	if err != nil {
		return fmt.Errorf("read node %s: %w", claim.Status.NodeName, err)
	}
	stored := node.DeepCopy()
	node.Status.NodeInfo.BootID = "kwok-" + operationID
	if err := p.client.Status().Patch(ctx, node, client.MergeFrom(stored)); err != nil {
		return fmt.Errorf("reboot node %s: %w", node.Name, err)
	}
	return nil
}

// endClaim deletes the claim if it exists, is this one, and is not being
// deleted yet.
func (p *Provider) endClaim(ctx context.Context, claim *v1.NodeClaim) error {
	if !claim.DeletionTimestamp.IsZero() || claim.UID == "" {
		return nil
	}
	now := &v1.NodeClaim{}
	err := p.client.Get(ctx, client.ObjectKeyFromObject(claim), now)
	if err == nil && now.UID == claim.UID && now.DeletionTimestamp.IsZero() {
		err = p.client.Delete(ctx, now, client.Preconditions{UID: &now.UID})
	}
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
		return fmt.Errorf("delete claim %s: %w", claim.Name, err)
	}
	return nil
}

func notFound(providerID string) error {
	return &cloud.NotFoundError{Err: fmt.Errorf("machine %q", providerID)}
}

// Get implements cloud.Provider.
func (p *Provider) Get(ctx context.Context, providerID string) (*cloud.Machine, error) {
	name, ok := nodeOf(providerID)
	if !ok {
		return nil, notFound(providerID)
	}
	claims, err := p.booting(ctx)
	if err != nil {
		return nil, err
	}
	m := claims[providerID]
	node := &corev1.Node{}
	err = p.client.Get(ctx, client.ObjectKey{Name: name}, node)
	if client.IgnoreNotFound(err) != nil {
		return nil, fmt.Errorf("read node %s: %w", name, err)
	}
	if err == nil {
		m = booted(node)
	}
	if m == nil || m.Deleting {
		return nil, notFound(providerID)
	}
	return m, nil
}

// List implements cloud.Provider: the machines with a Node, and those that
// have not booted yet.
func (p *Provider) List(ctx context.Context) ([]*cloud.Machine, error) {
	machines, err := p.booting(ctx)
	if err != nil {
		return nil, err
	}
	nodes := &corev1.NodeList{}
	if err := p.client.List(ctx, nodes, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list nodes: %w", err)
	}
	for i := range nodes.Items {
		if _, ok := nodeOf(nodes.Items[i].Spec.ProviderID); ok {
			machines[nodes.Items[i].Spec.ProviderID] = booted(&nodes.Items[i])
		}
	}
	byID := func(a, b *cloud.Machine) int { return strings.Compare(a.ProviderID, b.ProviderID) }
	return slices.SortedFunc(maps.Values(machines), byID), nil
}

// booting returns the machines whose claims have not seen a Node yet, by
// provider ID. Nodes have to be looked up after it: a machine that boots in
// between is then in both answers and not in none.
func (p *Provider) booting(ctx context.Context) (map[string]*cloud.Machine, error) {
	claims := &v1.NodeClaimList{}
	if err := p.client.List(ctx, claims, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list claims: %w", err)
	}
	out := map[string]*cloud.Machine{}
	for i := range claims.Items {
		if booting(&claims.Items[i]) {
			out[claims.Items[i].Status.ProviderID] = recorded(&claims.Items[i])
		}
	}
	return out, nil
}

// InstanceTypes implements cloud.Provider. Every pool is offered the same, but for
// devices, and as long as nothing changes the same slice.
func (p *Provider) InstanceTypes(ctx context.Context, pool *v1.NodePool) ([]*cloud.InstanceType, error) {
	now := p.clock.Now()
	return p.devices.with(ctx, now, pool, p.stock.types(now)), nil
}

// IsDrifted implements cloud.Provider. Nothing about a Node without machine
// can change.
func (p *Provider) IsDrifted(context.Context, *v1.NodeClaim) (string, error) { return "", nil }

// RepairPolicies implements cloud.Provider. Nodes can be given the conditions
// KWOKUnhealthy and KWOKRebootRequired to try repairs out.
func (p *Provider) RepairPolicies() []cloud.RepairPolicy {
	const toleration, quick = 10 * time.Minute, 30 * time.Second
	force, drain, reboot := time.Duration(0), 45*time.Second, time.Minute
	return []cloud.RepairPolicy{
		{ConditionType: corev1.NodeReady, ConditionStatus: corev1.ConditionFalse, Toleration: toleration, TerminationGracePeriod: &force, Action: cloud.ReplaceNode},
		{ConditionType: corev1.NodeReady, ConditionStatus: corev1.ConditionUnknown, ReasonRegex: ".*", Toleration: toleration, TerminationGracePeriod: &force, Action: cloud.ReplaceNode},
		{ConditionType: "KWOKUnhealthy", ConditionStatus: corev1.ConditionTrue, ReasonRegex: ".*", Toleration: quick, TerminationGracePeriod: &drain, Action: cloud.ReplaceNode},
		{ConditionType: "KWOKRebootRequired", ConditionStatus: corev1.ConditionTrue, ReasonRegex: ".*", Toleration: quick, TerminationGracePeriod: &reboot, Action: cloud.RebootNode},
	}
}
