// SPDX-License-Identifier: Apache-2.0

package vm

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/runtime"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/compute/armcompute/v7"
	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/network/armnetwork/v9"
	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/resourcegraph/armresourcegraph"
	"golang.org/x/sync/singleflight"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"karpenter/api/azure/v1beta1"
	v1 "karpenter/api/v1"
	"karpenter/cloud"
	"karpenter/cloud/azure/bootstrap"
	"karpenter/cloud/azure/failure"
	"karpenter/cloud/azure/instancetype"
	"karpenter/cloud/azure/launch"
	"karpenter/cloud/azure/machine"
	"karpenter/model"
)

const (
	// poll is how often Azure is asked whether a network interface is ready, unless it
	// says itself when.
	poll = 3 * time.Second
	// lag is how long Resource Graph may not show a virtual machine that was launched.
	lag = 2 * time.Minute
	// usualQuotaPeriod is what kubelets do by themselves.
	usualQuotaPeriod = 100 * time.Millisecond
)

// Config is what VMs works with. Everything is required but what says otherwise. Cluster,
// SSHKey and Token are for launches only.
type Config struct {
	Machines   *armcompute.VirtualMachinesClient
	Extensions *armcompute.VirtualMachineExtensionsClient
	Interfaces *armnetwork.InterfacesClient
	Balancers  *armnetwork.LoadBalancersClient
	Groups     *armnetwork.SecurityGroupsClient
	Graph      *armresourcegraph.Client
	Clock      clock.PassiveClock

	Subscription      string
	NodeResourceGroup string
	Region            string
	Subnet            string // ARM ID, of classes that name none
	Cluster           bootstrap.Cluster
	SSHKey            string   // public key of the administrator
	Identities        []string // ARM IDs of managed identities of all virtual machines; nil = none
	DiskEncryptionSet string   // ARM ID; "" = none
	// Billed says that AKS bills virtual machines by an extension: it does in some
	// clouds.
	Billed bool
	// Token returns a bootstrap token for a virtual machine that is to be launched now.
	Token func(context.Context) (string, error)
}

// VMs is the virtual machines of a cluster. Safe for concurrent use.
type VMs struct {
	config  Config
	deletes singleflight.Group // by name

	reading   chan struct{} // holds something while what follows is used, and Azure may be asked
	joins     joins
	joinsRead time.Time

	mu       sync.Mutex
	launched map[string]launched // a short time ago, by name
	bills    map[string]bill     // by name; none is known of others
}

// launched is a virtual machine that lists may lack yet.
type launched struct {
	machine *machine.Machine
	at      time.Time
}

// New returns the virtual machines of the cluster.
func New(c Config) *VMs {
	return &VMs{config: c, launched: map[string]launched{}, bills: map[string]bill{}, reading: make(chan struct{}, 1)}
}

// id is the ARM ID of something in the resource group of the nodes.
func (c *Config) id(kind, name string) string {
	return "/subscriptions/" + c.Subscription + "/resourceGroups/" + c.NodeResourceGroup + "/providers/" + kind + "/" + name
}

// vmID is the ARM ID of a virtual machine.
func (c *Config) vmID(name string) string { return c.id("Microsoft.Compute/virtualMachines", name) }

// Name returns the name of the virtual machine of a NodeClaim.
func (v *VMs) Name(claim string) (string, error) { return Name(claim), nil }

// Identities returns the managed identities that virtual machines are to have.
func (v *VMs) Identities() []string { return v.config.Identities }

// KubeletIdentity is the client ID of the managed identity that kubelets use.
func (v *VMs) KubeletIdentity() string { return v.config.Cluster.KubeletIdentity }

// OfVM returns the name of the virtual machine with the provider ID of a node. It is not
// ok if the ID is not of one that may be here.
func (v *VMs) OfVM(providerID string) (name string, ok bool) {
	name, ok = machine.VMName(providerID)
	name = strings.ToLower(name)
	return name, ok && strings.HasPrefix(name, prefix) && strings.EqualFold(providerID, machine.ProviderID(v.config.vmID(name)))
}

