// SPDX-License-Identifier: Apache-2.0

// Package nodeclaim has the controllers of NodeClaims that only EC2 needs, and
// what finds the claims of instances and gives them up.
//
//	nodeclaim.tagging                  the names of Node and claim, as tags of the instance
//	capacityreservation.capacitytype   machines that go on when their capacity reservation is gone
//	capacityreservation.expiration     machines that EC2 will end with their capacity block
//	providers.instancetype.capacity    how much memory the nodes of a type really have
//
// The claims of instances are found in a map by the instance's ID, which is made
// of the cached list of all claims whenever it is needed. No field index is: a
// thousand claims are gone through in less than a millisecond, once for many
// instances.
package nodeclaim
