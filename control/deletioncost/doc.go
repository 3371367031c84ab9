// SPDX-License-Identifier: Apache-2.0

// Package deletioncost makes ReplicaSets that scale down delete the pods first
// that run on the nodes that Karpenter would remove next. So scaling down
// empties nodes instead of leaving all of them partly used.
//
// Reconciler is the controller pod.deletioncost. Once a minute it ranks the nodes
// and writes the rank as the annotation controller.kubernetes.io/pod-deletion-cost
// on their pods that a ReplicaSet controls; values that users set are overwritten.
// Only annotations that differ are written, so a cluster in which nothing changes
// costs no writes.
package deletioncost
