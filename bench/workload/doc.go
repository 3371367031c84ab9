// SPDX-License-Identifier: Apache-2.0

// Package workload generates the situations engines are compared on, as
// Kubernetes objects and a price list, so that every engine is fed through the
// door it has for them. Equal names give equal objects on any machine.
//
// # Vocabulary
//
//   - deployment: pods that differ in nothing but their names;
//   - price list: every instance type of EC2 with a price in us-east-1, in three
//     zones, on demand and as spot. Spot prices are simulated; see karpenter/cloud/ec2;
//   - machine: a node that is there before anything is decided, with its claim and
//     the pods bound to it.
package workload
