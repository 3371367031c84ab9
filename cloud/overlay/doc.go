// SPDX-License-Identifier: Apache-2.0

// Package overlay evaluates NodeOverlays: which of them apply, and how they
// change the instance types of each NodePool.
//
// Evaluate is a function of values. It decides once which overlays hold and
// returns them as a Set. A Store applies the Set of the last evaluation to
// types as the provider hands them out, so that an offering that is new, or
// whose price has moved, is overlaid at once.
//
// Vocabulary: an overlay touches an offering that agrees with its
// requirements, on a type and in a pool that agree too. The types handed in are
// never modified; a type no one touches is handed out as it came.
package overlay
