// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	aks "github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/containerservice/armcontainerservice/v8"
	"golang.org/x/sync/singleflight"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"karpenter/api/azure/v1beta1"
	"karpenter/cloud"
	"karpenter/cloud/azure/failure"
	"karpenter/cloud/azure/instancetype"
	"karpenter/cloud/azure/launch"
	"karpenter/cloud/batch"
	"karpenter/model"
)

// Config is what Machines works with. Everything is required but what says
// otherwise.
type Config struct {
	Machines      *aks.MachinesClient
	Pools         *aks.AgentPoolsClient
	ResourceGroup string // of the cluster
	Cluster       string
	Pool          string // of mode Machines
	Region        string
	Clock         clock.PassiveClock
	// Batching joins requests for machines; nil = each is one of its own.
	Batching *Batching
}

// Machines is the machines of an agent pool. Safe for concurrent use.
type Machines struct {
	config  Config
	deletes singleflight.Group              // by name
	lists   singleflight.Group              // of Recent
	batches *batch.Batcher[order, struct{}] // nil = there are none

	mu   sync.Mutex
	seen map[string]sighting // by name
}

// sighting is a machine as AKS has shown it.
type sighting struct {
	machine *Machine
	at      time.Time
}

// remembered is how old what Recent returns may be.
const remembered = time.Minute

// New returns the machines of the pool.
func New(c Config) *Machines {
	m := &Machines{config: c, seen: map[string]sighting{}}
	if c.Batching != nil {
		m.batches = m.newBatches(c.Batching)
	}
	return m
}

// Machine is a machine as AKS shows it.
type Machine struct {
	ID           string // ARM ID
	Name         string
	VM           string // ARM ID of the virtual machine
	Claim        string // name of the NodeClaim; "" = unknown
	Size         string
	Zone         string // label
	CapacityType string
	ImageVersion string
	Created      time.Time // zero = AKS does not say
	State        State
	Failure      *failure.Error // why provisioning failed; nil = it did not, or AKS does not say
	Gone         bool           // Azure or the user has deleted the virtual machine
	DriftAction  string
	Tags         map[string]string
	// Identities are the ARM IDs of managed identities of a virtual machine that
	// Karpenter made itself; AKS chooses those of others.
	Identities []string
}

// IsVM reports whether Karpenter made the virtual machine itself. An AKS machine is something
// beside its virtual machine.
func (m *Machine) IsVM() bool { return strings.EqualFold(m.ID, m.VM) }

// State is the provisioning state of a machine.
type State string

// The states that matter.
const (
	Failed   State = "Failed"
	Deleting State = "Deleting"
)

// Launch asks AKS for a machine that does not exist, and returns it as soon as
// AKS has accepted it. The error of a machine that does exist is a *ExistsError.
func (m *Machines) Launch(ctx context.Context, want *Want) (*Machine, error) {
	name, err := Name(want.Claim.Name)
	if err != nil {
		return nil, err
	}
	own := *want
	own.Tags = tagged(want.Claim.Name, want.Tags)
	body, err := own.Body()
	if err != nil {
		return nil, err
	}
	if err := m.put(ctx, order{name, body}); err != nil {
		return nil, err
	}
	created, err := m.Get(ctx, name)
	if err != nil {
		return nil, fmt.Errorf("read AKS machine %s, which was just created: %w", name, err)
	}
	return created, nil
}

// tagged returns the tags with that which names the NodeClaim.
func tagged(claim string, tags map[string]string) map[string]string {
	out := maps.Clone(tags)
	out[v1beta1.MachineNodeClaimTagKey] = claim
	return out
}

// Name returns the name of the machine of a NodeClaim.
func (m *Machines) Name(claim string) (string, error) { return Name(claim) }

// Identities are none: AKS chooses those of its machines.
func (m *Machines) Identities() []string { return nil }

// spotSystemNodes returns the header by which machines of mode System may be spot.
func spotSystemNodes() http.Header {
	out := http.Header{}
	out.Set("AllowSpotVMSystemNode", "true")
	return out
}

// put has AKS make a machine, alone or with others.
func (m *Machines) put(ctx context.Context, o order) error {
	if m.batches == nil {
		return m.putOne(ctx, o)
	}
	_, err := m.batches.Do(ctx, o)
	if err == nil {
		return nil
	}
	// The answer of an earlier request may have been lost.
	if _, unknown := m.Get(ctx, o.name); unknown == nil {
		return &ExistsError{Name: o.name}
	}
	return fmt.Errorf("create AKS machine %s in a batch: %w", o.name, err)
}

func (m *Machines) putOne(ctx context.Context, o order) error {
	ctx = policy.WithHTTPHeader(ctx, spotSystemNodes())
	_, err := m.config.Machines.BeginCreateOrUpdate(ctx, m.config.ResourceGroup, m.config.Cluster, m.config.Pool, o.name, o.body,
		&aks.MachinesClientBeginCreateOrUpdateOptions{IfNoneMatch: to.Ptr("*")})
	if status(err) == http.StatusPreconditionFailed {
		return &ExistsError{Name: o.name}
	}
	if err != nil {
		return fmt.Errorf("create AKS machine %s: %w", o.name, err)
	}
	return nil
}

