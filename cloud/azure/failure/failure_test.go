// SPDX-License-Identifier: Apache-2.0

package failure_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"karpenter/cloud"
	"karpenter/cloud/azure/failure"
)

// attempt is a launch in zone 1, or outside of zones.
func attempt(zone, capacityType string) failure.Attempt {
	return failure.Attempt{Size: "Standard_D4s_v3", Zone: zone, CapacityType: capacityType, Zones: []string{"eastus-1", "eastus-2"}}
}

// quota is the text with which Azure refuses more than a quota.
func quota(name string, limit int) string {
	return fmt.Sprintf("Operation could not be completed as it results in exceeding approved %s quota. Additional details - Deployment Model: Resource Manager, "+
		"Location: eastus, Current Limit: %d, Current Usage: 8, Additional Required: 4, (Minimum) New Limit Required: 12.", name, limit)
}

func places(v failure.Verdict) string {
	var out []string
	for _, p := range v.Short {
		out = append(out, p.Zone+" "+p.CapacityType)
	}
	slices.Sort(out)
	return strings.Join(out, ", ")
}

// TestAllocation covers the classification of spec 71/88 to 71/92: what is short
// after each error, for how long, and the reason.
func TestAllocation(t *testing.T) {
	const family, zonal, all = "standardDSv3Family Cores", "eastus-1", "0 on-demand, eastus-1 on-demand, eastus-2 on-demand"
	for _, c := range []struct {
		name    string
		attempt failure.Attempt
		code    string
		text    string
		short   string
		spot    bool
		lasts   time.Duration
		reason  string
	}{
		{"spot quota", attempt(zonal, "spot"), "OperationNotAllowed", quota("LowPriorityCores", 10), "", true, time.Hour, "SubscriptionQuotaReached"},
		{"family quota", attempt(zonal, "on-demand"), "OperationNotAllowed", quota(family, 10), all, false, 10 * time.Minute, "SubscriptionQuotaReached"},
		{"no family quota", attempt(zonal, "on-demand"), "OperationNotAllowed", quota(family, 0), all, false, time.Hour, "SubscriptionQuotaReached"},
		{"limit that begins with 0", attempt(zonal, "on-demand"), "OperationNotAllowed", "Family Cores quota, Current Limit: 05", all, false, 10 * time.Minute, "SubscriptionQuotaReached"},
		{"SKU, on demand", attempt(zonal, "on-demand"), "SkuNotAvailable", "", "eastus-1 on-demand, eastus-2 on-demand", false, 23 * time.Hour, "SKUNotAvailable"},
		{"SKU, spot", attempt(zonal, "spot"), "SkuNotAvailable", "", "eastus-1 spot, eastus-2 spot", false, time.Hour, "SKUNotAvailable"},
		{"SKU, regional", attempt("0", "spot"), "SkuNotAvailable", "", "0 spot", false, time.Hour, "SKUNotAvailable"},
		{"zone", attempt(zonal, "spot"), "ZonalAllocationFailed", "", "eastus-1 on-demand, eastus-1 spot", false, time.Hour, "ZonalAllocationFailure"},
		{"allocation", attempt(zonal, "spot"), "AllocationFailed", "", "eastus-1 on-demand, eastus-1 spot, eastus-2 on-demand, eastus-2 spot", false, time.Hour, "AllocationFailure"},
		{"allocation, regional", attempt("0", "spot"), "AllocationFailed", "", "0 on-demand, 0 spot", false, time.Hour, "AllocationFailure"},
		{"constraints in a zone", attempt(zonal, "spot"), "OverconstrainedZonalAllocationRequest", "", "eastus-1 spot", false, time.Hour, "OverconstrainedZonalAllocationFailure"},
		{"constraints", attempt(zonal, "spot"), "OverconstrainedAllocationRequest", "", "eastus-1 spot, eastus-2 spot", false, time.Hour, "OverconstrainedAllocationFailure"},
		{"other", attempt(zonal, "spot"), "InvalidParameter", "The value is wrong.", "", false, 0, "CreateInstanceFailed"},
		{"family quota as text of another error", attempt(zonal, "spot"), "QuotaExceeded", quota(family, 0), "", false, 0, "CreateInstanceFailed"},
		{"nothing", attempt(zonal, "spot"), "", "", "", false, 0, "CreateInstanceFailed"},
	} {
		v := c.attempt.Allocation(failure.Error{Code: c.code, Text: c.text})
		if places(v) != c.short || v.AllSpot != c.spot || v.Lasts != c.lasts || v.Reason != c.reason || v.Message == "" || v.Regional {
			t.Errorf("%s: %+v", c.name, v)
		}
		cause := errors.New("boom")
		var create *cloud.CreateError
		if err := v.Err(cause); !errors.As(err, &create) || !errors.Is(err, cause) || create.Reason != c.reason || create.Message != v.Message {
			t.Errorf("%s: error %v", c.name, v.Err(cause))
		}
	}
}

// TestRegionalQuota covers spec 71/89: without quota in the region, no size helps.
func TestRegionalQuota(t *testing.T) {
	v := attempt("eastus-1", "on-demand").Allocation(failure.Error{Code: "OperationNotAllowed", Text: quota("Total Regional Cores", 100)})
	if v.Short != nil || v.AllSpot || !cloud.IsInsufficientCapacity(v.Err(errors.New("boom"))) {
		t.Errorf("%+v", v)
	}
}

// TestRequest covers the classification of spec 71/55: AKS refuses the size.
func TestRequest(t *testing.T) {
	const all = "0 on-demand, 0 spot, eastus-1 on-demand, eastus-1 spot, eastus-2 on-demand, eastus-2 spot"
	for _, e := range []failure.Error{
		{Code: "VMSizeNotSupported", Text: "whatever"},
		{Code: "BadRequest", Text: "The VM size of Standard_D4s_v3 is not supported for subscription s in location eastus."},
	} {
		v := attempt("eastus-1", "spot").Request(e)
		if places(v) != all || v.Lasts != 23*time.Hour || v.Reason != "SKUNotAvailable" {
			t.Errorf("%s: %+v", e.Code, v)
		}
	}
	if v := attempt("eastus-1", "spot").Request(failure.Error{Code: "BadRequest", Text: "something else"}); v.Short != nil || v.Reason != "CreateInstanceFailed" {
		t.Errorf("another error: %+v", v)
	}
}
