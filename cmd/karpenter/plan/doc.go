// SPDX-License-Identifier: Apache-2.0

// Package plan reports what a decision would do to a cluster, for people,
// programs and the pipelines of GitOps repositories. It makes no decisions
// itself, and changes nothing.
package plan
