// SPDX-License-Identifier: Apache-2.0

package azure

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"golang.org/x/sync/singleflight"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"karpenter/api/azure/v1beta1"
	v1 "karpenter/api/v1"
	"karpenter/cloud"
	"karpenter/cloud/azure/failure"
	"karpenter/cloud/azure/image"
	"karpenter/cloud/azure/instancetype"
	"karpenter/cloud/azure/launch"
	"karpenter/cloud/azure/machine"
	"karpenter/cloud/azure/shortage"
	"karpenter/cloud/azure/vm"
	"karpenter/cloud/nodeprice"
	"karpenter/model"
)

// Config is what a Provider works with. Everything is required but what says
// otherwise.
type Config struct {
	Client client.Client // may read from a cache
	Clock  clock.PassiveClock
	// Machines are AKS machines, VMs virtual machines that Karpenter makes itself. One of
	// them may be nil. NewVMs says that new instances are VMs; those of the other kind
	// were made before the mode was changed.
	Machines *machine.Machines
	VMs      *vm.VMs
	NewVMs   bool
	Cluster  string            // name of the cluster
	Region   string            // of the cluster
	Tags     map[string]string // of all Azure resources; nil = none but Karpenter's and those of classes
	// Types returns the instance types of a class, as Shortages lets them be.
	Types func(context.Context, *v1beta1.AKSNodeClass) ([]*cloud.InstanceType, error)
	// Facts returns what is known of a VM size, nil if nothing is.
	Facts     func(size string) *instancetype.Facts
	Shortages *shortage.Log
	// Overlay says what NodeOverlays make of the types of a NodePool; see
	// overlay.Store. Nil means there are none.
	Overlay func(pool string, types []*cloud.InstanceType) ([]*cloud.InstanceType, error)
	// Additional returns what the user adds to the price of nodes of the NodePool of
	// a name; nil = nothing.
	Additional func(ctx context.Context, pool string) ([]model.Extra, error)
	Metrics    *Metrics
	// Disrupted counts a claim that the provider gives up.
	Disrupted func(ctx context.Context, claim *v1.NodeClaim, reason string)
	// Event tells users something about an object.
	Event func(object client.Object, eventType, reason, message string)
}

// fleet is the instances of one kind.
type fleet interface {
	// Name returns the name of the instance of a NodeClaim.
	Name(claim string) (string, error)
	// OfVM returns the name of the instance with a provider ID. It is not ok if the ID is
	// not of one.
	OfVM(providerID string) (name string, ok bool)
	// Identities are the managed identities that instances are to have.
	Identities() []string
	Launch(ctx context.Context, want *machine.Want) (*machine.Machine, error)
	Get(ctx context.Context, name string) (*machine.Machine, error)
	List(ctx context.Context) ([]*machine.Machine, error)
	Delete(ctx context.Context, name string) error
	// Abandon deletes what a launch that has failed has left behind of an instance.
	Abandon(ctx context.Context, name string) error
	// Retag gives the instance of a NodeClaim the tags, and takes the dropped ones away.
	Retag(ctx context.Context, name, claim string, tags map[string]string, dropped []string) error
}

// fleets are the instances that NodeClaims may have. The first launches new ones.
func (p *Provider) fleets() []fleet {
	var out []fleet
	if p.config.Machines != nil {
		out = append(out, p.config.Machines)
	}
	if p.config.VMs != nil {
		out = append(out, p.config.VMs)
	}
	if p.config.NewVMs {
		slices.Reverse(out)
	}
	return out
}

// clockSkew is how far the API server's clock may be ahead of this machine's.
const clockSkew = 5 * time.Minute

// inherited returns the fleets in which the claim may have an instance already. One of
// the other mode was made by a process before: for claims that are younger than the
// first launch of this one, Azure is not asked.
func (p *Provider) inherited(claim *v1.NodeClaim) []fleet {
	p.first.Do(func() { p.began = p.config.Clock.Now() })
	all := p.fleets()
	if claim.CreationTimestamp.After(p.began.Add(clockSkew)) {
		return all[:1]
	}
	return all
}

