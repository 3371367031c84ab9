// SPDX-License-Identifier: Apache-2.0

// Package catalogue knows the instance types of a region as an EC2NodeClass can
// have them: what they are, where they are sold, what they cost, and what of it
// can be bought now.
//
// EC2 and its price list are asked by two loops twice a day. Types answers from
// memory, so it may be called as often as a plan is made.
//
// # What stays the same
//
// Types returns the same slice as long as nothing it depends on has changed, and
// of an instance type the same pointer as long as nothing about that type has.
// Whoever derives something of a type keeps it by pointer. So each class has a
// view, which remembers of each type what went into it (ingredients), and makes
// again only those whose ingredients are others now. Even then the old type is
// kept if the new one is equal. What applies to all (stamp) is compared first, so
// that an unchanged answer costs microseconds.
//
// # What is believed
//
// An answer that cannot be had in full is no answer; what was known stays. An
// answer that lacks much of what was known is doubted (quarantine): what it lacks
// stays until three answers in a row lack it, and EC2 is asked again soon. Prices
// are added to those known; of an answer in which many prices have fallen to a
// fraction, those are doubted the same way. Until AWS has answered, on-demand
// prices are those built into the program, and spot costs as much. The prices of
// volumes and addresses are believed as they come.
package catalogue
