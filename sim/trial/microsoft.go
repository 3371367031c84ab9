// SPDX-License-Identifier: Apache-2.0

package trial

import (
	"net/http"

	"karpenter/api/azure/v1beta1"
	v1 "karpenter/api/v1"
	"karpenter/cloud/azure/azurefake"
	"karpenter/cloud/azure/instancetype"
	"karpenter/cmd/karpenter/config"
	"karpenter/sim"
	"karpenter/sim/microsoft"
	"karpenter/sim/script"
)

// microsoft is Azure.
func (c *Trial) microsoft() *vendor {
	return &vendor{
		args: []string{"--cloud-provider=" + config.CloudAzure}, environment: c.Microsoft.Environment(),
		make: func(r *sim.Run) (sim.Vendor, error) {
			out, err := microsoft.New(*c.Microsoft, r)
			if err == nil && c.Subscription != nil {
				c.Subscription(out)
			}
			return out, err
		},
		class: microsoft.NodeClass(), ref: v1.NodeClassReference{Group: v1beta1.Group, Kind: v1beta1.Kind, Name: microsoft.Class},
		changes: []string{microsoft.Create, microsoft.Update, microsoft.Delete},
		throttled: &microsoft.Answer{
			Status: http.StatusTooManyRequests, Code: "TooManyRequests", Message: "The request is being throttled.", RetryAfter: "2",
		},
	}
}

// refusals are how Azure says that it has no capacity: at once, late, and as a quota.
func refusals() []azurefake.Refusal {
	return []azurefake.Refusal{
		{Code: "SkuNotAvailable", Message: "The requested VM size is currently not available in location 'eastus'."},
		{Code: "ZonalAllocationFailed", Message: "Allocation failed. We do not have sufficient capacity for the requested VM size in this zone.", Late: true},
		{Code: "AllocationFailed", Message: "Allocation failed. We do not have sufficient capacity for the requested VM size in this region.", Late: true},
		{Code: "OperationNotAllowed", Message: "Operation could not be completed as it results in exceeding approved Family Cores quota. Current Limit: 10, Current Usage: 10", Late: true},
	}
}

// TranslateToAzure makes a script that Draw has made up one for Azure, and returns
// the subscription it needs. What has no counterpart there is left out.
func TranslateToAzure(s *script.Script) *microsoft.Config {
	names := map[string]string{
		"s1": "Standard_F2s_v2", "m2": "Standard_D2s_v5", "c4": "Standard_F4s_v2", "m4": "Standard_D4s_v5", "m8": "Standard_D8s_v5", "m16": "Standard_D16s_v5",
	}
	zones := map[string]string{}
	for letter, number := range map[string]string{"a": "1", "b": "2", "c": "3"} {
		zones[letter] = instancetype.ZoneLabel(microsoft.Region, number)
	}
	rename(s, names, zones)
	all := refusals()
	out := &microsoft.Config{Refuse: all[s.Seed%uint64(len(all))], VMs: s.Seed/uint64(len(all))%2 == 1} // each way to refuse in both modes
	for i := range s.Types {
		t := &s.Types[i]
		out.Sizes, out.Zones = append(out.Sizes, t.Name), nil
		for _, zone := range t.Zones {
			out.Zones = append(out.Zones, instancetype.ZoneNumber(zone))
		}
		if t.Spot == 0 {
			out.NoSpot = append(out.NoSpot, t.Name)
		}
	}
	return out
}
