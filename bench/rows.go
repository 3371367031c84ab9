// SPDX-License-Identifier: Apache-2.0

package main

import (
	"slices"
	"strings"

	"karpenter/bench/wild"
	"karpenter/bench/workload"
)

// What the rows of drawn problems have in common. The seed has no meaning but
// that it stays the same.
const (
	wildPrefix      = "wild-"
	wildDeployments = 50
	wildSeed        = 20260101
)

// names returns the names of all workloads in the order they run: those of
// package workload, then one problem of each family about pending pods. What few
// workloads have is left to bench wild.
func names() []string {
	out, odd := workload.Names(), wild.Matching("odd")
	for _, family := range wild.Families() {
		if !wild.Disruption(family) && !slices.Contains(odd, family) {
			out = append(out, wildPrefix+family)
		}
	}
	return out
}

// load makes the workload of that name.
func load(name string) (*workload.Workload, error) {
	family, drawn := strings.CutPrefix(name, wildPrefix)
	if !drawn {
		return workload.New(name)
	}
	w, err := wild.Draw(wild.Case{Family: family, Deployments: wildDeployments, Draw: 1, Seed: wildSeed})
	if err != nil {
		return nil, err
	}
	w.UpstreamCap = workload.OwnCap
	return w, nil
}
