// SPDX-License-Identifier: Apache-2.0

// Package explain says of one pod where it is planned, or why it stays
// pending, of one node what becomes of it, or why it stays, and of all nodes
// what they cost beside what they had to: for a situation in a file, or for the
// one a running controller is in, which it serves to people who may ask.
//
// An answer is made of a Snapshot and the Plan for it, and of nothing else.
// Asking changes nothing: no one carries the Plan out.
package explain
