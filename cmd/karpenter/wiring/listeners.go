package wiring

import (
	v1 "karpenter/api/v1"
	"karpenter/control/lifecycle"
)

// listeners all hear how the claims of NodePools fare.
type listeners []lifecycle.PoolHealth

// Succeeded tells them that the claim's machine became a Node.
func (l listeners) Succeeded(claim *v1.NodeClaim) {
	for _, h := range l {
		h.Succeeded(claim)
	}
}

// Failed tells them that it never did.
func (l listeners) Failed(claim *v1.NodeClaim, reason, message string) {
	for _, h := range l {
		h.Failed(claim, reason, message)
	}
}
