// SPDX-License-Identifier: Apache-2.0

package microsoft

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"karpenter/api/azure/v1beta1"
	v1 "karpenter/api/v1"
	"karpenter/cloud"
	"karpenter/cloud/azure/azurefake"
	"karpenter/cloud/azure/azurefake/boot"
	"karpenter/cloud/azure/failure"
	"karpenter/cloud/azure/instancetype"
	"karpenter/cloud/azure/vm"
	"karpenter/model"
	"karpenter/sim/simcloud"
	"karpenter/sim/store"
)

// machine is a virtual machine as the Cloud shows it.
type machine struct {
	*simcloud.Machine
	pool, name string // of its AKS machine; without a pool the name of the virtual machine
	gone       bool   // nothing more will become of it
}

// remains is how long a machine whose creation has failed may stay, a network interface that
// is of no use, and a virtual machine without a bill.
const remains = 15 * time.Minute

// Look implements sim.Vendor.
func (s *Subscription) Look() error {
	now := looked{time.Now(), s.calls.Changes()}
	was := s.looked
	s.looked = now
	changed := false
	if now.changes != was.changes || !now.at.Equal(was.at) && s.moving() {
		var err error
		if changed, err = s.watch(); err != nil {
			return err
		}
	}
	learnt, err := s.learn()
	if err != nil {
		return err
	}
	if changed || learnt {
		s.show()
	}
	return nil
}

// moving reports whether machines change with time.
func (s *Subscription) moving() bool {
	for _, m := range s.machines {
		if !m.gone && (m.Deleting || m.Lost) {
			return true
		}
	}
	return len(s.failed) > 0 || len(s.odd) > 0
}

// watch takes in what virtual machines there are, and reports whether anything is
// new.
func (s *Subscription) watch() (changed bool, err error) {
	there, failed := map[string]bool{}, map[string]time.Time{}
	all := s.Azure.VMs()
	for _, vm := range all {
		if vm.Doom != nil {
			if err := s.fails(&vm, failed); err != nil {
				return false, err
			}
			continue
		}
		id := vm.ID + " " + vm.Created.String() // another one may have the name later
		there[id] = true
		m := s.machines[id]
		if m == nil {
			if m, err = s.machineOf(&vm); err != nil {
				return false, fmt.Errorf("virtual machine %s: %w", vm.Name, err)
			}
			s.machines[id], changed = m, true
			s.shown = append(s.shown, m.Machine)
		}
		switch {
		case vm.Evicted && !m.gone:
			m.gone, m.Ended, changed = true, time.Now(), true
		case vm.Deleting && !m.Deleting:
			m.Deleting, changed = true, true
		}
	}
	s.failed = failed
	if err := s.look(all); err != nil {
		return false, err
	}
	for id, m := range s.machines {
		if !there[id] && !m.gone {
			m.gone, m.Deleting, m.Ended, changed = true, true, time.Now(), true
		}
	}
	return changed, nil
}

// look notes what must not last: network interfaces that no virtual machine and no claim
// uses, and virtual machines without a bill. It is an error if one has.
func (s *Subscription) look(all []azurefake.VM) error {
	odd, used := map[string]time.Time{}, map[string]bool{}
	note := func(what string) error {
		since, known := s.odd[what]
		if !known {
			since = time.Now()
		}
		odd[what] = since
		if time.Since(since) > remains {
			return fmt.Errorf("%s, since %s", what, since.Sub(s.run.Started))
		}
		return nil
	}
	var errs []error
	for _, one := range all {
		used[one.Name] = true
		if one.Machine == "" && one.Running && len(one.Extensions) == 0 {
			errs = append(errs, note("virtual machine "+one.Name+" is not billed"))
		}
	}
	for claim := range store.All[*v1.NodeClaim](s.run.Store) {
		used[vm.Name(claim.Name)] = true
	}
	for name := range s.Azure.Interfaces() {
		if !used[name] {
			errs = append(errs, note("network interface "+name+" belongs to no virtual machine and no NodeClaim"))
		}
	}
	s.odd = odd
	return errors.Join(errs...)
}

// fails notes a machine whose creation will fail or has failed. It is an error if
// it should be gone by now.
func (s *Subscription) fails(vm *azurefake.VM, failed map[string]time.Time) error {
	since, known := s.failed[vm.ID]
	if !known {
		since = time.Now().Add(creation)
		capacityType := model.OnDemand
		if vm.Spot {
			capacityType = model.Spot
		}
		attempt := s.attempt(vm.SKU.Name, vm.Zone, capacityType)
		s.lacks(attempt, attempt.Allocation(failure.Error{Code: vm.Doom.Code, Text: vm.Doom.Message}))
	}
	failed[vm.ID] = since
	if time.Since(since) > remains {
		return fmt.Errorf("virtual machine %s, whose creation failed at %s, is still there", vm.Name, since.Sub(s.run.Started))
	}
	return nil
}

// claimOf returns the name of the virtual machine's NodeClaim.
func claimOf(vm *azurefake.VM) string {
	if vm.Machine != "" {
		return vm.Tags[v1beta1.MachineNodeClaimTagKey]
	}
	return cmp.Or(vm.Tags[v1beta1.NodeClaimTagKey], strings.TrimPrefix(vm.Name, "aks-"))
}

// machineOf boots the virtual machine.
func (s *Subscription) machineOf(vm *azurefake.VM) (*machine, error) {
	name, of := vm.Machine, pool
	if name == "" {
		name, of = vm.Name, ""
		if err := boot.Describe(vm); err != nil {
			return nil, err
		}
	}
	node, err := boot.Node(vm, Region, overhead)
	if err != nil {
		return nil, err
	}
	node.Status.NodeInfo.KubeletVersion = "v" + Kubernetes
	o := simcloud.Offering{Type: vm.SKU.Name, Zone: instancetype.ZoneLabel(Region, vm.Zone), CapacityType: model.OnDemand}
	if vm.Spot {
		o.CapacityType = model.Spot
	}
	out := &machine{pool: of, name: name, Machine: &simcloud.Machine{
		Machine: cloud.Machine{
			ProviderID: node.Spec.ProviderID, Created: vm.Created, ImageID: vm.Image,
			Labels: node.Labels, Capacity: node.Status.Capacity, Allocatable: node.Status.Allocatable,
			Claim: claimOf(vm), ClaimUID: types.UID(node.Spec.ProviderID),
		},
		Offering: o, Price: s.price(o), Node: node,
	}}
	if claim := store.Find[*v1.NodeClaim](s.run.Store, "", out.Claim); claim != nil {
		out.ClaimUID = claim.UID
	}
	return out, nil
}

// price is what the offering costs.
func (s *Subscription) price(o simcloud.Offering) model.Price {
	for _, t := range s.sold {
		if t.Name != o.Type {
			continue
		}
		for i := range t.Offerings {
			if x := &t.Offerings[i]; x.Zone() == o.Zone && x.CapacityType() == o.CapacityType {
				return x.Price
			}
		}
	}
	return 0
}

// show has the Cloud show everything.
func (s *Subscription) show() {
	out := make([]*simcloud.Machine, len(s.shown))
	for i, m := range s.shown {
		one := *m
		out[i] = &one
	}
	s.run.Cloud.Show(out, slices.Clone(s.sold))
}