// find is Get of a fleet. If its instances are not those that are launched, and Azure
// does not show them to this process, it has made none.
func (p *Provider) find(ctx context.Context, of fleet, name string) (*machine.Machine, error) {
	m, err := of.Get(ctx, name)
	if of != p.fleets()[0] && isDenied(err) {
		return nil, &cloud.NotFoundError{Err: err}
	}
	return m, err
}

// isDenied reports whether Azure refuses the caller something.
func isDenied(err error) bool { return hasStatus(err, http.StatusForbidden) }

// hasStatus reports whether Azure has answered with the HTTP status.
func hasStatus(err error, status int) bool {
	answer, ok := errors.AsType[*azcore.ResponseError](err)
	return ok && answer.StatusCode == status
}

// fleetOf finds the instance with a provider ID. Names of AKS machines are narrower, so
// they count first. The fleet is nil if there is none.
func (p *Provider) fleetOf(providerID string) (of fleet, name string) {
	if p.config.Machines != nil {
		if name, ok := p.config.Machines.OfVM(providerID); ok {
			return p.config.Machines, name
		}
	}
	if p.config.VMs != nil {
		if name, ok := p.config.VMs.OfVM(providerID); ok {
			return p.config.VMs, name
		}
	}
	return nil, ""
}

// Provider launches and deletes instances of AKS clusters. Safe for concurrent use.
type Provider struct {
	config   Config
	launches singleflight.Group // by UID of the claim
	prices   nodeprice.Store
	first    sync.Once
	began    time.Time // the first launch; set by first
	// stateless is of CheckLaunches: how often in a row Azure has told no state of the
	// machine of a claim, by the claim's UID.
	stateless map[types.UID]int
}

var _ cloud.Provider = (*Provider)(nil)

// New returns a provider.
func New(c Config) *Provider { return &Provider{config: c} }

// Name implements cloud.Provider.
func (p *Provider) Name() string { return "azure" }

// NodeClasses implements cloud.Provider.
func (p *Provider) NodeClasses() []schema.GroupVersionKind {
	return []schema.GroupVersionKind{v1beta1.GroupVersion().WithKind(v1beta1.Kind)}
}

