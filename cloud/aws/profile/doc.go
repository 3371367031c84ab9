// SPDX-License-Identifier: Apache-2.0

// Package profile creates and deletes the instance profiles that give nodes the
// role of their EC2NodeClass.
//
// A profile is created for a class and a role. Its name is derived from both,
// so a controller that restarts after the creation finds it again. A class
// keeps a profile with another name as long as its role is right.
//
// The IAM path of a profile contains its class. By the path, all profiles of a
// deleted class and unused profiles of an existing class are found. Instances
// need their profile as long as they run. So a profile is not deleted while a
// class or a claim names it, and for an hour after its last use, because a
// launch may be about to use it.
package profile
