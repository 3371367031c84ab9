// SPDX-License-Identifier: Apache-2.0

// Package nodeclaim has the controllers of NodeClaims that only EC2 needs, and
// the functions that find and delete the claims of instances.
//
//	nodeclaim.tagging                  the names of Node and claim, as tags of the instance
//	capacityreservation.capacitytype   instances that keep running when their capacity reservation has ended
//	capacityreservation.expiration     instances that EC2 will terminate with their capacity block
//	providers.instancetype.capacity    how much memory the nodes of a type really have
//
// The claims of instances are found with a map by instance ID, which is built
// from the cached list of all claims when it is needed. There is no field
// index: building the map for a thousand claims takes less than a millisecond,
// once for many instances.
package nodeclaim
