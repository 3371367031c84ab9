// SPDX-License-Identifier: Apache-2.0

// Package savings compares what the nodes of any cluster cost with what the same
// pods would cost if Karpenter planned them from scratch: on demand, with Spot, and
// with Arm, each beside the least that any plan can cost.
//
// Karpenter need not be installed. The nodes may belong to node groups, Cluster
// Autoscaler, EKS Auto Mode or another Karpenter. The package reads only
// objects of the cluster; prices are part of the program.
//
// Rules that keep the figures honest:
//
//   - Pods stay where their requests, selectors, affinity, spread and tolerations
//     allow them. Pods with persistent volumes stay in their zone.
//   - Labels that pods select and taints of nodes are kept: nodes that differ in
//     them become NodePools of their own.
//   - A pod keeps the CPU architecture of its node, until Arm is asked for.
//   - A pod goes to Spot only if it runs there already, or if a ReplicaSet or Job
//     owns it, and nothing marks it as not to be disrupted.
//   - Every node runs the pods of its DaemonSets.
package savings
