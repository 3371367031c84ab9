// SPDX-License-Identifier: Apache-2.0

// Package deletioncost tells ReplicaSets which of their pods to delete first when
// they scale down: those on the nodes that Karpenter would remove next. So scaling
// down empties nodes instead of thinning all of them out.
//
// Reconciler is the controller pod.deletioncost. Once a minute it ranks the nodes
// and writes the rank as the annotation controller.kubernetes.io/pod-deletion-cost
// on their pods that a ReplicaSet controls; values that users set are overwritten.
// Only annotations that differ are written, so a cluster in which nothing changes
// costs no writes.
package deletioncost
