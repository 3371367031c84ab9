// SPDX-License-Identifier: Apache-2.0

// Package machine launches, reads and deletes AKS machines. A machine is a
// resource of AKS that owns one virtual machine, which AKS builds, boots and joins
// to the cluster.
//
// Vocabulary: the machine's name follows from the name of its NodeClaim (Name). The
// virtual machine has a name of its own, which AKS chooses and which is the name of
// the node; the machine's name follows from that, too (NameOfVM).
//
// A launch is idempotent: a machine that exists under the name and carries the
// claim's tag is the claim's. A machine of another claim under the same name is
// never touched.
package machine
