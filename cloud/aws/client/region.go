package client

import "strings"

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
