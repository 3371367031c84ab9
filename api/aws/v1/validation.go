// SPDX-License-Identifier: Apache-2.0

package v1

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// ValidateTags returns an error that names the keys users may not set as tags,
// or nil. The schema rejects them as well, but stored objects may be older than
// the schema, so tags are checked again when they are used.
func ValidateTags(tags map[string]string) error {
	var restricted []string
	for _, key := range slices.Sorted(maps.Keys(tags)) {
		if isRestrictedTag(key) {
			restricted = append(restricted, key)
		}
	}
	if len(restricted) == 0 {
		return nil
	}
	return fmt.Errorf("spec.tags: Karpenter sets [%s] itself; remove them", strings.Join(restricted, ", "))
}

func isRestrictedTag(key string) bool {
	switch key {
	case ClusterNameTagKey, NodePoolTagKey, NodeClaimTagKey, NodeClassTagKey:
		return true
	}
	cluster, ok := strings.CutPrefix(key, ClusterTagPrefix)
	return ok && isClusterName(cluster)
}

// isClusterName reports whether EKS would take the name for a cluster.
func isClusterName(name string) bool {
	for i, r := range name {
		switch {
		case '0' <= r && r <= '9', 'a' <= r && r <= 'z', 'A' <= r && r <= 'Z':
		case i > 0 && (r == '-' || r == '_'):
		default:
			return false
		}
	}
	return name != ""
}
