// SPDX-License-Identifier: Apache-2.0

package amazon

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/ec2"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"

	"github.com/prometheus/client_golang/prometheus"

	awsv1 "karpenter/api/aws/v1"
	"karpenter/cloud"
	"karpenter/cloud/aws/awsfake"
	"karpenter/cloud/aws/catalogue"
	"karpenter/cloud/aws/client"
	"karpenter/cloud/aws/instancetype"
	"karpenter/cloud/aws/shortage"
	"karpenter/cmd/karpenter/wiring"
	"karpenter/model"
	"karpenter/sim"
	"karpenter/sim/simcloud"
	"karpenter/sim/store"
)

// Class is the name of the EC2NodeClass.
const Class = "default"

// overhead is the share of their types' memory that instances do not see. The
// provider reckons with a larger one.
const overhead = 0.05

// Config says what account there is.
type Config struct {
	Types  []string                 // on sale; nil = all of EC2's
	Zones  []string                 // in which they are; nil = all
	NoSpot []string                 // types that are not offered as spot
	Limits map[string]awsfake.Limit // of the rates of calls; nil = none
}

// Account is the AWS of a run.
type Account struct {
	AWS *awsfake.AWS

	run      *sim.Run
	services *client.Services // without door
	types    map[ec2types.InstanceType]ec2types.InstanceTypeInfo
	zones    map[string]string // their IDs by name
	sells    *catalogue.Catalogue
	calls    sim.Calls

	sold     []*cloud.InstanceType // nil = not known yet
	machines map[string]*machine   // by ID
	shown    []*simcloud.Machine   // in the order of their launch
	looked   looked
}

var (
	_ sim.Vendor    = (*Account)(nil)
	_ simcloud.Real = (*Account)(nil)
)

// looked is what there was when the account was looked at last.
type looked struct {
	at      time.Time
	changes int   // of calls
	version int64 // of the API
}

// New makes the account of a run, for Setup.Vendor.
func New(c Config, run *sim.Run) (*Account, error) {
	fake, err := awsfake.New(awsfake.Config{
		Clock: clock.RealClock{}, Types: c.Types, Limits: c.Limits,
		BootDelay: 15 * time.Second, ShutdownDelay: simcloud.Stopping, VisibleAfter: 2 * time.Second, ProfileDelay: 8 * time.Second,
	})
	if err != nil {
		return nil, err
	}
	a := &Account{AWS: fake, run: run, services: fake.Services(), machines: map[string]*machine{}, zones: map[string]string{}}
	a.types = map[ec2types.InstanceType]ec2types.InstanceTypeInfo{}
	ctx := context.Background()
	for pages := ec2.NewDescribeInstanceTypesPaginator(a.services.EC2, &ec2.DescribeInstanceTypesInput{}); pages.HasMorePages(); {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, err
		}
		for _, t := range page.InstanceTypes {
			a.types[t.InstanceType] = t
		}
	}
	subnets, err := a.services.EC2.DescribeSubnets(ctx, &ec2.DescribeSubnetsInput{})
	if err != nil {
		return nil, err
	}
	for _, s := range subnets.Subnets {
		a.zones[*s.AvailabilityZone] = *s.AvailabilityZoneId
	}
	a.restrict(c)
	a.sells, err = catalogue.New(catalogue.Config{
		EC2: a.services.EC2, Pricing: a.services.Pricing, Clock: clock.RealClock{}, Metrics: catalogue.NewMetrics(prometheus.NewRegistry()),
		Cluster: instancetype.Cluster{Region: fake.Config().Region, MemoryOverhead: 0.075}, Shortages: &shortage.Log{}, Memory: &instancetype.Memory{},
	})
	if err != nil {
		return nil, err
	}
	if err := a.sells.Refresh(ctx); err != nil {
		return nil, err
	}
	run.Cloud.Stand(a)
	return a, nil
}

// restrict takes off the market what the Config does not want there.
func (a *Account) restrict(c Config) {
	wanted := map[string]bool{}
	for _, zone := range c.Zones {
		wanted[zone] = true
	}
	for zone := range a.zones {
		if c.Zones != nil && !wanted[zone] {
			a.AWS.Offer("", zone, false)
		}
	}
	for _, name := range c.NoSpot {
		a.AWS.SetSpotPrice(name, "", 0)
	}
}

