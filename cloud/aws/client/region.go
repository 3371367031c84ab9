// SPDX-License-Identifier: Apache-2.0

package client

import (
	"slices"
	"strings"
)

// PricingServed reports whether the credentials of a region can read a price list.
// AWS GovCloud (US), the European Sovereign Cloud and the isolated regions cannot:
// the Pricing API has no endpoint in their partitions.
func PricingServed(region string) bool {
	return !slices.ContainsFunc([]string{"us-gov-", "us-iso", "eu-iso", "eusc-"}, func(prefix string) bool { return strings.HasPrefix(region, prefix) })
}

// PricingRegion returns where the price list of a region is served.
func PricingRegion(region string) string {
	for _, at := range []struct{ prefix, region string }{
		{"ap-", "ap-south-1"}, {"cn-", "cn-northwest-1"}, {"eu-", "eu-central-1"},
	} {
		if strings.HasPrefix(region, at.prefix) {
			return at.region
		}
	}
	return "us-east-1"
}
