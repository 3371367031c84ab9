// SPDX-License-Identifier: Apache-2.0

package launch

import (
	"slices"

	awsv1 "karpenter/api/aws/v1"
	"karpenter/cloud"
	"karpenter/model"
)

// CapacityType returns the capacity type to launch: reserved if possible, else
// spot, else on demand.
func CapacityType(candidates []Candidate, want *Want) string {
	for _, capacityType := range []string{model.Reserved, model.Spot} {
		if want.allows(capacityType) && cheapest(candidates, ofType(capacityType)) != nil {
			return capacityType
		}
	}
	return model.OnDemand
}

// Tenancy returns the tenancy: shared hardware, unless the claim excludes it.
func Tenancy(want *Want) string {
	if r, _ := want.Labels.Get(awsv1.InstanceTenancyLabelKey); r.Has(awsv1.InstanceTenancyDefault) {
		return awsv1.InstanceTenancyDefault
	}
	return awsv1.InstanceTenancyDedicated
}

// Partition returns the partition of the placement group that is demanded, the
// first in the order of strings, or "" when EC2 may choose.
func Partition(want *Want) string {
	r, ok := want.Labels.Get(awsv1.PlacementGroupPartitionLabelKey)
	if !ok || r.Complement || len(r.Values) == 0 {
		return ""
	}
	return r.Values[0]
}

// Override is one alternative that EC2 may choose.
type Override struct {
	InstanceType  string
	Zone          string
	ReservationID string // "" but for reserved capacity
	Price         model.Price
}

// Overrides returns the alternatives of the capacity type, in the order of the
// candidates. Partitions of a placement group are one alternative.
func Overrides(candidates []Candidate, capacityType string) []Override {
	var out []Override
	seen := map[Override]bool{}
	for _, c := range candidates {
		for _, o := range c.Offerings {
			alternative := Override{InstanceType: c.Type.Name, Zone: o.Zone(), ReservationID: o.ReservationID}
			if o.CapacityType() != capacityType || seen[alternative] {
				continue
			}
			seen[alternative] = true
			alternative.Price = o.Price
			out = append(out, alternative)
		}
	}
	return out
}

// Subnet is one a machine may start in.
type Subnet struct {
	ID, Zone string
	Free     int64 // addresses
}

// Subnets returns, by zone, the subnet with most free addresses; the first one
// of several.
func Subnets(subnets []Subnet) map[string]Subnet {
	out := map[string]Subnet{}
	for _, s := range subnets {
		if best, ok := out[s.Zone]; !ok || s.Free > best.Free {
			out[s.Zone] = s
		}
	}
	return out
}

// Market returns EC2's name for the capacity type of the candidates, which is
// the default target capacity type of a fleet. All reserved offerings are of
// one kind, as Narrow leaves them.
func Market(candidates []Candidate, capacityType string) string {
	if capacityType != model.Reserved {
		return capacityType
	}
	kinds := func(m market) bool {
		return slices.ContainsFunc(candidates, func(c Candidate) bool {
			return slices.ContainsFunc(c.Offerings, func(o *cloud.Offering) bool { return marketOf(o) == m })
		})
	}
	switch {
	case kinds(block):
		return "capacity-block"
	case kinds(interruptible):
		return "reserved-capacity"
	}
	return model.OnDemand
}
