// SPDX-License-Identifier: Apache-2.0

// Package failure says what Azure's errors about launches mean: what is short
// because of them, for how long, and what users are told. It computes with values
// only.
package failure

import (
	"cmp"
	"fmt"
	"regexp"
	"strings"
	"time"

	"karpenter/api/azure/v1beta1"
	"karpenter/cloud"
	"karpenter/model"
)

// Reasons of failed launches, on the condition Launched of NodeClaims.
const (
	SubscriptionQuotaReached              = "SubscriptionQuotaReached"
	SKUNotAvailable                       = "SKUNotAvailable"
	ZonalAllocationFailure                = "ZonalAllocationFailure"
	AllocationFailure                     = "AllocationFailure"
	OverconstrainedZonalAllocationFailure = "OverconstrainedZonalAllocationFailure"
	OverconstrainedAllocationFailure      = "OverconstrainedAllocationFailure"
	SubnetFull                            = "SubnetFull"
	CreateInstanceFailed                  = "CreateInstanceFailed"
)

// How long shortages last.
const (
	ordinary = time.Hour
	brief    = 10 * time.Minute
	lasting  = 23 * time.Hour
)

// Attempt is a launch that failed.
type Attempt struct {
	Size         string
	Zone         string   // label; "0" for a regional instance
	CapacityType string   // spot, on-demand
	Zones        []string // labels of all zones that offer the size, without "0"
}

// Place is where a size is short.
type Place struct{ Zone, CapacityType string }

// Verdict is what a failure means.
type Verdict struct {
	Short    []Place // of the size that was asked for
	AllSpot  bool    // no spot capacity of any size can be had
	Lasts    time.Duration
	Reason   string
	Message  string
	Regional bool // no other size would help
}

// Err returns the error of a provider for the verdict.
func (v Verdict) Err(cause error) error {
	if v.Regional {
		return &cloud.InsufficientCapacityError{Err: fmt.Errorf("%s: %w", v.Message, cause)}
	}
	return &cloud.CreateError{Reason: v.Reason, Message: v.Message, Err: cause}
}

// Error is an error of Azure, as far as it tells why a launch failed.
type Error struct{ Code, Text string }

// Allocation returns what an error of Azure about the allocation of an instance
// means.
func (a Attempt) Allocation(e Error) Verdict {
	for _, row := range table() {
		if row.code == e.Code && strings.Contains(e.Text, row.text) {
			verdict := row.verdict(a)
			if row.quota && !noQuotaAtAll(e.Text) {
				verdict.Lasts = brief
			}
			return verdict
		}
	}
	return Verdict{Reason: CreateInstanceFailed, Message: cmp.Or(e.Text, e.Code, "launch failed")}
}

// Request returns what the error means with which AKS refuses to create a machine
// at all.
func (a Attempt) Request(e Error) Verdict {
	if e.Code == "VMSizeNotSupported" || e.Code == "BadRequest" && strings.Contains(e.Text, "is not supported for subscription") {
		return Verdict{
			Short:   append(a.scope(everywhere, model.OnDemand), a.scope(everywhere, model.Spot)...),
			Lasts:   lasting,
			Reason:  SKUNotAvailable,
			Message: fmt.Sprintf("VM size %s is not supported for this subscription in this location", a.Size),
		}
	}
	return a.Allocation(e)
}

// extent is how far a shortage reaches.
type extent int

const (
	here       extent = iota // the zone of the attempt
	scope                    // all zones, or regional placement
	everywhere               // all zones and regional placement
)

// scope returns the places of an extent.
func (a Attempt) scope(e extent, capacityTypes ...string) []Place {
	var zones []string
	switch {
	case e == here:
		zones = []string{a.Zone}
	case e == everywhere:
		zones = append(append(zones, a.Zones...), v1beta1.RegionalZone)
	case a.Zone == v1beta1.RegionalZone:
		zones = []string{v1beta1.RegionalZone}
	default:
		zones = a.Zones
	}
	var out []Place
	for _, zone := range zones {
		for _, capacityType := range capacityTypes {
			out = append(out, Place{zone, capacityType})
		}
	}
	return out
}