// Launch makes a network interface and a virtual machine that does not exist, and
// returns it as soon as Azure has accepted it; one without a NodePool, when it has been
// created. The error of a virtual machine that does
// exist is a *machine.ExistsError. The network interface of a launch that fails stays for
// the next attempt: Azure keeps it for a virtual machine of the name, and it could not
// be made again before it is gone. Who makes none calls Abandon.
func (v *VMs) Launch(ctx context.Context, want *machine.Want) (*machine.Machine, error) {
	name := Name(want.Claim.Name)
	text, err := v.config.Token(ctx)
	if err != nil {
		return nil, &cloud.CreateError{Reason: "BootstrapTokenUnavailable", Message: "there is no bootstrap token for the node: " + err.Error(), Err: err}
	}
	own := *want
	own.Tags = named(want.Claim.Name, name, want.Tags)
	o := &order{Want: &own, config: &v.config, name: name, token: text}
	if o.joins, err = v.joinable(ctx, 0); err != nil {
		return nil, err
	}
	body, err := o.virtualMachine()
	if err != nil {
		return nil, err
	}
	if err := v.connect(ctx, o); err != nil {
		return nil, err
	}
	poller, err := v.config.Machines.BeginCreateOrUpdate(ctx, v.config.NodeResourceGroup, name, body,
		&armcompute.VirtualMachinesClientBeginCreateOrUpdateOptions{IfNoneMatch: to.Ptr("*")})
	if err == nil && want.Claim.Labels[v1.NodePoolLabelKey] == "" {
		// Nobody launches another one if the creation of this one fails later.
		_, err = poller.PollUntilDone(ctx, &runtime.PollUntilDoneOptions{Frequency: poll})
	}
	if status(err) == http.StatusPreconditionFailed {
		return nil, &machine.ExistsError{Name: name}
	}
	if err != nil {
		return nil, v.failed(ctx, o, fmt.Errorf("create virtual machine %s: %w", name, err))
	}
	out := v.made(o, imageOf(body.Properties.StorageProfile.ImageReference))
	v.mu.Lock()
	defer v.mu.Unlock()
	v.launched[name] = launched{out, out.Created}
	delete(v.bills, name) // that of another one of the name
	return out, nil
}

// made is the virtual machine that Azure has accepted.
func (v *VMs) made(o *order, image string) *machine.Machine {
	id := v.config.vmID(o.name)
	return &machine.Machine{
		ID: id, Name: o.name, VM: id, Claim: o.Claim.Name, Size: o.Choice.Type.Name, Zone: o.Choice.Offering.Zone(), CapacityType: o.Choice.Offering.CapacityType(),
		ImageVersion: image, State: creating, Created: v.config.Clock.Now(), Tags: o.Tags, Identities: v.config.Identities,
	}
}

// connect makes the network interface. If something is gone that it was to join, that is read
// again, once.
func (v *VMs) connect(ctx context.Context, o *order) error {
	err := v.putInterface(ctx, o)
	if !o.joins.stale(err) {
		return err
	}
	fresh, unread := v.joinable(ctx, o.joins.round)
	if unread != nil {
		return errors.Join(err, unread)
	}
	o.joins = fresh
	return v.putInterface(ctx, o)
}

func (v *VMs) putInterface(ctx context.Context, o *order) error {
	var answer *http.Response
	poller, err := v.config.Interfaces.BeginCreateOrUpdate(runtime.WithCaptureResponse(ctx, &answer), v.config.NodeResourceGroup, o.name, o.networkInterface(), nil)
	if err != nil {
		return fmt.Errorf("create network interface %s: %w", o.name, err)
	}
	made := armnetwork.Interface{}
	if runtime.UnmarshalAsJSON(answer, &made) == nil && made.Properties != nil && made.Properties.ProvisioningState != nil &&
		*made.Properties.ProvisioningState == armnetwork.ProvisioningStateSucceeded {
		return nil // there is nothing to wait for
	}
	if _, err := poller.PollUntilDone(ctx, &runtime.PollUntilDoneOptions{Frequency: poll}); err != nil {
		return fmt.Errorf("create network interface %s: %w", o.name, err)
	}
	return nil
}

// failed looks at what a request for a virtual machine has left behind whose answer is
// an error, or is lost. If it was accepted, there is a virtual machine now.
func (v *VMs) failed(ctx context.Context, o *order, err error) error {
	found, unread := v.Get(ctx, o.name)
	switch {
	case unread == nil && (found.State != machine.Failed || !o.made(found)):
		return &machine.ExistsError{Name: o.name}
	case unread == nil:
		return errors.Join(err, v.Delete(ctx, o.name)) // its network interface goes with it
	case !cloud.IsNotFound(unread):
		return errors.Join(err, unread) // the next attempt finds out
	}
	return err
}

