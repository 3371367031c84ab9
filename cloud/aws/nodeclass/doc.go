// SPDX-License-Identifier: Apache-2.0

// Package nodeclass holds the controllers of EC2NodeClass:
//
//   - Reconciler, nodeclass: finds in AWS what the class selects, makes its
//     instance profile, and checks that a machine could be started; and when the
//     class is deleted, takes away what was made for it.
//   - Hash, nodeclass.hash: the drift hash on the class and, when its rules have
//     changed, on its claims.
//   - Collector, instanceprofile.garbagecollection: instance profiles that no one
//     uses any more.
//
// # One pass
//
// A pass runs every step, whatever becomes of the others, and ends with one
// patch of the status. A step sets its condition and its part of the status; an
// error of AWS that may go by leaves both as they were and is tried again; if
// nothing was known yet, the condition says so with what AWS said. What
// only the user can put right is in the condition, and not tried again soon.
//
// What the account refuses to tell harms only classes that ask for it: nothing
// is asked for a class without capacityReservationSelectorTerms or a
// placementGroupSelector. Conditions name the call that is rejected, but not the
// text of the rejection, which is another one each time.
//
// # Rehearsal
//
// Whether a launch is permitted is found out by rehearsing one: a launch
// template is made, and EC2 is asked for a dry run of CreateFleet and of
// RunInstances. The verdict, good or bad, holds for half an hour as long as
// nothing changes that a launch depends on.
package nodeclass
