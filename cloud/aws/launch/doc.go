// SPDX-License-Identifier: Apache-2.0

// Package launch decides what EC2 is asked for when a machine is to be started:
// which instance types and offerings, bought how, in which subnets. It computes
// with values only.
//
// EC2 gets many alternatives and chooses by price and, for spot, by how likely
// the capacity is to stay. Narrow drops those that could only do harm: it is a
// row of filters, each of which sees what the ones before it left.
package launch
