// SPDX-License-Identifier: Apache-2.0

// Package topology keeps the rules between pods: topology spread, pod affinity
// and anti-affinity in both directions, as kube-scheduler reads them.
//
// # Vocabulary
//
//   - kind: the pods of one entry of Snapshot.Pending, by its index.
//   - site: a node of the Snapshot, by its index in Snapshot.Nodes.
//   - domain: a value of a topology key other than the hostname, by number.
//   - place: per key the domains a node is in: none when it lacks the label,
//     several when an instance on its way has not settled for one.
//   - tally: how many of the pods that some rule is about each domain, or each
//     site where the key is the hostname, has. All rules are questions to
//     tallies, and a pod that is placed is added to the tallies it is part of.
//
// # Invariants
//
//  1. Pods are added one after the other, each where the rules allow it when
//     its turn comes; so there is an order in which kube-scheduler would put
//     all of them where they are.
//  2. A terminating pod counts for no one's spread or affinity, and still for
//     anti-affinity.
//  3. Where a pod's domain is not settled it counts in no domain for affinity,
//     in all it could be in for anti-affinity, and for spread in whichever way
//     lets fewer pods in.
package topology
