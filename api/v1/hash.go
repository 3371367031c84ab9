// SPDX-License-Identifier: Apache-2.0

package v1

import (
	"fmt"
	"strconv"

	"github.com/mitchellh/hashstructure/v2"
)

// NodePoolHashVersion names the rules by which NodePool.Hash is computed.
// Hashes of different versions must not be compared.
const NodePoolHashVersion = "v3"

// Hash returns the drift hash of the pool's template in decimal: a NodeClaim
// whose recorded hash differs was made from another template.
//
// The order of lists, absent versus zero fields, the spelling of durations and
// the requirements do not change it. It is byte-equal to upstream Karpenter's
// hash of the same version, so that taking over a cluster drifts no node.
func (p *NodePool) Hash() string {
	hash, err := hashstructure.Hash(p.Spec.Template, hashstructure.FormatV2, &hashstructure.HashOptions{
		SlicesAsSets:    true,
		IgnoreZeroValue: true,
		ZeroNil:         true,
	})
	if err != nil {
		// Only unsupported types fail, and the type is fixed.
		panic(fmt.Sprintf("hash node pool %s: %v", p.Name, err))
	}
	return strconv.FormatUint(hash, 10)
}
