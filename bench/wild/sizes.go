// SPDX-License-Identifier: Apache-2.0

package wild

import (
	"fmt"
	"math"

	"karpenter/bench/workload"
)

// podsPerDeployment is how many pending pods a Deployment has on average.
const podsPerDeployment = 13

// minReplicas is the fewest replicas of a heavy-tailed draw.
const minReplicas = 2

// heavyTailed returns numbers of replicas that are mostly small and sometimes
// as large as a tenth of all pods, as Deployments have them.
func (p *problem) heavyTailed(deployments int) []int {
	total := podsPerDeployment * deployments
	most := max(total/10, minReplicas)
	const tail = 1.1 // exponent of the Pareto distribution
	raw, beyond := make([]float64, deployments), 0.0
	for i := range raw {
		raw[i] = min(minReplicas*math.Pow(1-p.Float64(), -1/tail), float64(most)) - minReplicas
		beyond += raw[i]
	}
	scale := float64(total-minReplicas*deployments) / max(beyond, 1)
	out := make([]int, deployments)
	for i := range out {
		out[i] = min(minReplicas+int(math.Round(scale*raw[i])), most)
	}
	return out
}

// class is a range of sizes.
type class struct {
	share              float64 // of the Deployments
	fewCPU, manyCPU    float64 // millicores
	littleMem, muchMem float64 // MiB
}

// classes range from 50m and 64 MiB to 15 CPU and 64 GiB.
func classes() []class {
	return []class{
		{0.30, 50, 200, 64, 256},
		{0.35, 200, 1000, 256, 2 << 10},
		{0.22, 1000, 4000, 1 << 10, 16 << 10},
		{0.09, 4000, 8000, 8 << 10, 32 << 10},
		{0.04, 8000, 15000, 16 << 10, 64 << 10},
	}
}

// size draws what a pod requests: millicores in steps of 10, and memory in
// steps of 16 MiB.
func (p *problem) size() (cpu, memory int64) {
	all := classes()
	c, at := all[len(all)-1], p.Float64()
	for _, k := range all {
		if at < k.share {
			c = k
			break
		}
		at -= k.share
	}
	return p.between(c.fewCPU, c.manyCPU, 10), p.between(c.littleMem, c.muchMem, 16)
}

// between draws log-uniformly, rounded to the step.
func (p *problem) between(low, high, step float64) int64 {
	return int64(math.Round(low*math.Pow(high/low, p.Float64())/step) * step)
}

// sized draws Deployments of all classes of sizes with heavy-tailed numbers of
// replicas.
func (p *problem) sized() []workload.Deployment {
	out := make([]workload.Deployment, p.Case.Deployments)
	for i, replicas := range p.heavyTailed(len(out)) {
		cpu, memory := p.size()
		out[i] = workload.Deployment{Name: fmt.Sprintf("app-%04d", i), Replicas: replicas, CPU: cpu, Memory: memory}
	}
	return out
}
