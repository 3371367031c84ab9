// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"fmt"
	"math/rand/v2"
)

// recipe makes one workload.
type recipe struct {
	name, about string
	short       bool
	make        func(w *Workload, rng *rand.Rand)
}

// recipes returns all of them. New ones go to the end of their group or change
// nothing but themselves: the index seeds the generator.
func recipes() []recipe {
	var out []recipe
	for _, pods := range []int{1000, 5000, 10000} {
		for _, spot := range []bool{false, true} {
			for _, weighted := range []bool{false, true} {
				out = append(out, mixedRecipe(pods, spot, weighted))
			}
		}
	}
	return append(out,
		recipe{"limits-5000-spot", "as mixed-5000-spot, with limits on every pool that are far from reached", true, func(w *Workload, rng *rand.Rand) {
			w.SetPools(Terms{Spot: true, Limited: true})
			w.mixed(rng, 40, 5000)
		}},
		recipe{"distinct-10000-spot", "10,000 pods, every one of a different size", false, func(w *Workload, rng *rand.Rand) {
			w.SetPools(Terms{Spot: true})
			w.distinct(rng, 10000)
		}},
		recipe{"topology-1000-spot", "1,000 pods: zonal spread, hostname spread, zone affinity, anti-affinity in equal parts", true, func(w *Workload, rng *rand.Rand) {
			w.SetPools(Terms{Spot: true})
			w.topology(rng, 40, 1000)
		}},
		recipe{"topology-10000-spot", "10,000 pods: zonal spread, hostname spread, zone affinity, anti-affinity in equal parts", false, func(w *Workload, rng *rand.Rand) {
			w.SetPools(Terms{Spot: true})
			w.topology(rng, 40, 10000)
		}},
		recipe{"large-100000-spot", "100,000 pods of 400 deployments on top of 2,000 nodes", false, func(w *Workload, rng *rand.Rand) {
			w.SetPools(Terms{Spot: true})
			w.machines(rng, 2000, true)
			w.mixed(rng, 400, 100_000)
			w.UpstreamCap = OwnCap
		}},
		recipe{"one-more-fits", "one more pod of a known shape, warm, 2,000 nodes with room", true, func(w *Workload, rng *rand.Rand) {
			w.SetPools(Terms{Spot: true})
			w.machines(rng, 2000, true)
			w.oneMore()
		}},
		recipe{"one-more-buys", "one more pod of a known shape, warm, 2,000 full nodes", true, func(w *Workload, rng *rand.Rand) {
			w.SetPools(Terms{Spot: true})
			w.machines(rng, 2000, false)
			w.oneMore()
		}},
	)
}

func mixedRecipe(pods int, spot, weighted bool) recipe {
	t := Terms{Spot: spot, Weighted: weighted}
	name, about := fmt.Sprintf("mixed-%d-od", pods), fmt.Sprintf("%d pods of 40 deployments, on demand", pods)
	if spot {
		name, about = fmt.Sprintf("mixed-%d-spot", pods), fmt.Sprintf("%d pods of 40 deployments, spot allowed", pods)
	}
	if weighted {
		name, about = name+"-weighted", about+", the ARM pool preferred"
	}
	return recipe{name, about, pods == 1000 || (pods == 5000 && spot && !weighted), func(w *Workload, rng *rand.Rand) {
		w.SetPools(t)
		w.mixed(rng, 40, pods)
	}}
}