// NodeClass is an EC2NodeClass as users of the account have it.
func NodeClass() *awsv1.EC2NodeClass {
	const cluster = "cluster"
	discovered := map[string]string{"karpenter.sh/discovery": cluster}
	class := &awsv1.EC2NodeClass{ObjectMeta: metav1.ObjectMeta{Name: Class}}
	class.Spec = awsv1.EC2NodeClassSpec{
		Role:                       "KarpenterNodeRole-" + cluster,
		AMISelectorTerms:           []awsv1.AMISelectorTerm{{Alias: "al2023@latest"}},
		SubnetSelectorTerms:        []awsv1.SubnetSelectorTerm{{Tags: discovered}},
		SecurityGroupSelectorTerms: []awsv1.SecurityGroupSelectorTerm{{Tags: discovered}},
	}
	return class
}

// Provider implements sim.Vendor.
func (a *Account) Provider(ctx context.Context, d sim.Door, s wiring.Supplies) (wiring.Provider, error) {
	from := wiring.Amazon{Services: behind(a.services, &life{&a.calls, d}), CABundle: a.AWS.Config().CertificateAuthority}
	return wiring.AWS(ctx, from, s)
}

// Calls returns how often each operation was called by the process.
func (a *Account) Calls() map[string]int {
	return a.calls.Made()
}

// Lose implements simcloud.Real: the instance is interrupted.
func (a *Account) Lose(providerID string) {
	if m := a.machines[idOf(providerID)]; m != nil && a.AWS.Lose(idOf(providerID)) == nil {
		m.Lost = true
		a.calls.Changed()
	}
}

// SetPrice implements simcloud.Real.
func (a *Account) SetPrice(o simcloud.Offering, price model.Price) {
	if o.CapacityType == model.Spot {
		a.AWS.SetSpotPrice(o.Type, o.Zone, price.Dollars())
	} else {
		a.AWS.SetOnDemandPrice(o.Type, price.Dollars())
	}
}

// SetEmpty implements simcloud.Real.
func (a *Account) SetEmpty(o simcloud.Offering, empty bool) {
	left := int64(-1)
	if empty {
		left = 0
	}
	a.AWS.Stock(awsfake.Pool{Type: o.Type, Zone: o.Zone, CapacityType: o.CapacityType}, left)
}

// SetLag implements simcloud.Real.
func (a *Account) SetLag(lag time.Duration) { a.AWS.SetVisibleAfter(lag) }

// Look implements sim.Vendor.
func (a *Account) Look() error {
	now := looked{time.Now(), a.calls.Changes(), a.run.Store.Version()}
	was := a.looked
	a.looked = now
	if a.sold == nil {
		if err := a.learn(); err != nil {
			return err
		}
	}
	assigned := false
	if now.version != was.version {
		assigned = a.assign()
	}
	if now.changes == was.changes && (now.at.Equal(was.at) || !a.moving()) && !assigned {
		return nil
	}
	changed, err := a.watch()
	if err != nil {
		return err
	}
	if changed || assigned {
		a.show()
	}
	return nil
}

// learn has the Cloud know the types that the class is offered, once it has been
// resolved.
func (a *Account) learn() error {
	class := store.Find[*awsv1.EC2NodeClass](a.run.Store, "", Class)
	if class == nil || len(class.Status.Subnets) == 0 || len(class.Status.AMIs) == 0 {
		return nil
	}
	sold, err := a.sells.Types(context.Background(), class)
	if err != nil {
		return fmt.Errorf("what EC2NodeClass %s is offered: %w", Class, err)
	}
	a.sold = a.priced(sold)
	a.show()
	return nil
}

// priced returns the types with only those offerings available that have a price.
func (a *Account) priced(types []*cloud.InstanceType) []*cloud.InstanceType {
	out := make([]*cloud.InstanceType, len(types))
	for i, t := range types {
		one := *t
		one.Offerings = slices.Clone(t.Offerings)
		for j := range one.Offerings {
			o := &one.Offerings[j]
			_, ok := a.AWS.Price(awsfake.Pool{Type: t.Name, Zone: o.Zone(), CapacityType: o.CapacityType()})
			o.Available = o.Available && ok
		}
		out[i] = &one
	}
	return out
}

// life is the way of one process to AWS.
type life struct {
	*sim.Calls
	door sim.Door
}

// through makes a call when the door lets it. A long poll does not wait at the
// door, as time would not pass meanwhile.
func through[In, Out, Option any](ctx context.Context, l *life, verb string, in In, call func(context.Context, In, ...Option) (Out, error)) (Out, error) {
	l.Count(verb)
	if verb == "ReceiveMessage" {
		return call(ctx, in)
	}
	var out Out
	err := l.door(ctx, verb, "", in, !client.Reads(verb), func() (err error) {
		out, err = call(ctx, in)
		if verb == "CreateFleet" || verb == "TerminateInstances" {
			l.Changed()
		}
		return err
	})
	if err != nil {
		var none Out
		return none, err
	}
	return out, nil
}
