// SPDX-License-Identifier: Apache-2.0

// Package instance starts, describes, tags and ends EC2 instances.
//
// Calls that are made at about the same time become one, and a launch is one
// CreateFleet for all claims that ask for the same.
//
// # What was started for whom
//
// A fleet's answer may be lost, or the process that asked may die before the
// claims record it. No instance must be left over then, and no claim launched
// twice:
//
//  1. Instances of a fleet carry tags, awsv1.LaunchTagPrefix with a number,
//     that name the claims it was asked for, up to 25 in each tag.
//  2. A claim for which an instance may exist that no one knows of is *open*:
//     when it had no machine recorded as this process began, or when the answer
//     to its launch was lost. EC2 is asked for its instances, and an open claim
//     takes one that no other has, of a fleet that names it.
//  3. EC2 shows new instances late. An open claim that finds none is launched
//     again only when Settling has passed since it was opened.
//  4. The same fleet asked for again has the same client token, so EC2 starts
//     nothing new for it.
//  5. What no claim takes has no claim, and is ended as any machine without one.
//
// A claim that is not open costs no question.
package instance
