// SPDX-License-Identifier: Apache-2.0

// Package ec2 holds facts about EC2 instance types: what they have, what pods
// can use of it, and what they cost on demand.
//
// # The catalogue
//
// catalogue.json has one object per line and type, sorted by name: 1,382 types,
// 19 of them retired. The figures were merged from the tables that the AWS
// provider of Karpenter 1.14 publishes (instance types of us-east-1, us-east-2
// and us-west-2, July 2026) and generates (network interfaces and bandwidths,
// August 2026). Capacity is that of an AL2023 node without block device mappings,
// with 7.5 % of the memory taken by the hypervisor; pods follow from the network
// interfaces. The retired types' source field names the version they were taken
// from. The catalogue is not refreshed: it is what upstream published, for the
// KWOK provider and to compare with.
//
// 19 types are in it without limits of their network interfaces (g3, p2, hpc,
// trn2, u-*tb1). Their numbers of pods come from the published pages, so they
// are offered like any other; only their network interfaces are unknown.
//
// # Refreshed data
//
// "make generate-aws" refreshes the following files, each of which names its
// source and date; docs/aws-prices.md says how.
//
//   - prices/REGION.json: on-demand prices for Linux on shared hardware (metal:
//     dedicated), per hour. Prices of most regions, and all spot prices, are not
//     built in.
//   - extras/REGION.json: prices of EBS volumes and public IPv4 addresses. THESE ARE
//     LIST PRICES FROM MEMORY (about January 2025), and in regions other than us-east-1
//     partly estimated, until "make generate-aws" is run with an account.
//   - limits.json: branch network interfaces by type. No API of AWS tells them; they
//     are from AWS's VPC resource controller. Of 14 described types it knows nothing
//     (hpc, t8i, trn2): these have none, as far as is known.
//   - described.json: what DescribeInstanceTypes answers about 1,399 types, one
//     object per line, in EC2's own shape and less what is not used. The answers are
//     those recorded in moto 5.2.5 (October 2026, several regions), x86_64 and arm64
//     with hardware virtualisation only. 13 types are not in the record, namely g4ad
//     and the retired dl1, f1, p3 and i3.metal: their lines are put together from the
//     catalogue, and that they are sold on demand and as spot, and which placement
//     groups take them, is assumed. Eleven retired types (g3, p2 and four of u-*tb1)
//     are in the catalogue only. The record is younger than the catalogue: it knows 28
//     more types, and a few figures have changed in between.
//
// # The simulated cloud
//
// KWOKTypes turns the catalogue into instance types for the KWOK provider: every
// type with a price in the region, in three zones, on demand and as spot. The
// on-demand prices are real. The SPOT PRICES ARE SIMULATED: each type has in
// each zone a fixed discount between 55 % and 75 %, drawn from a hash of both
// names. That every type is sold in every zone and as spot is simulated too.
package ec2