// ExistsError says that a machine of the name exists already.
type ExistsError struct{ Name string }

func (e *ExistsError) Error() string { return fmt.Sprintf("instance %s exists", e.Name) }

// Get returns the machine. If there is none, the error is a cloud.NotFoundError.
func (m *Machines) Get(ctx context.Context, name string) (*Machine, error) {
	answer, err := m.config.Machines.Get(ctx, m.config.ResourceGroup, m.config.Cluster, m.config.Pool, name, nil)
	if err != nil {
		return nil, classify(fmt.Errorf("read AKS machine %s: %w", name, err))
	}
	out, err := m.read(&answer.Machine)
	if err == nil {
		m.see(out)
	}
	return out, err
}

// Recent is Get for who can do with what AKS has shown in the last minute, be it in
// a list: to ask about every machine every few minutes takes few calls then.
func (m *Machines) Recent(ctx context.Context, name string) (*Machine, error) {
	m.mu.Lock()
	last, known := m.seen[name]
	m.mu.Unlock()
	if known && m.config.Clock.Since(last.at) <= remembered {
		return last.machine, nil
	}
	if _, err, _ := m.lists.Do("", func() (any, error) { return m.List(ctx) }); err != nil {
		return nil, err
	}
	m.mu.Lock()
	last, known = m.seen[name]
	m.mu.Unlock()
	if known && m.config.Clock.Since(last.at) <= remembered {
		return last.machine, nil
	}
	return m.Get(ctx, name)
}

// see remembers machines, and forgets what is too old to be of use.
func (m *Machines) see(all ...*Machine) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := m.config.Clock.Now()
	maps.DeleteFunc(m.seen, func(_ string, s sighting) bool { return now.Sub(s.at) > remembered })
	for _, one := range all {
		m.seen[one.Name] = sighting{one, now}
	}
}

// forget has the next look at a machine ask AKS.
func (m *Machines) forget(name string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.seen, name)
}

// List returns all machines of the pool that a NodePool of Karpenter launched, and
// of which AKS tells what must be known.
func (m *Machines) List(ctx context.Context) ([]*Machine, error) {
	var out []*Machine
	pager := m.config.Machines.NewListPager(m.config.ResourceGroup, m.config.Cluster, m.config.Pool, nil)
	for pager.More() {
		page, err := pager.NextPage(ctx)
		if status(err) == http.StatusNotFound {
			return nil, nil // there is no pool, so there are no machines
		}
		if err != nil {
			return nil, fmt.Errorf("list the AKS agent pool %s: %w", m.config.Pool, err)
		}
		for _, item := range page.Value {
			if item == nil || item.Properties == nil || item.Properties.Tags[v1beta1.NodePoolTagKey] == nil {
				continue
			}
			read, err := m.read(item)
			if err != nil { // AKS tells the rest soon
				log.FromContext(ctx).V(1).Info("a machine is left out", "reason", err.Error())
				continue
			}
			out = append(out, read)
		}
	}
	m.see(out...)
	return out, nil
}

// Delete has AKS delete the machine, and returns as soon as AKS has accepted it.
// Calls at the same time become one. If there is no machine, the error is a
// cloud.NotFoundError.
func (m *Machines) Delete(ctx context.Context, name string) error {
	_, err, _ := m.deletes.Do(name, func() (any, error) {
		found, err := m.Get(ctx, name)
		if err != nil || found.State == Deleting {
			return nil, err
		}
		m.forget(name)
		_, err = m.config.Pools.BeginDeleteMachines(ctx, m.config.ResourceGroup, m.config.Cluster, m.config.Pool,
			aks.AgentPoolDeleteMachinesParameter{MachineNames: []*string{&name}}, nil)
		if err != nil {
			return nil, classify(fmt.Errorf("delete AKS machine %s: %w", name, err))
		}
		return nil, nil
	})
	return err
}

// Abandon has nothing to do: AKS makes all that belongs to a machine.
func (m *Machines) Abandon(context.Context, string) error { return nil }

