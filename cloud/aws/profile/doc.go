// SPDX-License-Identifier: Apache-2.0

// Package profile makes and unmakes the instance profiles that give nodes the
// role of their EC2NodeClass.
//
// A profile is made for a class and a role: its name follows from both, so a
// controller that dies after it has made one finds it again. A class that has
// one with another name keeps it as long as its role is the one wanted.
//
// Profiles lie under a path of their class, which is how they are found when the
// class goes, and those no one uses while it stays. Instances need theirs as
// long as they run, so nothing is collected that a class or a claim names, nor
// what was in use within the hour: a launch may be about to name it.
package profile
