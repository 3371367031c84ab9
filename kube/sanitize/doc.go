// SPDX-License-Identifier: Apache-2.0

// Package sanitize keeps a custom resource that cannot be decoded from hiding
// all others of its kind.
//
// An informer decodes a list as a whole: one NodePool with a duration that Go
// cannot represent, which its CRD accepts, makes the list fail again and again,
// and one CapacityBuffer with the quantity "1e-999999999" keeps the decoder busy for hours.
//
// Wrap puts itself between the API server and every client. It looks at the JSON
// of our own kinds in each response, whether it is an object, a list or a watch.
// Objects that decode pass through unchanged. From others it drops the fields
// that do not decode, and marks them: see package api/unreadable. Other kinds
// need none of this, because the API server decodes those with the same Go types itself.
//
// Invariants:
//
//  1. A response that is not understood passes through unchanged.
//  2. What comes out decodes, at a cost in proportion to its length.
//  3. Nothing is written to the API server. The mark exists in memory only.
package sanitize
