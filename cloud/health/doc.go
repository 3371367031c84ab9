// SPDX-License-Identifier: Apache-2.0

// Package health applies a provider's repair policies to the conditions of a
// Node.
//
// A policy without a reason expression is the fallback: it holds for every
// condition whose type and status any policy names, if no other policy of that
// type and status matches the condition's reason. A policy that matches and
// still tolerates the condition keeps the fallback out.
package health
