// SPDX-License-Identifier: Apache-2.0

// Package reservation finds the capacity reservations and the placement groups
// that EC2NodeClasses select, and counts what reservations have left.
//
// Vocabulary: a capacity block is a reservation with a fixed end, at which EC2
// ends its instances; it is expiring in the last forty minutes before, and
// nothing is launched into it any more.
package reservation
