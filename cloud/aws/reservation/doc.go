// SPDX-License-Identifier: Apache-2.0

// Package reservation finds the capacity reservations and the placement groups
// that EC2NodeClasses select, and counts what reservations have left.
//
// Vocabulary: a capacity block is a reservation with a fixed end, at which EC2
// terminates its instances. It is expiring in the last forty minutes before its
// end, when nothing more is launched into it.
package reservation