// made reports whether a launch of the order has made the virtual machine of its name.
func (o *order) made(found *machine.Machine) bool {
	return found.Claim == o.Claim.Name && found.Tags[v1beta1.ClusterTagKey] == o.Tags[v1beta1.ClusterTagKey]
}

// Abandon deletes the network interface of a launch that has failed. If Azure refuses
// that for now, it is logged: the sweep comes by.
func (v *VMs) Abandon(ctx context.Context, name string) error {
	_, err := v.config.Interfaces.BeginDelete(ctx, v.config.NodeResourceGroup, name, nil)
	if s := status(err); s >= http.StatusBadRequest && s < http.StatusInternalServerError {
		log.FromContext(ctx).Info("a network interface stays for now", "name", name, "why", err.Error())
		return nil
	}
	if err != nil {
		return fmt.Errorf("delete network interface %s: %w", name, err)
	}
	return nil
}

// Get returns the virtual machine. If there is none, or AKS made it, the error is a
// cloud.NotFoundError.
func (v *VMs) Get(ctx context.Context, name string) (*machine.Machine, error) {
	found, err := v.get(ctx, name, nil)
	if err != nil {
		return nil, err
	}
	out, err := v.read(found)
	if err != nil || out.State != machine.Failed {
		return out, err
	}
	// Only the instance view tells why.
	if found, err = v.get(ctx, name, to.Ptr(armcompute.InstanceViewTypesInstanceView)); err != nil {
		return nil, err
	}
	if out, err = v.read(found); err == nil {
		out.Failure = reason(found)
	}
	return out, err
}

func (v *VMs) get(ctx context.Context, name string, expand *armcompute.InstanceViewTypes) (*armcompute.VirtualMachine, error) {
	answer, err := v.config.Machines.Get(ctx, v.config.NodeResourceGroup, name, &armcompute.VirtualMachinesClientGetOptions{Expand: expand})
	if status(err) == http.StatusNotFound {
		return nil, &cloud.NotFoundError{Err: fmt.Errorf("virtual machine %s: %w", name, err)}
	}
	if err != nil {
		return nil, fmt.Errorf("read virtual machine %s: %w", name, err)
	}
	if answer.Tags[v1beta1.MachineNodeClaimTagKey] != nil {
		return nil, &cloud.NotFoundError{Err: fmt.Errorf("virtual machine %s is of an AKS machine", name)}
	}
	return &answer.VirtualMachine, nil
}

// reason returns why the creation of a virtual machine failed, nil if Azure does not say.
func reason(in *armcompute.VirtualMachine) *failure.Error {
	if in.Properties.InstanceView == nil {
		return nil
	}
	for _, s := range in.Properties.InstanceView.Statuses {
		if s == nil {
			continue
		}
		if code, ok := strings.CutPrefix(value(s.Code), "ProvisioningState/failed/"); ok {
			return &failure.Error{Code: code, Text: value(s.Message)}
		}
	}
	return nil
}

// List returns the virtual machines that NodePools launched. Azure may still show what
// is gone; what this process has launched lately is among them in any case.
func (v *VMs) List(ctx context.Context) ([]*machine.Machine, error) {
	all, err := rows[armcompute.VirtualMachine](ctx, &v.config, v.config.own(vmType, v1beta1.NodePoolTagKey))
	if err != nil {
		return nil, err
	}
	var out []*machine.Machine
	seen := map[string]bool{}
	for i := range all {
		if all[i].ID == nil || all[i].Name == nil || all[i].Tags == nil {
			return nil, errors.New("answer of Resource Graph: a virtual machine has no ID, name or tags")
		}
		read, err := v.read(&all[i])
		if err != nil { // Azure tells the rest soon
			log.FromContext(ctx).V(1).Info("a virtual machine is left out", "reason", err.Error())
			continue
		}
		if read.State == machine.Failed {
			if read, err = v.Get(ctx, read.Name); cloud.IsNotFound(err) {
				continue
			} else if err != nil {
				return nil, err
			}
		}
		seen[read.Name] = true
		out = append(out, read)
	}
	return append(out, v.unseen(seen)...), nil
}

