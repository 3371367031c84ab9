// SPDX-License-Identifier: Apache-2.0

// Package launch decides what a launch requests from EC2: the instance types
// and offerings, the capacity type, and the subnets. It computes with values
// only.
//
// EC2 gets many alternatives and chooses by price and, for spot, by how likely
// the capacity is to stay. Narrow drops alternatives that are never useful. It
// is a sequence of filters, each of which works on the result of the previous
// one.
package launch
