// SPDX-License-Identifier: Apache-2.0

// Package solve decides: it maps a Snapshot to a Plan.
//
// Decide does no I/O and reads no clock, environment or global; the same
// Snapshot and Policy give a byte-identical Plan at any GOMAXPROCS. Whoever
// wants to explain, dry-run, replay or test a decision calls the same function
// and does not carry the Plan out.
package solve
