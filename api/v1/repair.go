// SPDX-License-Identifier: Apache-2.0

package v1

import (
	"maps"
	"strings"
	"time"
)

// Hurry sets the deadline of the claim's drain, unless an earlier one is set, and
// reports whether it did.
func (c *NodeClaim) Hurry(deadline time.Time) bool {
	set, err := time.Parse(time.RFC3339, c.Annotations[NodeClaimTerminationTimestampAnnotationKey])
	if err == nil && !set.After(deadline) {
		return false
	}
	c.annotate(NodeClaimTerminationTimestampAnnotationKey, deadline.UTC().Format(time.RFC3339))
	return true
}

// Reboots returns when reboots of the claim were requested. Times that cannot be
// read are left out.
func (c *NodeClaim) Reboots() []time.Time {
	var out []time.Time
	for text := range strings.SplitSeq(c.Annotations[RebootHistoryAnnotationKey], ",") {
		if t, err := time.Parse(time.RFC3339, text); err == nil {
			out = append(out, t)
		}
	}
	return out
}

// SetReboots records when reboots of the claim were requested.
func (c *NodeClaim) SetReboots(at []time.Time) {
	texts := make([]string, len(at))
	for i, t := range at {
		texts[i] = t.UTC().Format(time.RFC3339)
	}
	c.annotate(RebootHistoryAnnotationKey, strings.Join(texts, ","))
}

// annotate sets an annotation without changing the map, which may be shared.
func (c *NodeClaim) annotate(key, value string) {
	c.Annotations = maps.Clone(c.Annotations)
	if c.Annotations == nil {
		c.Annotations = map[string]string{}
	}
	c.Annotations[key] = value
}
