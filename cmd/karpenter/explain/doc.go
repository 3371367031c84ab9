// SPDX-License-Identifier: Apache-2.0

// Package explain explains decisions: where a pod is planned or why it stays
// pending, whether a node is removed or why it stays, and what all nodes cost
// compared with the proven minimum. The situation comes from a file or from a
// running cluster.
//
// An answer depends only on a Snapshot and the Plan for it. It changes nothing:
// the Plan is not carried out.
package explain
