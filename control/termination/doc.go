// SPDX-License-Identifier: Apache-2.0

// Package termination removes a deleted Node from the cluster: it keeps new
// pods away, drains the node, waits until volumes are detached, terminates the
// instance, and then removes the finalizer of the Node.
//
// Reconciler is the controller node.termination. It works on Nodes that are
// being deleted and carry our finalizer, in passes that are repeated about
// every second; each pass starts from the drain, so that late pods are seen.
// Queue is the controller eviction-queue. The drain hands it the pods whose
// turn it is; it asks the API server to evict each until that is granted.
//
// Vocabulary: the deadline is the end of the claim's termination grace
// period, absent when the claim has none. A pod is forced when its own grace
// would no longer end before the deadline. Tiers are the groups in which
// pods leave: a tier starts when the one before it is gone. Forced pods
// belong to no tier.
//
// Invariants:
//
//  1. A pod is evicted or deleted only under the UID it was drained with.
//  2. Without a deadline, no pod leaves but through the Eviction API or an
//     EvictionRequest.
//  3. The deadline of a queued pod can only become earlier.
//  4. The instance of a Node is terminated only after its drain, unless the instance is gone already.
//     A drain ends when the API server, not only the cache, has no pod left to wait for.
package termination