// Create implements cloud.Provider. If Azure refuses a size at once, the next best
// one is asked for in the same call.
func (p *Provider) Create(ctx context.Context, claim *v1.NodeClaim) (*cloud.Machine, error) {
	// A launch goes on when its caller does not wait for it any more: the next
	// call for the claim waits for it too.
	launching := p.launches.DoChan(string(claim.UID), func() (any, error) {
		return p.create(context.WithoutCancel(ctx), claim)
	})
	select {
	case answer := <-launching:
		m, _ := answer.Val.(*cloud.Machine)
		return m, answer.Err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (p *Provider) create(ctx context.Context, claim *v1.NodeClaim) (*cloud.Machine, error) {
	class, err := p.readyClass(ctx, claim)
	if err != nil {
		return nil, err
	}
	choice, err := p.choose(ctx, claim, class)
	if err != nil {
		return nil, err
	}
	launches := p.fleets()[0]
	name, err := launches.Name(claim.Name)
	if err != nil {
		return nil, err
	}
	existing, err := p.existing(ctx, claim)
	if err == nil {
		return p.adopt(ctx, claim, class, existing)
	}
	if !cloud.IsNotFound(err) {
		return nil, err
	}
	bounded, cancel := context.WithTimeout(ctx, longestLaunch)
	defer cancel()
	m, err := p.launch(bounded, claim, class, choice)
	if err == nil {
		return m, nil
	}
	if hasStatus(err, http.StatusTooManyRequests) {
		return nil, err // the next attempt needs what there is, and fewer requests
	}
	if left := launches.Abandon(ctx, name); left != nil {
		return nil, errors.Join(err, left)
	}
	return nil, err
}

// existing returns an instance that a launch of the claim has made before. The error is
// a cloud.NotFoundError if there is none.
func (p *Provider) existing(ctx context.Context, claim *v1.NodeClaim) (*machine.Machine, error) {
	for _, of := range p.inherited(claim) {
		name, err := of.Name(claim.Name)
		if err != nil {
			continue // nothing can have been launched
		}
		if m, err := p.find(ctx, of, name); !cloud.IsNotFound(err) {
			return m, err
		}
	}
	return nil, &cloud.NotFoundError{Err: fmt.Errorf("NodeClaim %s has no instance", claim.Name)}
}

// launch tries one offering after the other, beginning with the choice.
func (p *Provider) launch(ctx context.Context, claim *v1.NodeClaim, class *v1beta1.AKSNodeClass, choice cloud.Choice) (*cloud.Machine, error) {
	for range mostAttempts {
		m, retry, err := p.attempt(ctx, claim, class, choice)
		if !retry {
			return m, err
		}
		if choice, err = p.choose(ctx, claim, class); err != nil {
			return nil, err
		}
	}
	return nil, &cloud.InsufficientCapacityError{Err: fmt.Errorf("Azure has rejected %d offerings one after the other", mostAttempts)}
}

// longestLaunch is how long Azure may take to accept an instance, with all that is waited for. What
// it has made by then is found by the next attempt.
const longestLaunch = 10 * time.Minute

// mostAttempts bounds how many offerings a call asks for.
const mostAttempts = 20

// choose returns the best offering for the claim.
func (p *Provider) choose(ctx context.Context, claim *v1.NodeClaim, class *v1beta1.AKSNodeClass) (cloud.Choice, error) {
	instanceTypes, err := p.typesFor(ctx, claim, class)
	if err != nil {
		return cloud.Choice{}, &cloud.CreateError{
			Reason: "InstanceTypeResolutionFailed", Message: "Error resolving instance types",
			Err: fmt.Errorf("instance types of AKSNodeClass %s: %w", class.Name, err),
		}
	}
	if pool := claim.Labels[v1.NodePoolLabelKey]; p.config.Additional != nil && pool != "" {
		extras, err := p.config.Additional(ctx, pool)
		if err != nil {
			return cloud.Choice{}, err
		}
		instanceTypes = p.prices.Add(pool+"/"+class.Name, instanceTypes, extras)
	}
	return launch.Choose(instanceTypes, claim)
}

// attempt launches the claim. Retry says that Azure has refused the choice, and that
// it counts as short now, so that another one may do.
func (p *Provider) attempt(ctx context.Context, claim *v1.NodeClaim, class *v1beta1.AKSNodeClass, choice cloud.Choice) (m *cloud.Machine, retry bool, err error) {
	want, err := p.want(claim, class, choice)
	if err != nil {
		return nil, false, err
	}
	launches, pool := p.fleets()[0], claim.Labels[v1.NodePoolLabelKey]
	p.config.Metrics.starts.WithLabelValues(requested(want, pool)...).Inc()
	launched, err := launches.Launch(ctx, want)
	if exists := (*machine.ExistsError)(nil); errors.As(err, &exists) {
		if launched, err = launches.Get(ctx, exists.Name); err == nil {
			m, err = p.adopt(ctx, claim, class, launched)
		}
		if cloud.IsNotFound(err) { // it is of AKS, or gone meanwhile
			err = &cloud.CreateError{Reason: taken, Message: exists.Error() + ", and is not Karpenter's", Err: exists}
		}
		return m, false, err
	}
	switch {
	case err != nil:
		p.config.Metrics.failed(requested(want, pool), synchronous, machine.Refusal(err))
		return p.refused(claim, choice, err)
	case launched.State == machine.Failed:
		return nil, false, p.failed(ctx, launched, claim)
	}
	return p.launched(claim, class, launched, choice.Type), false, nil
}

// refused notes why Azure has not accepted a launch.
func (p *Provider) refused(claim *v1.NodeClaim, choice cloud.Choice, err error) (m *cloud.Machine, retry bool, _ error) {
	refusal := machine.Refusal(err)
	if refusal == nil {
		return nil, false, err
	}
	attempt := p.attemptOf(choice.Type.Name, choice.Offering.Zone(), choice.Offering.CapacityType())
	verdict := attempt.Request(*refusal)
	p.note(attempt.Size, verdict)
	facts := p.config.Facts(attempt.Size)
	retry = facts != nil && claim.Labels[v1.NodePoolLabelKey] != "" && p.config.Shortages.Short(&facts.SKU, attempt.Zone, attempt.CapacityType, p.config.Clock.Now())
	return nil, retry, verdict.Err(err)
}

// want says what is to be launched.
func (p *Provider) want(claim *v1.NodeClaim, class *v1beta1.AKSNodeClass, choice cloud.Choice) (*machine.Want, error) {
	if s := class.Status.LocalDNSState; s != nil && *s == v1beta1.LocalDNSStateEnabled {
		return nil, &cloud.NodeClassNotReadyError{Err: fmt.Errorf("AKSNodeClass %s: nodes cannot run localDNS yet; set spec.localDNS.mode to Disabled", class.Name)}
	}
	version, err := class.KubernetesVersion()
	if err != nil {
		return nil, err
	}
	images, err := class.Images()
	if err != nil {
		return nil, err
	}
	chosen, err := image.Choose(images, choice.Type.Name, choice.Type.Requirements)
	if err != nil {
		p.config.Metrics.unselected.WithLabelValues(string(image.Of(class, version).Family)).Inc()
		return nil, err
	}
	facts := p.config.Facts(choice.Type.Name)
	if facts == nil {
		return nil, fmt.Errorf("VM size %s is not offered any more", choice.Type.Name)
	}
	tags, err := p.tags(class, claim)
	if err != nil {
		return nil, &cloud.CreateError{Reason: "InvalidTags", Message: err.Error(), Err: err}
	}
	return &machine.Want{
		Claim: claim, Class: class, Kubernetes: version, Image: chosen, Choice: choice,
		SKU: facts.SKU, GPU: facts.GPU, Tags: tags,
	}, nil
}

// tags are those of the claim's instance; one more is left to its fleet.
func (p *Provider) tags(class *v1beta1.AKSNodeClass, claim *v1.NodeClaim) (map[string]string, error) {
	return launch.Tags(p.config.Tags, class, claim, p.config.Cluster, 1)
}

// taken is the reason of a launch whose name an instance has that is not the claim's.
const taken = "InstanceNameTaken"

// ofAnother returns why the instance, which has the name of the claim's, was not launched
// for it by this cluster, or nil. Nothing may be done to such an instance.
func (p *Provider) ofAnother(m *machine.Machine, claim *v1.NodeClaim) error {
	why, cluster := "", m.Tags[v1beta1.ClusterTagKey]
	switch {
	case m.Claim == "":
		why = "it has no tag " + v1beta1.MachineNodeClaimTagKey
	case m.Claim != claim.Name:
		why = "it belongs to NodeClaim " + m.Claim
	case m.IsVM() && cluster == "":
		why = "it has no tag " + v1beta1.ClusterTagKey
	case m.IsVM() && cluster != p.config.Cluster:
		why = fmt.Sprintf("its tag %s is %s, not %s", v1beta1.ClusterTagKey, cluster, p.config.Cluster)
	default:
		return nil
	}
	err := fmt.Errorf("instance %s exists and is not of NodeClaim %s: %s; it is neither used nor deleted. Delete it yourself, or delete the NodeClaim: the next one has another name", m.ID, claim.Name, why)
	return &cloud.CreateError{Reason: taken, Message: err.Error(), Err: err}
}

// adopt takes a machine that exists for the claim's, if it was launched for it.
func (p *Provider) adopt(ctx context.Context, claim *v1.NodeClaim, class *v1beta1.AKSNodeClass, m *machine.Machine) (*cloud.Machine, error) {
	if err := p.ofAnother(m, claim); err != nil {
		return nil, err
	}
	switch {
	case m.State == machine.Deleting || m.Gone:
		return nil, fmt.Errorf("instance %s of NodeClaim %s is being deleted", m.Name, claim.Name)
	case m.State == machine.Failed:
		return nil, p.failed(ctx, m, claim)
	}
	out := p.launched(claim, class, m, p.typeOf(ctx, claim, class, m.Size))
	// It was made with the tags that the class had then. Nobody else has had time to add any.
	out.Annotations[v1beta1.InPlaceUpdateTagsAnnotationKey] = keys(ownTags(m))
	return out, nil
}

// failed notes why the creation of the claim's machine has failed, deletes the machine
// and returns the error of its launch.
func (p *Provider) failed(ctx context.Context, m *machine.Machine, claim *v1.NodeClaim) error {
	p.config.Metrics.failed(made(m, claim.Labels[v1.NodePoolLabelKey]), asynchronous, m.Failure)
	cause := failure.Error{Text: fmt.Sprintf("Azure does not say why the creation of instance %s failed", m.Name)}
	if m.Failure != nil {
		cause = *m.Failure
	}
	attempt := p.attemptOf(m.Size, m.Zone, m.CapacityType)
	verdict := attempt.Allocation(cause)
	p.note(attempt.Size, verdict)
	err := verdict.Err(fmt.Errorf("instance %s: %s: %s", m.Name, cause.Code, cause.Text))
	of := fleet(p.config.Machines)
	if m.IsVM() {
		of = p.config.VMs
	}
	if gone := of.Delete(ctx, m.Name); gone != nil && !cloud.IsNotFound(gone) {
		return errors.Join(err, gone)
	}
	return err
}

// attemptOf describes a launch.
func (p *Provider) attemptOf(size, zone, capacityType string) failure.Attempt {
	out := failure.Attempt{Size: size, Zone: zone, CapacityType: capacityType}
	if facts := p.config.Facts(size); facts != nil {
		for _, number := range facts.Zones {
			out.Zones = append(out.Zones, instancetype.ZoneLabel(p.config.Region, number))
		}
	}
	return out
}

// note remembers what is short.
func (p *Provider) note(size string, v failure.Verdict) {
	now := p.config.Clock.Now()
	until := now.Add(v.Lasts)
	if v.AllSpot {
		p.config.Shortages.Spot(until, now)
	}
	facts := p.config.Facts(size)
	if facts == nil {
		return
	}
	for _, place := range v.Short {
		p.config.Shortages.Size(&facts.SKU, place.Zone, place.CapacityType, until, now)
	}
}

// Delete implements cloud.Provider.
func (p *Provider) Delete(ctx context.Context, claim *v1.NodeClaim) error {
	of, m, err := p.machineOf(ctx, claim)
	if err != nil {
		return err
	}
	return of.Delete(ctx, m.Name)
}

// machineOf returns the claim's instance and its fleet: by its provider ID, or by the
// claim's name if no launch was recorded.
func (p *Provider) machineOf(ctx context.Context, claim *v1.NodeClaim) (fleet, *machine.Machine, error) {
	if claim.Status.ProviderID != "" {
		return p.byProviderID(ctx, claim.Status.ProviderID)
	}
	var none error = &cloud.NotFoundError{Err: fmt.Errorf("NodeClaim %s has no instance", claim.Name)}
	for _, f := range p.fleets() {
		name, err := f.Name(claim.Name)
		if err != nil {
			continue // nothing can have been launched
		}
		m, err := p.find(ctx, f, name)
		if err == nil {
			if err = p.ofAnother(m, claim); err == nil {
				return f, m, nil
			}
			err = &cloud.NotFoundError{Err: err}
		}
		if !cloud.IsNotFound(err) {
			return nil, nil, err
		}
		none = err
	}
	return nil, nil, none
}

func (p *Provider) byProviderID(ctx context.Context, providerID string) (fleet, *machine.Machine, error) {
	unknown := &cloud.NotFoundError{Err: fmt.Errorf("provider ID %q is of no instance that is managed here", providerID)}
	of, name := p.fleetOf(providerID)
	if of == nil {
		return nil, nil, unknown
	}
	m, err := of.Get(ctx, name)
	if err == nil && !strings.EqualFold(machine.ProviderID(m.VM), providerID) {
		return nil, nil, unknown // another virtual machine has the name now
	}
	return of, m, err
}

// Get implements cloud.Provider.
func (p *Provider) Get(ctx context.Context, providerID string) (*cloud.Machine, error) {
	_, m, err := p.byProviderID(ctx, providerID)
	if err != nil {
		return nil, err
	}
	if m.Gone {
		return nil, &cloud.NotFoundError{Err: fmt.Errorf("the virtual machine of AKS machine %s is gone", m.Name)}
	}
	claims, err := p.claims(ctx)
	if err != nil {
		return nil, err
	}
	return p.listed(ctx, []*machine.Machine{m}, claims)[0], nil
}

// List implements cloud.Provider.
func (p *Provider) List(ctx context.Context) ([]*cloud.Machine, error) {
	claims, err := p.claims(ctx)
	if err != nil {
		return nil, err
	}
	var all []*machine.Machine
	for _, of := range p.fleets() {
		some, err := of.List(ctx)
		if of != p.fleets()[0] && isDenied(err) && !p.has(of, claims) {
			continue // this process may not see what it has never made
		}
		if err != nil {
			return nil, err
		}
		all = append(all, some...)
	}
	if claims, err = p.claims(ctx); err != nil { // those that were launched meanwhile
		return nil, err
	}
	recorded := map[string]bool{}
	for _, claim := range claims {
		recorded[strings.ToLower(claim.Status.ProviderID)] = true
	}
	all = slices.DeleteFunc(all, func(m *machine.Machine) bool {
		// Without its virtual machine, a machine is gone to its claim. It is listed
		// again when the claim is gone, too, so that it is collected.
		if m.Gone && claims[m.Claim] != nil {
			return true
		}
		// Another cluster collects its own.
		cluster := m.Tags[v1beta1.ClusterTagKey]
		return m.IsVM() && cluster != "" && cluster != p.config.Cluster && !recorded[strings.ToLower(machine.ProviderID(m.VM))]
	})
	return p.listed(ctx, all, claims), nil
}

// has reports whether one of the claims has an instance of the fleet.
func (p *Provider) has(of fleet, claims map[string]*v1.NodeClaim) bool {
	for _, claim := range claims {
		if its, _ := p.fleetOf(claim.Status.ProviderID); its == of {
			return true
		}
	}
	return false
}

// hasVM reports whether the claim's instance is a VM that Karpenter made.
func (p *Provider) hasVM(claim *v1.NodeClaim) bool {
	of, _ := p.fleetOf(claim.Status.ProviderID)
	return p.config.VMs != nil && of == fleet(p.config.VMs)
}

// InstanceTypes implements cloud.Provider.
func (p *Provider) InstanceTypes(ctx context.Context, pool *v1.NodePool) ([]*cloud.InstanceType, error) {
	class, err := p.usableClass(ctx, pool.Spec.Template.Spec.NodeClassRef)
	if err != nil {
		return nil, fmt.Errorf("node pool %s: %w", pool.Name, err)
	}
	return p.config.Types(ctx, class)
}

// Kubelet returns what is known about the kubelets of the pool's nodes.
func (p *Provider) Kubelet(ctx context.Context, pool *v1.NodePool) (cloud.Kubelet, error) {
	class, err := p.usableClass(ctx, pool.Spec.Template.Spec.NodeClassRef)
	if err != nil {
		return cloud.Kubelet{}, fmt.Errorf("node pool %s: %w", pool.Name, err)
	}
	version, err := class.KubernetesVersion()
	return cloud.Kubelet{Versions: []string{version}, Gates: class.Annotations[v1.KubeletFeatureGatesAnnotationKey]}, err
}

// claims returns the NodeClaims by name.
func (p *Provider) claims(ctx context.Context) (map[string]*v1.NodeClaim, error) {
	list := &v1.NodeClaimList{}
	if err := p.config.Client.List(ctx, list); err != nil {
		return nil, fmt.Errorf("list NodeClaims: %w", err)
	}
	out := map[string]*v1.NodeClaim{}
	for i := range list.Items {
		out[list.Items[i].Name] = &list.Items[i]
	}
	return out, nil
}