// unseen returns what was launched lately and is not listed, and forgets the rest.
func (v *VMs) unseen(seen map[string]bool) []*machine.Machine {
	v.mu.Lock()
	defer v.mu.Unlock()
	var out []*machine.Machine
	now := v.config.Clock.Now()
	maps.DeleteFunc(v.launched, func(name string, l launched) bool { return seen[name] || now.Sub(l.at) >= lag })
	for _, name := range slices.Sorted(maps.Keys(v.launched)) {
		out = append(out, v.launched[name].machine)
	}
	return out
}

// Delete has Azure delete the virtual machine, with its network interface and disk, and
// returns as soon as Azure has accepted it. Calls at the same time become one. If there
// is none, the error is a cloud.NotFoundError.
func (v *VMs) Delete(ctx context.Context, name string) error {
	_, err, _ := v.deletes.Do(name, func() (any, error) {
		found, err := v.get(ctx, name, nil)
		if cloud.IsNotFound(err) {
			v.forget(name)
			return nil, err
		}
		if err != nil || found.Properties != nil && value(found.Properties.ProvisioningState) == string(machine.Deleting) {
			return nil, err
		}
		_, err = v.config.Machines.BeginDelete(ctx, v.config.NodeResourceGroup, name, &armcompute.VirtualMachinesClientBeginDeleteOptions{ForceDeletion: to.Ptr(true)})
		if err != nil {
			return nil, fmt.Errorf("delete virtual machine %s: %w", name, err)
		}
		v.forget(name)
		return nil, nil
	})
	return err
}

// forget has lists show of a virtual machine what Azure shows.
func (v *VMs) forget(name string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	delete(v.launched, name)
	delete(v.bills, name)
}

// Retag gives the virtual machine, and what belongs to it, the tags, and takes the dropped
// ones away; it adds managed identities that the virtual machine lacks. The virtual machine is the
// last, so that what fails is repeated as a whole. The error of one that has changed
// since it was read is one of Azure, with status 412.
func (v *VMs) Retag(ctx context.Context, name, _ string, tags map[string]string, dropped []string) error {
	found, err := v.get(ctx, name, nil)
	if err != nil {
		return err
	}
	known, err := v.read(found)
	if err != nil {
		return err
	}
	var lacks []string
	for _, id := range v.config.Identities {
		if !slices.ContainsFunc(known.Identities, func(has string) bool { return strings.EqualFold(has, id) }) {
			lacks = append(lacks, id)
		}
	}
	change := armcompute.VirtualMachineUpdate{Identity: identities(lacks)}
	if change.Identity != nil && ofSystem(found.Identity) { // which would be taken away
		change.Identity.Type = to.Ptr(armcompute.ResourceIdentityTypeSystemAssignedUserAssigned)
	}
	if merged := launch.Merge(known.Tags, tags, dropped); !maps.Equal(known.Tags, merged) {
		change.Tags = pointers(merged)
		if err := v.retagParts(ctx, name, tags, dropped); err != nil {
			return err
		}
	}
	if change.Tags == nil && change.Identity == nil {
		return nil
	}
	if _, err := v.config.Machines.BeginUpdate(ctx, v.config.NodeResourceGroup, name, change, &armcompute.VirtualMachinesClientBeginUpdateOptions{IfMatch: found.Etag}); err != nil {
		return fmt.Errorf("update virtual machine %s: %w", name, err)
	}
	return nil
}

// ofSystem reports whether Azure has given the virtual machine an identity of its own.
func ofSystem(identity *armcompute.VirtualMachineIdentity) bool {
	if identity == nil || identity.Type == nil {
		return false
	}
	return *identity.Type == armcompute.ResourceIdentityTypeSystemAssigned || *identity.Type == armcompute.ResourceIdentityTypeSystemAssignedUserAssigned
}

