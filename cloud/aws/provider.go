// SPDX-License-Identifier: Apache-2.0

package aws

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"golang.org/x/sync/singleflight"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	awsv1 "karpenter/api/aws/v1"
	v1 "karpenter/api/v1"
	"karpenter/cloud"
	"karpenter/cloud/aws/instance"
	"karpenter/cloud/aws/instancetype"
	"karpenter/cloud/aws/launch"
	"karpenter/cloud/aws/template"
	"karpenter/cloud/nodeprice"
	"karpenter/model"
)

// Config is what a Provider works with. Everything is required but what says
// otherwise.
type Config struct {
	Client client.Client // may read from a cache
	Live   client.Reader // must not
	Clock  clock.PassiveClock
	// Instances is how instances are started and found. Claims and
	// Launch.SpotRefused are the provider's and not to be set.
	Instances instance.Config
	// Types returns the instance types of a class, which belong to the
	// catalogue.
	Types func(context.Context, *awsv1.EC2NodeClass) ([]*cloud.InstanceType, error)
	// Group returns the placement group of a class, nil if it asks for none.
	Group func(context.Context, *awsv1.EC2NodeClass) (*instancetype.PlacementGroup, error)
	// Overlay says what NodeOverlays make of the types of a NodePool; see
	// overlay.Store. Nil means there are none.
	Overlay func(pool string, types []*cloud.InstanceType) ([]*cloud.InstanceType, error)
	// Additional returns what the user adds to the price of nodes of a NodePool.
	// Nil means nothing.
	Additional func(ctx context.Context, pool string) ([]model.Extra, error)
	// Extras returns what nodes of a class cost besides their instances.
	Extras func(context.Context, *awsv1.EC2NodeClass) []model.Extra
	// LegacyRepair has RepairPolicies answer as versions before 1.15 did, and
	// RebootForRepair reboots instances for faults that this cures.
	LegacyRepair, RebootForRepair bool
	// CABundle is what nodes trust the API server with, in base64, as far as it
	// counts for the hash of a class.
	CABundle string
	// Event tells users something about an object.
	Event func(object client.Object, eventType, reason, message string)
}

// Provider starts and ends EC2 instances. Safe for concurrent use.
type Provider struct {
	config    Config
	instances *instance.Instances
	launches  singleflight.Group // by UID of the claim
	decisions decisions
	prices    nodeprice.Store
}

var _ cloud.Provider = (*Provider)(nil)

// New returns a provider, to be registered with the manager.
func New(c Config) *Provider {
	p := &Provider{config: c}
	c.Instances.Claims = p.claims
	c.Instances.Launch.SpotRefused = p.spotRefused
	p.instances = instance.New(c.Instances)
	return p
}

// Instances returns the instances of the provider, for controllers that tag or
// monitor them.
func (p *Provider) Instances() *instance.Instances { return p.instances }

// Register has the provider started when the process becomes the leader.
func (p *Provider) Register(mgr manager.Manager) error {
	return mgr.Add(manager.RunnableFunc(func(ctx context.Context) error {
		if err := p.Start(ctx); err != nil { // the first launch tries again
			log.FromContext(ctx).Error(err, "taking over what has been launched")
		}
		return nil
	}))
}

// Start takes over what the process before has launched. Until it is done,
// nothing is launched.
func (p *Provider) Start(ctx context.Context) error { return p.instances.Start(ctx) }

// Name implements cloud.Provider.
func (p *Provider) Name() string { return "aws" }

// NodeClasses implements cloud.Provider.
func (p *Provider) NodeClasses() []schema.GroupVersionKind {
	return []schema.GroupVersionKind{awsv1.GroupVersion().WithKind(awsv1.Kind)}
}

// claims returns the claims there are, as launches see them.
func (p *Provider) claims(ctx context.Context) ([]instance.Claim, error) {
	list := &v1.NodeClaimList{}
	if err := p.config.Live.List(ctx, list); err != nil {
		return nil, err
	}
	var out []instance.Claim
	for i := range list.Items {
		if c := &list.Items[i]; cloud.Manages(p, c.Spec.NodeClassRef) {
			out = append(out, claimOf(c))
		}
	}
	return out, nil
}

