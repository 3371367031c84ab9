// SPDX-License-Identifier: Apache-2.0

// Package instance launches, describes, tags and terminates EC2 instances.
//
// Calls that are made at about the same time become one, and one CreateFleet
// launches the instances of all claims with the same demands.
//
// # Which instance belongs to which claim
//
// The response to CreateFleet can be lost, or the process can die before the
// claims record it. Then no instance may be left over, and no claim may be
// launched twice:
//
//  1. Instances of a fleet carry tags, awsv1.LaunchTagPrefix with a number,
//     that name the claims it was asked for, up to 25 in each tag.
//  2. A claim is *open* if an unknown instance may exist for it: if it had no recorded
//     instance when this process started, or if the response to its launch was lost. The process
//     lists the instances in EC2. An open claim takes an instance that no other claim has, from
//     a fleet that names the claim.
//  3. EC2 shows new instances late. An open claim that finds none is launched
//     again only when Settling has passed since it was opened.
//  4. The same fleet asked for again has the same client token, so EC2 starts
//     nothing new for it.
//  5. An instance that no claim takes is terminated like any instance without a claim.
//
// A claim that is not open causes no call.
package instance