// retagParts changes the tags of the network interface, and replaces those of the
// extension, which nobody else sets.
func (v *VMs) retagParts(ctx context.Context, name string, tags map[string]string, dropped []string) error {
	joined, err := v.config.Interfaces.Get(ctx, v.config.NodeResourceGroup, name, nil)
	if err != nil {
		return fmt.Errorf("read network interface %s: %w", name, err)
	}
	merged := launch.Merge(texts(joined.Tags), tags, dropped)
	if _, err := v.config.Interfaces.UpdateTags(ctx, v.config.NodeResourceGroup, name, armnetwork.TagsObject{Tags: pointers(merged)}, nil); err != nil {
		return fmt.Errorf("update the tags of network interface %s: %w", name, err)
	}
	if !v.config.Billed {
		return nil
	}
	_, err = v.config.Extensions.BeginUpdate(ctx, v.config.NodeResourceGroup, name, billingExtension, armcompute.VirtualMachineExtensionUpdate{Tags: pointers(tags)}, nil)
	if err != nil && status(err) != http.StatusNotFound {
		return fmt.Errorf("update the tags of extension %s of virtual machine %s: %w", billingExtension, name, err)
	}
	return nil
}

// Unattached returns the names of network interfaces that launches of the cluster have made,
// and that no virtual machine of a NodePool uses.
func (v *VMs) Unattached(ctx context.Context, cluster string) ([]string, error) {
	all, err := rows[armnetwork.Interface](ctx, &v.config, v.config.own(interfaceType, v1beta1.ClusterTagKey))
	if err != nil || len(all) == 0 {
		return nil, err
	}
	machines, err := v.List(ctx)
	if err != nil {
		return nil, err
	}
	used := map[string]bool{}
	for _, m := range machines {
		used[m.Name] = true
	}
	var out []string
	for i := range all {
		if all[i].ID == nil {
			return nil, errors.New("answer of Resource Graph: a network interface has no ID")
		}
		if name := lastPart(*all[i].ID); !used[name] && value(all[i].Tags[v1beta1.ClusterTagKey]) == cluster {
			out = append(out, name)
		}
	}
	return out, nil
}

// read checks that Azure tells what must be known.
func (v *VMs) read(in *armcompute.VirtualMachine) (*machine.Machine, error) {
	if in.ID == nil {
		return nil, errors.New("a virtual machine has no ID")
	}
	name := lastPart(*in.ID)
	p := in.Properties
	switch {
	case p == nil || p.HardwareProfile == nil || p.HardwareProfile.VMSize == nil:
		return nil, fmt.Errorf("virtual machine %s: Azure does not tell its size", name)
	case p.StorageProfile == nil || p.StorageProfile.ImageReference == nil:
		return nil, fmt.Errorf("virtual machine %s: Azure does not tell its image", name)
	case len(in.Zones) > 1:
		return nil, fmt.Errorf("virtual machine %s: resource has multiple zones", name)
	}
	zone := ""
	if len(in.Zones) == 1 {
		zone = value(in.Zones[0])
	}
	id := v.config.vmID(name)
	out := &machine.Machine{
		ID: id, Name: name, VM: id, Claim: claimOf(name, in.Tags), Size: string(*p.HardwareProfile.VMSize), Zone: instancetype.ZoneLabel(v.config.Region, zone),
		CapacityType: model.OnDemand, ImageVersion: imageOf(p.StorageProfile.ImageReference), State: machine.State(value(p.ProvisioningState)), Tags: texts(in.Tags),
	}
	if p.Priority != nil && *p.Priority == armcompute.VirtualMachinePriorityTypesSpot {
		out.CapacityType = model.Spot
	}
	if p.TimeCreated != nil {
		out.Created = *p.TimeCreated
	}
	if in.Identity != nil {
		out.Identities = slices.Sorted(maps.Keys(in.Identity.UserAssignedIdentities))
	}
	return out, nil
}

// imageOf names the image.
func imageOf(of *armcompute.ImageReference) string {
	for _, id := range []*string{of.ID, of.CommunityGalleryImageID, of.SharedGalleryImageID} {
		if id != nil && *id != "" {
			return *id
		}
	}
	return strings.Join([]string{value(of.Publisher), value(of.Offer), value(of.SKU), value(of.Version)}, ":")
}

// status returns the HTTP status of an answer of Azure that is an error, else 0.
func status(err error) int {
	if answer, ok := errors.AsType[*azcore.ResponseError](err); ok {
		return answer.StatusCode
	}
	return 0
}

func value(text *string) string {
	if text == nil {
		return ""
	}
	return *text
}

func texts(values map[string]*string) map[string]string {
	out := make(map[string]string, len(values))
	for key, text := range values {
		out[key] = value(text)
	}
	return out
}

func pointers(values map[string]string) map[string]*string {
	out := make(map[string]*string, len(values))
	for key, value := range values {
		out[key] = &value
	}
	return out
}
