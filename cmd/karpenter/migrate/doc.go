// SPDX-License-Identifier: Apache-2.0

// Package migrate rewrites manifests of older Karpenter APIs as v1.
//
// Vocabulary:
//
//   - A document is what stands between two "---" of a file.
//   - An object is a mapping with apiVersion and kind: a document, or an item
//     of a List in one.
//   - A decision is a change that is not only a rename. It stands as a comment
//     above what it concerns, and in the report.
//   - A decision by hand is one that only a person can take. If the schema demands a value,
//     the value is "replace-me". With it, the node class or the NodePool is not ready, so
//     nothing is launched before a person has replaced it.
//
// Invariants:
//
//  1. A document without a change is returned byte for byte.
//  2. Migrating what was migrated changes nothing.
//  3. The returned text parses as the tree that was decided on, or Migrate returns an error.
//  4. The package reads and writes no files.
package migrate
