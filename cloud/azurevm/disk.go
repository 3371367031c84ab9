// SPDX-License-Identifier: Apache-2.0

package azurevm

import "karpenter/model"

// tier is a size up to which managed disks cost the same.
type tier struct {
	gib               int64
	premium, standard float64 // dollars per month: Premium SSD, Standard SSD
}

// tiers are list prices of locally redundant managed disks in East US, written from
// memory in November 2026 and not compared with a price list. They stand for all
// regions, though disks cost more in some. docs/azure.md shows them.
func tiers() []tier {
	return []tier{
		{32, 5.28, 2.40}, {64, 10.21, 4.80}, {128, 19.71, 9.60}, {256, 38.01, 19.20}, {512, 73.22, 38.40}, {1024, 135.17, 76.80}, {2048, 259.05, 153.60},
	}
}

// hoursPerMonth is what Azure divides a month's price by.
const hoursPerMonth = 730

// OSDiskPrice returns what a managed OS disk costs per hour. AKS takes Premium SSD
// where the size can have it, else Standard SSD.
func OSDiskPrice(gib int64, premium bool) model.Price {
	all := tiers()
	of := all[len(all)-1]
	for _, t := range all {
		if gib <= t.gib {
			of = t
			break
		}
	}
	if premium {
		return Price(of.premium / hoursPerMonth)
	}
	return Price(of.standard / hoursPerMonth)
}
