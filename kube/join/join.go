// SPDX-License-Identifier: Apache-2.0

// Package join finds the Node of a NodeClaim and the NodeClaim of a Node. The
// two belong together when they carry the same provider ID; an object without
// one belongs to nothing.
//
// The readers must serve the field indexes named here: a cache with the
// indexes added, or a fake client built with them.
package join

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "karpenter/api/v1"
)

// Field indexes the functions of this package read.
const (
	NodeProviderID  = "spec.providerID"   // of Nodes
	ClaimProviderID = "status.providerID" // of NodeClaims
	PodNodeName     = "spec.nodeName"     // of Pods
)

// ErrNotFound reports that no object has the provider ID.
var ErrNotFound = errors.New("not found")

// ErrDuplicate reports that more than one object has the provider ID, so it is
// unclear which one is right.
var ErrDuplicate = errors.New("more than one found")

// NodesOf returns every Node with the claim's provider ID, none while the
// claim has no provider ID.
func NodesOf(ctx context.Context, reader client.Reader, claim *v1.NodeClaim) ([]corev1.Node, error) {
	if claim.Status.ProviderID == "" {
		return nil, nil
	}
	nodes := &corev1.NodeList{}
	if err := reader.List(ctx, nodes, client.MatchingFields{NodeProviderID: claim.Status.ProviderID}); err != nil {
		return nil, fmt.Errorf("list nodes of node claim %s: %w", claim.Name, err)
	}
	return nodes.Items, nil
}

// NodeOf returns the one Node of the claim. The error is, or wraps,
// ErrNotFound or ErrDuplicate when there is not exactly one.
func NodeOf(ctx context.Context, reader client.Reader, claim *v1.NodeClaim) (*corev1.Node, error) {
	nodes, err := NodesOf(ctx, reader, claim)
	if err != nil {
		return nil, err
	}
	if err := exactlyOne(len(nodes)); err != nil {
		return nil, fmt.Errorf("node of node claim %s: %w", claim.Name, err)
	}
	return &nodes[0], nil
}

// ClaimsOf returns every NodeClaim with the node's provider ID, none for a
// Node without one.
func ClaimsOf(ctx context.Context, reader client.Reader, node *corev1.Node) ([]v1.NodeClaim, error) {
	if node.Spec.ProviderID == "" {
		return nil, nil
	}
	claims := &v1.NodeClaimList{}
	if err := reader.List(ctx, claims, client.MatchingFields{ClaimProviderID: node.Spec.ProviderID}); err != nil {
		return nil, fmt.Errorf("list node claims of node %s: %w", node.Name, err)
	}
	return claims.Items, nil
}

// ClaimOf returns the one NodeClaim of the node, with errors as NodeOf. It is
// ErrDuplicate also if another Node carries the provider ID: either may be a
// forgery, and nothing may be done to the instance for its sake.
func ClaimOf(ctx context.Context, reader client.Reader, node *corev1.Node) (*v1.NodeClaim, error) {
	claims, err := ClaimsOf(ctx, reader, node)
	if err != nil {
		return nil, err
	}
	if err := exactlyOne(len(claims)); err != nil {
		return nil, fmt.Errorf("node claim of node %s: %w", node.Name, err)
	}
	nodes, err := NodesOf(ctx, reader, &claims[0])
	if err != nil {
		return nil, err
	}
	for i := range nodes {
		if nodes[i].Name != node.Name {
			return nil, fmt.Errorf("node claim of node %s, whose provider ID node %s has, too: %w", node.Name, nodes[i].Name, ErrDuplicate)
		}
	}
	return &claims[0], nil
}

func exactlyOne(n int) error {
	switch n {
	case 0:
		return ErrNotFound
	case 1:
		return nil
	default:
		return ErrDuplicate
	}
}
