// SPDX-License-Identifier: Apache-2.0

package client

import (
	"maps"
	"slices"

	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
)

// Filter returns the value of an EC2 filter.
func Filter(name string, values ...string) types.Filter {
	return types.Filter{Name: &name, Values: values}
}

// TagFilters returns the filters for what has all of the tags; the value "*"
// stands for any.
func TagFilters(tags map[string]string) []types.Filter {
	var out []types.Filter
	for _, key := range slices.Sorted(maps.Keys(tags)) {
		if value := tags[key]; value != "*" {
			out = append(out, Filter("tag:"+key, value))
			continue
		}
		out = append(out, Filter("tag-key", key))
	}
	return out
}
