// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	"fmt"
	"strconv"

	"github.com/mitchellh/hashstructure/v2"
)

// HashVersion names the rules by which AKSNodeClass.Hash is computed. Hashes of
// different versions must not be compared.
const HashVersion = "v3"

// Hash returns the drift hash of the node class in decimal. A NodeClaim whose
// recorded hash differs was launched from another configuration.
//
// Tags and the order of lists do not change the hash. An explicit false, 0 or
// "" does, except in the lists, in kubelet.cpuCFSQuotaPeriod and in localDNS. The
// hash is byte-equal to upstream's hash of the same version, so taking over a
// cluster drifts no node. It depends on the order in which AKSNodeClassSpec and
// its parts declare their fields.
func (c *AKSNodeClass) Hash() string {
	hash, err := hashstructure.Hash(c.Spec, hashstructure.FormatV2, &hashstructure.HashOptions{
		SlicesAsSets:    true,
		IgnoreZeroValue: true,
		ZeroNil:         true,
	})
	if err != nil {
		// Only unsupported types fail, and the types are fixed.
		panic(fmt.Sprintf("hash node class %s: %v", c.Name, err))
	}
	return strconv.FormatUint(hash, 10)
}

// Drifted reports whether claim and node class, by their annotations, carry
// hashes that can be compared and are not equal.
func (c *AKSNodeClass) Drifted(claim map[string]string) bool {
	for _, key := range []string{HashAnnotationKey, HashVersionAnnotationKey} {
		if claim[key] == "" || c.Annotations[key] == "" {
			return false
		}
	}
	return claim[HashVersionAnnotationKey] == c.Annotations[HashVersionAnnotationKey] &&
		claim[HashAnnotationKey] != c.Annotations[HashAnnotationKey]
}
