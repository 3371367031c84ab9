// SPDX-License-Identifier: Apache-2.0

// Package nodeclass holds the controllers of EC2NodeClass:
//
//   - Reconciler, nodeclass: finds the AWS resources that the class selects, creates its
//     instance profile, and checks that a launch would succeed. When the class is deleted, it
//     deletes what it has created.
//   - Hash, nodeclass.hash: the drift hash on the class and, when its rules have
//     changed, on its claims.
//   - Collector, instanceprofile.garbagecollection: instance profiles that no one
//     uses any more.
//
// # One pass
//
// A pass runs every step, even if others fail, and ends with one patch of the
// status. A step sets its condition and its part of the status. After a
// temporary error of AWS, both stay as they were, and the step is tried again;
// if nothing was known before, the condition shows the error. An error that
// only the user can fix is in the condition, and is not tried again soon.
//
// A missing permission affects only classes that need the call: capacity
// reservations and placement groups are read only for classes with
// capacityReservationSelectorTerms or a placementGroupSelector. Conditions name
// the call that was denied, but not the text of the error, which differs each
// time.
//
// # Dry run
//
// To find out whether a launch is permitted, the controller creates a launch
// template and makes a dry run of CreateFleet and of RunInstances. The result
// is used for half an hour, unless something changes that a launch depends on.
package nodeclass
