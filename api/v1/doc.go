// SPDX-License-Identifier: Apache-2.0

// Package v1 holds the karpenter.sh/v1 resources, NodePool and NodeClaim, the
// metadata keys Karpenter reads and writes, and the pure rules that belong to
// the API itself: runtime validation, disruption budgets and the drift hash.
//
// Vocabulary:
//
//   - A NodePool is a template for nodes plus the rules for disrupting them.
//     A pool with spec.replicas set is static; any other is dynamic.
//   - A NodeClaim is one request for one machine. Its spec never changes.
//   - A requirement constrains one label key of the nodes; the requirements of
//     a list are ANDed, and the same key may appear more than once.
//   - A NodeClass is a provider's own resource, named by group, kind and name.
//
// Invariants:
//
//  1. Nothing here reads a clock, the environment or the network. Functions
//     that depend on time take it as an argument.
//  2. The names of the types and fields reachable from NodePoolSpec.Template
//     are part of the drift hash (see NodePool.Hash). Renaming one drifts
//     every node of every cluster; golden tests guard against it.
//
// The CRD manifests in api/crds are generated from the markers in this package.
//
// +kubebuilder:object:generate=true
// +groupName=karpenter.sh
package v1
