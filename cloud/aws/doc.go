// SPDX-License-Identifier: Apache-2.0

// Package aws is the provider for Amazon EC2.
//
//	client/         the calls to AWS, as interfaces; what its errors mean
//	answers/        a cache of answers from AWS; equal questions at the same time become one call
//	catalogue/      instance types, the zones that offer them, prices, what is left: refreshed, cached, quarantined
//	instancetype/   instance types as Kubernetes sees them (pure)
//	expression/     numbers of the kubelet's configuration that depend on the type (pure)
//	shortage/       what was out of capacity a moment ago
//	image/          AMIs of an EC2NodeClass: aliases, SSM parameters, DescribeImages
//	zonalshift/     zones that traffic is shifted away from
//	version/        the version of the cluster
//	loop/           work that is repeated
//	network/        subnets and their free addresses, security groups
//	profile/        instance profiles
//	reservation/    capacity reservations and placement groups
//	userdata/       user data by which instances join the cluster, by AMI family (pure)
//	template/       launch templates: content, name, life
//	launch/         the choice of types, zones and subnets for a launch (pure)
//	batch/          calls made at about the same time as one
//	instance/       CreateFleet in batches; get, list, terminate and tag instances
//	nodeclass/      the controllers of EC2NodeClass
//	nodeclaim/      the controllers of NodeClaims that only EC2 needs
//	interruption/   the queue of events about instances, and their status checks
//	generate/       a program that refreshes the data about EC2 that is built in
//	awsfake/        AWS in memory, for tests and the sandbox; wire/ HTTP in front of it, boot/ machines
//
// The provider itself launches instances for NodeClaims with these packages,
// and finds instances that have drifted from their EC2NodeClass.
package aws