// Retag gives the machine of a NodeClaim the tags, and takes the dropped ones away. The error of a machine
// that has changed since it was read is one of Azure, with status 412.
func (m *Machines) Retag(ctx context.Context, name, claim string, tags map[string]string, dropped []string) error {
	tags = tagged(claim, tags)
	answer, err := m.config.Machines.Get(ctx, m.config.ResourceGroup, m.config.Cluster, m.config.Pool, name, nil)
	if err != nil {
		return classify(fmt.Errorf("read AKS machine %s: %w", name, err))
	}
	known, err := m.read(&answer.Machine)
	if err != nil {
		return err
	}
	if tags = launch.Merge(known.Tags, tags, dropped); maps.Equal(known.Tags, tags) {
		return nil
	}
	m.forget(name)
	body := answer.Machine
	body.Properties.Tags = pointers(tags)
	_, err = m.config.Machines.BeginCreateOrUpdate(ctx, m.config.ResourceGroup, m.config.Cluster, m.config.Pool, name, body,
		&aks.MachinesClientBeginCreateOrUpdateOptions{IfMatch: body.Properties.ETag})
	if err != nil {
		return fmt.Errorf("update the tags of AKS machine %s: %w", name, err)
	}
	return nil
}

// OfVM returns the name of the machine with the provider ID of a node. It is not
// ok if the ID is not of a machine of the pool.
func (m *Machines) OfVM(providerID string) (name string, ok bool) {
	vm, ok := VMName(providerID)
	if !ok {
		return "", false
	}
	return NameOfVM(m.config.Pool, vm)
}

// read checks that AKS tells what must be known.
func (m *Machines) read(in *aks.Machine) (*Machine, error) {
	p := in.Properties
	missing := func(what string) (*Machine, error) {
		return nil, fmt.Errorf("AKS machine %s: irretrievable: AKS does not tell its %s", value(in.Name), what)
	}
	switch {
	case in.ID == nil || in.Name == nil:
		return missing("ID")
	case p == nil || p.ResourceID == nil:
		return missing("virtual machine")
	case p.Hardware == nil || p.Hardware.VMSize == nil:
		return missing("size")
	case p.NodeImageVersion == nil:
		return missing("image")
	}
	status := p.Status
	if status == nil {
		status = &aks.MachineStatus{}
	}
	zone, err := m.zone(in.Zones)
	if err != nil {
		return nil, fmt.Errorf("AKS machine %s: %w", *in.Name, err)
	}
	out := &Machine{
		ID:           *in.ID,
		Name:         *in.Name,
		VM:           *p.ResourceID,
		Size:         *p.Hardware.VMSize,
		Zone:         zone,
		CapacityType: model.OnDemand,
		ImageVersion: *p.NodeImageVersion,
		State:        State(value(p.ProvisioningState)),
		Failure:      reason(status.ProvisioningError),
		Tags:         map[string]string{},
	}
	if status.CreationTimestamp != nil {
		out.Created = status.CreationTimestamp.Truncate(10 * time.Millisecond)
	}
	// AKS tells the priority of spot only.
	if p.Priority != nil && *p.Priority == aks.ScaleSetPrioritySpot {
		out.CapacityType = model.Spot
	}
	out.Gone = status.VMState != nil && *status.VMState == aks.VMStateDeleted
	if status.DriftAction != nil {
		out.DriftAction = string(*status.DriftAction)
	}
	for key, text := range p.Tags {
		out.Tags[key] = value(text)
	}
	out.Claim = out.Tags[v1beta1.MachineNodeClaimTagKey]
	return out, nil
}

func (m *Machines) zone(zones []*string) (string, error) {
	switch len(zones) {
	case 0:
		return instancetype.ZoneLabel(m.config.Region, ""), nil
	case 1:
		return instancetype.ZoneLabel(m.config.Region, value(zones[0])), nil
	}
	return "", errors.New("resource has multiple zones")
}

// reason returns why provisioning failed: what the error details, or else the
// error itself.
func reason(e *aks.ErrorDetail) *failure.Error {
	if e == nil {
		return nil
	}
	if len(e.Details) > 0 && e.Details[0] != nil {
		e = e.Details[0]
	}
	return &failure.Error{Code: value(e.Code), Text: value(e.Message)}
}

// Refusal returns what an error of Launch says about the launch. It is nil if AKS
// has not answered with an error.
func Refusal(err error) *failure.Error {
	if of := (*BatchError)(nil); errors.As(err, &of) {
		return &failure.Error{Code: of.Code, Text: of.Message}
	}
	var answer *azcore.ResponseError
	if !errors.As(err, &answer) {
		return nil
	}
	return &failure.Error{Code: answer.ErrorCode, Text: answer.Error()}
}

// unknownMachine begins the text with which AKS rejects deleting what it does not
// know.
const unknownMachine = "Cannot find any valid"

// classify wraps errors that mean that there is no machine.
func classify(err error) error {
	var answer *azcore.ResponseError
	if !errors.As(err, &answer) {
		return err
	}
	none := answer.ErrorCode == "InvalidParameter" && strings.Contains(answer.Error(), unknownMachine)
	if answer.StatusCode == http.StatusNotFound || answer.StatusCode == http.StatusBadRequest && none {
		return &cloud.NotFoundError{Err: err}
	}
	return err
}

// status returns the HTTP status of an answer of Azure that is an error, else 0.
func status(err error) int {
	var answer *azcore.ResponseError
	if errors.As(err, &answer) {
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
