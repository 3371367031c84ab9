// SPDX-License-Identifier: Apache-2.0

// Package awsfake is AWS in memory: one account in one region, with EC2, IAM,
// SQS, SSM, EKS, Pricing and zonal shift behind the interfaces of package client.
//
// New makes an account as an EKS user has it: a VPC with a public and a private
// subnet in each of three zones and two security groups, all tagged
// karpenter.sh/discovery=<cluster>; EKS's machine images and their SSM
// parameters; the role KarpenterNodeRole-<cluster>; a queue named as the
// cluster. What users of a simulated account may do beyond calling its services
// (sell out a pool, interrupt an instance, refuse a permission, fail a call) are
// methods of AWS.
//
// # Time
//
// No goroutine runs. Later events (an instance has booted, a spot instance is
// interrupted) wait in a list ordered by time, and happen before the next call
// is answered. A clock that is stepped by hand is enough; only a long poll of a
// queue needs one that can wait (clock.Clock): with a clock.PassiveClock it
// returns at once.
//
// # A call
//
// Each call is counted (Calls), then throttled (Throttle, Config.Limits), checked
// against the permissions (Deny, HoldToPolicy) and the failures that were asked
// for (Fail), and only then answered. Errors carry the codes and texts of AWS,
// wrapped as by the SDK. Answers share no memory with the account.
//
//	aws.Stock(awsfake.Pool{Type: "m5.large", CapacityType: awsfake.Spot}, 0)
//	aws.Fail("CreateFleet", awsfake.Failure{Code: "InternalError", Server: true, Lost: true, Times: 1})
//	aws.Deny("ec2:RunInstances", awsfake.PermissionsBoundary)
//	aws.Interrupt(instanceID)
//
// # What is not like AWS
//
// By default, all types are offered in all zones, on demand and (if EC2 offers
// it) as spot. On-demand prices are those of package ec2, spot prices are drawn
// from a hash. Fleets are of type instant only; instances never stop without
// ending. If a pool has no capacity, EC2 tries others by its own rules; this
// fake tries the overrides in the order of the allocation strategy, each pool
// once.
package awsfake
