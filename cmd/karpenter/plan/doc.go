// SPDX-License-Identifier: Apache-2.0

// Package plan says what a decision would do to a cluster, for people, programs
// and the pipelines of GitOps repositories. It decides nothing itself, and does
// nothing.
package plan
