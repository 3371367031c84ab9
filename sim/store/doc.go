// SPDX-License-Identifier: Apache-2.0

// Package store is an API server in memory, for the kinds the process and its
// surroundings use. It keeps what clients rely on: resource versions and
// conflicts, generations, finalizers and graceful deletion, subresources,
// evictions within PodDisruptionBudgets, defaults of our CRDs, and a log of
// changes for watches. It does not validate.
package store
