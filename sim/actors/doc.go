// SPDX-License-Identifier: Apache-2.0

// Package actors is what a cluster does around Karpenter, small and honest:
//
//	users       what a script says happens, at its moments
//	market      what the cloud has to offer while faults last
//	workloads   Deployments and DaemonSets keep their pods
//	scheduler   binds pods to nodes, or says that it cannot
//	kubelets    instances become Nodes, pods start and end
//	lifecycle   Nodes whose instance is gone: taints, pods that fail with them
//	collector   objects whose owner is gone; pods of Nodes that are gone
//	budgets     the status of PodDisruptionBudgets
//
// Each does one thing at a time, drawn among those it could do next, so that
// any order that could happen does under some seed.
package actors
