// SPDX-License-Identifier: Apache-2.0

package v1

import "strings"

// RequestedDRADrivers returns the drivers whose devices the claim's pods ask for.
func (c *NodeClaim) RequestedDRADrivers() []string {
	var out []string
	for name := range strings.SplitSeq(c.Annotations[RequestedDRADriversAnnotationKey], ",") {
		if name = strings.TrimSpace(name); name != "" {
			out = append(out, name)
		}
	}
	return out
}
