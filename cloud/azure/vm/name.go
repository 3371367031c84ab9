// SPDX-License-Identifier: Apache-2.0

package vm

import (
	"hash/fnv"
	"maps"
	"strconv"
	"strings"

	"karpenter/api/azure/v1beta1"
)

const (
	// prefix begins the names of virtual machines, network interfaces and disks.
	prefix = "aks-"
	// longestName is that of a node.
	longestName = 63
	// digits is how many digits of its hash a name ends with that was shortened.
	digits = 10
)

// Name returns the name of the virtual machine of a NodeClaim. If the claim's is too long
// for a node, its end is replaced by a hash of all of it.
func Name(claim string) string {
	if len(prefix)+len(claim) <= longestName {
		return prefix + claim
	}
	h := fnv.New64a()
	_, _ = h.Write([]byte(claim)) // never fails
	hash := strings.Repeat("0", digits) + strconv.FormatUint(h.Sum64(), 36)
	kept := strings.TrimRight(claim[:longestName-len(prefix)-digits-1], "-.")
	return prefix + kept + "-" + hash[len(hash)-digits:]
}

// named returns the tags with that which names the NodeClaim, if the name of the virtual
// machine does not.
func named(claim, name string, tags map[string]string) map[string]string {
	if name == prefix+claim {
		return tags
	}
	out := maps.Clone(tags)
	out[v1beta1.NodeClaimTagKey] = claim
	return out
}

// claimOf returns the name of the NodeClaim of a virtual machine.
func claimOf(name string, tags map[string]*string) string {
	if claim := value(tags[v1beta1.NodeClaimTagKey]); claim != "" {
		return claim
	}
	return strings.TrimPrefix(name, prefix)
}
