// SPDX-License-Identifier: Apache-2.0

// Package azurevm holds facts about the sizes of Azure virtual machines: what
// they have, where they are offered, and what they cost. Azure and its price list
// say the same at run time; this package is for what the program must know before
// it has asked, and for clouds in memory.
//
// # Sizes
//
// sizes.json.gz is an array with one object per line and size, sorted by name:
// 1,780 sizes. "gunzip -c sizes.json.gz" shows it. Capabilities under caps are as
// the Compute Resource SKUs API answered, between August 2020 and April 2026:
// 387 sizes. Capabilities under derived are inferred from names and public lists:
// 1,361 sizes. The two never name the same capability of a size. The sources, all
// of them public and none younger than July 2026, are recorded SKU answers of
// eastus, southcentralus and westcentralus, the static list of the Kubernetes
// autoscaler, the price list, and the lists of sizes and GPUs that AKS supports.
//
// Known gaps: zones of regions and sizes that no answer covers are assumed to be
// all zones of the region. Most capabilities of sizes of version 5 and later are
// inferred. 140 sizes have no memory. Restrictions are those of one subscription
// in August 2020. Five regions are covered: eastus, westeurope, southcentralus,
// westcentralus, polandcentral.
//
// # Prices
//
// prices.json.gz holds prices in dollars per hour for Linux, pay as you go:
// 65,121 on-demand prices of 57 regions of the public cloud, from the Retail
// Prices API of 18 June 2026. Spot prices are two snapshots only: polandcentral of
// 26 January 2026 and westeurope of 21 February 2026; a few of westeurope may be
// wrong. There are no prices of sovereign clouds.
package azurevm