func claimOf(c *v1.NodeClaim) instance.Claim {
	id, _ := InstanceID(c.Status.ProviderID)
	return instance.Claim{UID: c.UID, Name: c.Name, InstanceID: id}
}

// Create implements cloud.Provider.
func (p *Provider) Create(ctx context.Context, claim *v1.NodeClaim) (*cloud.Machine, error) {
	// A launch goes on when its caller does not wait for it any more: the next
	// call for the claim waits for it too.
	launching := p.launches.DoChan(string(claim.UID), func() (any, error) {
		return p.create(context.WithoutCancel(ctx), claim)
	})
	select {
	case answer := <-launching:
		machine, _ := answer.Val.(*cloud.Machine)
		return machine, answer.Err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (p *Provider) create(ctx context.Context, claim *v1.NodeClaim) (*cloud.Machine, error) {
	known, err := p.instances.Of(ctx, claimOf(claim))
	if err != nil {
		return nil, err
	}
	class, err := p.readyClass(ctx, claim)
	if known != nil {
		return p.launched(ctx, claim, class, known), nil // even if the class has changed since then
	}
	if err != nil {
		return nil, err
	}
	order, err := p.order(ctx, claim, class)
	if err != nil {
		return nil, err
	}
	started, err := p.instances.Launch(ctx, order)
	if err != nil {
		return nil, err
	}
	return p.launched(ctx, claim, class, started), nil
}

// order decides what is to be launched for the claim.
func (p *Provider) order(ctx context.Context, claim *v1.NodeClaim, class *awsv1.EC2NodeClass) (*template.Want, error) {
	types, err := p.typesFor(ctx, claim, class)
	if err != nil {
		return nil, &cloud.CreateError{
			Reason: "InstanceTypeResolutionFailed", Message: "Error resolving instance types",
			Err: fmt.Errorf("instance types of node class %s: %w", class.Name, err),
		}
	}
	extras, err := p.extrasFor(ctx, claim, class)
	if err != nil {
		return nil, err
	}
	types = p.prices.Add(claim.Labels[v1.NodePoolLabelKey]+"/"+class.Name, types, extras)
	want := &launch.Want{
		Labels:   cloud.Demand(claim),
		Requests: claim.Spec.Resources.Requests,
		Relaxed:  claim.Annotations[v1.NodeClaimMinValuesRelaxedAnnotationKey] == "true",
	}
	candidates, why := p.decisions.narrow(types, want)
	if len(candidates) == 0 {
		return nil, &cloud.InsufficientCapacityError{Err: fmt.Errorf("all requested instance types were unavailable during launch: %s", why)}
	}
	order := &template.Want{
		Claim: claim, Class: class, Candidates: candidates,
		CapacityType: launch.CapacityType(candidates, want), Tenancy: launch.Tenancy(want),
		OwnPrices: nodeprice.Reorder(extras),
	}
	group, err := p.config.Group(ctx, class)
	if err != nil {
		return nil, fmt.Errorf("placement group of node class %s: %w", class.Name, err)
	}
	if group != nil {
		order.GroupID = group.ID
	}
	if group != nil && group.Strategy == partitioned {
		order.Partition = launch.Partition(want)
	}
	warnInflexible(ctx, order, want)
	return order, nil
}

// partitioned is the strategy of placement groups that have partitions.
const partitioned = "partition"

// typesFor returns what is available as the claim's pool sees it, at the prices of
// instances.
func (p *Provider) typesFor(ctx context.Context, claim *v1.NodeClaim, class *awsv1.EC2NodeClass) ([]*cloud.InstanceType, error) {
	types, err := p.config.Types(ctx, class)
	if pool := claim.Labels[v1.NodePoolLabelKey]; err == nil && p.config.Overlay != nil && pool != "" {
		return p.config.Overlay(pool, types)
	}
	return types, err
}

// extrasFor returns what the claim's node costs besides its instance.
func (p *Provider) extrasFor(ctx context.Context, claim *v1.NodeClaim, class *awsv1.EC2NodeClass) ([]model.Extra, error) {
	extras := p.config.Extras(ctx, class)
	pool := claim.Labels[v1.NodePoolLabelKey]
	if p.config.Additional == nil || pool == "" {
		return extras, nil
	}
	more, err := p.config.Additional(ctx, pool)
	return append(extras, more...), err
}

// Extras returns what nodes of the pool's class cost besides their instances.
func (p *Provider) Extras(ctx context.Context, pool *v1.NodePool) ([]model.Extra, error) {
	class, err := p.class(ctx, pool.Spec.Template.Spec.NodeClassRef.Name)
	if err != nil {
		return nil, fmt.Errorf("node pool %s: %w", pool.Name, err)
	}
	return p.config.Extras(ctx, class), nil
}

// warnInflexible says in the log when spot capacity was wanted and few types
// made it unavailable.
func warnInflexible(ctx context.Context, order *template.Want, want *launch.Want) {
	const enough = 5
	bought, _ := want.Labels.Get(model.LabelCapacityType)
	if order.CapacityType == model.OnDemand && bought.Has(model.Spot) && len(order.Candidates) < enough {
		log.FromContext(ctx).Info("at least 5 instance types are recommended when flexible to spot but requesting on-demand, "+
			"as spot capacity is reclaimed less often the more there are to choose from", "instance-types", len(order.Candidates))
	}
}

// Delete implements cloud.Provider.
func (p *Provider) Delete(ctx context.Context, claim *v1.NodeClaim) error {
	id, ok := InstanceID(claim.Status.ProviderID)
	if !ok && claim.Status.ProviderID == "" && claim.UID != "" {
		// Something may have been launched that was never recorded.
		known, err := p.instances.Of(ctx, claimOf(claim))
		if err != nil {
			return err
		}
		if ok = known != nil; ok {
			id = known.ID
		}
	}
	if !ok {
		return unknown(claim.Status.ProviderID)
	}
	return p.instances.End(ctx, id)
}

// Get implements cloud.Provider. It says what EC2 says now.
func (p *Provider) Get(ctx context.Context, providerID string) (*cloud.Machine, error) {
	id, ok := InstanceID(providerID)
	if !ok {
		return nil, unknown(providerID)
	}
	found, err := p.instances.Read(ctx, id)
	if err != nil {
		return nil, err
	}
	return p.listed(found, p.catalogue(ctx, []*instance.Instance{found})), nil
}

// List implements cloud.Provider.
func (p *Provider) List(ctx context.Context) ([]*cloud.Machine, error) {
	list, err := p.instances.List(ctx)
	if err != nil {
		return nil, err
	}
	catalogue := p.catalogue(ctx, list)
	out := make([]*cloud.Machine, len(list))
	for i := range list {
		out[i] = p.listed(list[i], catalogue)
	}
	return out, nil
}

// InstanceTypes implements cloud.Provider.
func (p *Provider) InstanceTypes(ctx context.Context, pool *v1.NodePool) ([]*cloud.InstanceType, error) {
	ref := pool.Spec.Template.Spec.NodeClassRef
	if !cloud.Manages(p, ref) {
		return nil, fmt.Errorf("node pool %s: its node class is no EC2NodeClass", pool.Name)
	}
	class, err := p.class(ctx, ref.Name)
	if err != nil {
		return nil, fmt.Errorf("node pool %s: %w", pool.Name, err)
	}
	return p.config.Types(ctx, class)
}

func unknown(providerID string) error {
	return &cloud.NotFoundError{Err: fmt.Errorf("provider ID %q is of no EC2 instance", providerID)}
}

// InstanceID returns the ID in a provider ID such as
// aws:///us-west-2a/i-0123456789abcdef0; ok is false when there is none.
func InstanceID(providerID string) (id string, ok bool) {
	_, path, ok := strings.Cut(providerID, ":///")
	if !ok {
		return "", false
	}
	zone, id, ok := strings.Cut(path, "/")
	return id, ok && zone != "" && id != "" && !strings.Contains(id, "/")
}

func providerID(i *instance.Instance) string { return "aws:///" + i.Zone + "/" + i.ID }

// errNoClass says that there is no class to go by.
var errNoClass = errors.New("node class not found")