// row is one kind of failure.
type row struct {
	code, text string
	quota      bool // short only briefly, unless there is no quota at all
	verdict    func(Attempt) Verdict
}

// table is the kinds of failures in the order in which they are looked for.
func table() []row {
	const notAllowed = "OperationNotAllowed"
	both := []string{model.OnDemand, model.Spot}
	return []row{
		{notAllowed, "LowPriorityCores", false, func(a Attempt) Verdict {
			return Verdict{AllSpot: true, Lasts: ordinary, Reason: SubscriptionQuotaReached,
				Message: "this subscription has reached the regional vCPU quota for spot (LowPriorityQuota)"}
		}},
		{notAllowed, "Family Cores quota", true, func(a Attempt) Verdict {
			return Verdict{Short: a.scope(everywhere, a.CapacityType), Lasts: ordinary, Reason: SubscriptionQuotaReached,
				Message: fmt.Sprintf("subscription level %s vCPU quota for %s has been reached (may try provision an alternative instance type)", a.CapacityType, a.Size)}
		}},
		{"SkuNotAvailable", "", false, func(a Attempt) Verdict {
			lasts := lasting
			if a.CapacityType == model.Spot {
				lasts = ordinary
			}
			return Verdict{Short: a.scope(scope, a.CapacityType), Lasts: lasts, Reason: SKUNotAvailable,
				Message: fmt.Sprintf("the requested SKU is unavailable for instance type %s in zone %s with capacity type %s", a.Size, a.Zone, a.CapacityType)}
		}},
		{"ZonalAllocationFailed", "", false, func(a Attempt) Verdict {
			return Verdict{Short: a.scope(here, both...), Lasts: ordinary, Reason: ZonalAllocationFailure,
				Message: fmt.Sprintf("unable to allocate resources in zone %s for %s", a.Zone, a.Size)}
		}},
		{"AllocationFailed", "", false, func(a Attempt) Verdict {
			return Verdict{Short: a.scope(scope, both...), Lasts: ordinary, Reason: AllocationFailure,
				Message: fmt.Sprintf("unable to allocate resources for %s", a.Size)}
		}},
		{"OverconstrainedZonalAllocationRequest", "", false, func(a Attempt) Verdict {
			return Verdict{Short: a.scope(here, a.CapacityType), Lasts: ordinary, Reason: OverconstrainedZonalAllocationFailure,
				Message: fmt.Sprintf("unable to allocate resources in zone %s for %s with capacity type %s", a.Zone, a.Size, a.CapacityType)}
		}},
		{"OverconstrainedAllocationRequest", "", false, func(a Attempt) Verdict {
			return Verdict{Short: a.scope(scope, a.CapacityType), Lasts: ordinary, Reason: OverconstrainedAllocationFailure,
				Message: fmt.Sprintf("unable to allocate resources for %s with capacity type %s", a.Size, a.CapacityType)}
		}},
		{"SubnetIsFull", "", false, noAddresses},
		{"InsufficientSubnetSize", "", false, noAddresses},
		{notAllowed, "exceeding approved Total Regional Cores quota", false, func(a Attempt) Verdict {
			return Verdict{Regional: true,
				Message: fmt.Sprintf("regional %s vCPU quota limit for subscription has been reached; ask Azure for more", a.CapacityType)}
		}},
	}
}

// noAddresses is the verdict when the subnet has no addresses left: no other size helps.
func noAddresses(Attempt) Verdict {
	return Verdict{Reason: SubnetFull, Message: "the subnet of the AKSNodeClass has no free addresses left; name a larger one in spec.vnetSubnetID"}
}

// noQuotaAtAll reports whether the subscription has a quota of nothing.
func noQuotaAtAll(text string) bool {
	return regexp.MustCompile(`Current Limit: 0(\D|$)`).MatchString(text)
}
