// SPDX-License-Identifier: Apache-2.0

// Package migrate rewrites manifests of older Karpenter APIs as v1.
//
// Vocabulary:
//
//   - A document is the text between two "---" lines of a file.
//   - An object is a mapping with apiVersion and kind: a document, or an item
//     of a List in one.
//   - A decision is a change that is not only a rename. It is written as a comment above the
//     field it concerns, and in the report.
//   - A decision by hand is one that only a person can make. If the schema demands a value,
//     the value is "replace-me". A node class or NodePool with that value is not ready, so that
//     no node is launched before a person has replaced it.
//
// Invariants:
//
//  1. A document without a change is returned byte for byte.
//  2. Migrating the result again changes nothing.
//  3. The returned text parses as the tree that was built, or Migrate returns an error.
//  4. The package reads and writes no files.
package migrate
