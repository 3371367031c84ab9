// SPDX-License-Identifier: Apache-2.0

package amazon

import (
	"cmp"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"slices"
	"strings"
	"time"

	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"k8s.io/apimachinery/pkg/types"

	"github.com/aws/aws-sdk-go-v2/aws"

	awsv1 "karpenter/api/aws/v1"
	v1 "karpenter/api/v1"
	"karpenter/cloud"
	"karpenter/cloud/aws/awsfake"
	"karpenter/cloud/aws/awsfake/boot"
	"karpenter/model"
	"karpenter/sim/simcloud"
	"karpenter/sim/store"
)

// machine is an instance as the Cloud shows it.
type machine struct {
	*simcloud.Machine
	named    []string // the claims it may be for, as its tags name them
	recorded bool     // by the claim that it is shown for
	gone     bool     // nothing more will become of it
}

// idOf returns the instance's ID in a provider ID.
func idOf(providerID string) string { return providerID[strings.LastIndexByte(providerID, '/')+1:] }

// moving reports whether instances change with time.
func (a *Account) moving() bool {
	for _, m := range a.machines {
		if !m.gone && (m.Deleting || m.Lost) {
			return true
		}
	}
	return false
}

// watch takes in what instances there are, and reports whether anything is new.
func (a *Account) watch() (changed bool, err error) {
	there := map[string]bool{}
	var fresh []*machine
	for _, i := range a.AWS.Instances() {
		id := *i.InstanceId
		there[id] = true
		m := a.machines[id]
		if m == nil {
			if m, err = a.machineOf(&i); err != nil {
				return false, fmt.Errorf("instance %s: %w", id, err)
			}
			a.machines[id] = m
			a.shown = append(a.shown, m.Machine)
			fresh = append(fresh, m)
		}
		changed = m.become(i.State.Name) || changed
	}
	for id, m := range a.machines {
		if !there[id] && m.become(ec2types.InstanceStateNameTerminated) {
			changed = true
		}
	}
	a.owners(fresh)
	return changed || len(fresh) > 0, nil
}

// become notes the instance's state, and reports whether it is another one.
func (m *machine) become(state ec2types.InstanceStateName) bool {
	switch {
	case m.gone:
		return false
	case state == ec2types.InstanceStateNameTerminated, state == ec2types.InstanceStateNameShuttingDown && m.Lost:
		m.gone, m.Deleting, m.Ended = true, true, time.Now()
		return true
	case state == ec2types.InstanceStateNameShuttingDown && !m.Deleting:
		m.Deleting = true
		return true
	}
	return false
}

// machineOf boots the instance: what its user data makes of it.
func (a *Account) machineOf(i *awsfake.Machine) (*machine, error) {
	text, err := base64.StdEncoding.DecodeString(i.UserData)
	if err != nil {
		return nil, fmt.Errorf("user data: %w", err)
	}
	settings, err := boot.Parse(string(text))
	if err != nil {
		return nil, err
	}
	zone := *i.Placement.AvailabilityZone
	described := boot.Machine{
		Instance: i.Instance, Type: a.types[i.InstanceType], Settings: settings, Region: a.AWS.Config().Region, ZoneID: a.zones[zone], Overhead: overhead,
	}
	node, err := described.Node()
	if err != nil {
		return nil, err
	}
	o := simcloud.Offering{Type: string(i.InstanceType), Zone: zone, CapacityType: model.OnDemand}
	if i.InstanceLifecycle == ec2types.InstanceLifecycleTypeSpot {
		o.CapacityType = model.Spot
	}
	dollars, _ := a.AWS.Price(awsfake.Pool{Type: o.Type, Zone: o.Zone, CapacityType: o.CapacityType})
	out := &machine{Machine: &simcloud.Machine{
		Machine: cloud.Machine{
			ProviderID: node.Spec.ProviderID, Created: *i.LaunchTime, ImageID: aws.ToString(i.ImageId),
			Labels: node.Labels, Capacity: node.Status.Capacity, Allocatable: node.Status.Allocatable,
		},
		Offering: o, Price: model.Price((dollars + i.Besides) * float64(model.Dollar)), Node: node,
	}}
	for _, tag := range i.Tags {
		if strings.HasPrefix(*tag.Key, awsv1.LaunchTagPrefix) {
			out.named = append(out.named, strings.Fields(*tag.Value)...)
		}
	}
	return out, nil
}

// short is how launch tags name a claim.
func short(uid types.UID) string {
	sum := sha256.Sum256([]byte(uid))
	return base64.RawURLEncoding.EncodeToString(sum[:])[:9]
}

// owners gives new instances to claims that they may be for: to those that have
// none yet, as long as there are such.
func (a *Account) owners(fresh []*machine) {
	if len(fresh) == 0 {
		return
	}
	claims, has := map[string]*v1.NodeClaim{}, map[types.UID]bool{}
	for c := range store.All[*v1.NodeClaim](a.run.Store) {
		claims[short(c.UID)] = c
	}
	for _, m := range a.machines {
		if m.Runs() && !m.Deleting {
			has[m.ClaimUID] = true
		}
	}
	slices.SortFunc(fresh, func(x, y *machine) int { return cmp.Compare(x.ProviderID, y.ProviderID) })
	for _, m := range fresh {
		var of *v1.NodeClaim
		for _, name := range m.named {
			if c := claims[name]; c != nil && (of == nil || has[of.UID] && !has[c.UID]) {
				of = c
			}
		}
		if of == nil { // they are all gone
			m.Claim, m.ClaimUID = "", types.UID(m.ProviderID)
			continue
		}
		m.Claim, m.ClaimUID = of.Name, of.UID
		has[of.UID] = true
	}
}

// assign has instances be those of the claims that record them, and reports
// whether that is news.
func (a *Account) assign() (news bool) {
	open := false
	for _, m := range a.machines {
		open = open || !m.recorded && !m.gone
	}
	if !open {
		return false
	}
	by := map[types.UID]*machine{}
	for _, m := range a.machines {
		if !m.gone {
			by[m.ClaimUID] = m
		}
	}
	for c := range store.All[*v1.NodeClaim](a.run.Store) {
		m := a.machines[idOf(c.Status.ProviderID)]
		if m == nil || m.recorded {
			continue
		}
		m.recorded, news = true, true
		if other := by[c.UID]; other != nil && other != m {
			other.Claim, other.ClaimUID = m.Claim, m.ClaimUID
			by[m.ClaimUID] = other
		}
		m.Claim, m.ClaimUID = c.Name, c.UID
		by[c.UID] = m
	}
	return news
}

// show has the Cloud show everything.
func (a *Account) show() {
	out := make([]*simcloud.Machine, len(a.shown))
	for i, m := range a.shown {
		one := *m
		out[i] = &one
	}
	a.run.Cloud.Show(out, a.sold)
}
