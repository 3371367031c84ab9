// SPDX-License-Identifier: Apache-2.0

package actors

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "karpenter/api/v1"
	"karpenter/sim/store"
)

// collect deletes what belongs to something that is gone: NodeClaims of
// NodePools, Nodes of NodeClaims, and pods of Nodes.
func collect(a *Actor, c *choice) {
	owners := map[types.UID]bool{}
	for p := range store.All[*v1.NodePool](a.Store) {
		owners[p.UID] = true
	}
	for claim := range store.All[*v1.NodeClaim](a.Store) {
		owners[claim.UID] = true
		orphaned(a, c, claim, owners)
	}
	nodes := map[string]bool{}
	for n := range store.All[*corev1.Node](a.Store) {
		nodes[n.Name] = true
		orphaned(a, c, n, owners)
	}
	for p := range store.All[*corev1.Pod](a.Store) {
		if p.Spec.NodeName != "" && !nodes[p.Spec.NodeName] {
			c.offer(a.kill(p))
		}
	}
}

// orphaned offers to delete the object if it has owners and none is there.
func orphaned(a *Actor, c *choice, o client.Object, owners map[types.UID]bool) {
	refs := o.GetOwnerReferences()
	if len(refs) == 0 || o.GetDeletionTimestamp() != nil {
		return
	}
	for _, ref := range refs {
		if owners[ref.UID] || !ours(ref) {
			return
		}
	}
	c.offer(a.remove(o))
}

func ours(ref metav1.OwnerReference) bool { return ref.Kind == "NodePool" || ref.Kind == "NodeClaim" }
