// SPDX-License-Identifier: Apache-2.0

// Package catalogue has the instance types of a region for each EC2NodeClass:
// their properties, the zones that offer them, their prices, and what can be
// launched now.
//
// Two loops read EC2 and its price list twice a day. Types answers from memory,
// so it can be called for every plan.
//
// # What stays the same
//
// Types returns the same slice as long as nothing it depends on has changed, and
// of an instance type the same pointer as long as nothing about that type has.
// So callers can cache what they derive from a type by its pointer. For that,
// each class has a view, which remembers the inputs of each type (ingredients),
// and builds only those types again whose inputs have changed. Even then the old
// type is kept if the new one is equal. What applies to all (stamp) is compared
// first, so that an unchanged answer costs microseconds.
//
// # What is believed
//
// An answer that cannot be read completely is ignored, and the known types stay.
// An answer that lacks many known types is doubted (quarantine): the missing
// types stay until three answers in a row lack them, and EC2 is asked again
// soon. New prices are added to the known ones. If many prices fall to a
// fraction in one answer, they are doubted in the same way. Until AWS has
// answered, on-demand prices are those built into the program, and spot costs as
// much. The prices of volumes and addresses are believed as they come.
package catalogue
