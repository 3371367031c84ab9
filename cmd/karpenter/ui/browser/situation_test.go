// SPDX-License-Identifier: Apache-2.0

package browser

import (
	"fmt"
	"math/rand/v2"
	"strings"
)

// kind is an instance type of the situation.
type kind struct {
	name        string
	cpu, memory int // vCPUs, GiB
	price       float64
}

// kinds are the instance types of the situation.
func kinds() []kind {
	var out []kind
	for _, family := range []struct {
		name   string
		memory int     // GiB of a vCPU
		price  float64 // of a vCPU
	}{{"c7g", 2, 0.0363}, {"m7g", 4, 0.0408}, {"r7g", 8, 0.0535}} {
		for i, size := range []string{"large", "xlarge", "2xlarge", "4xlarge"} {
			cpu := 2 << i
			out = append(out, kind{family.name + "." + size, cpu, cpu * family.memory, float64(cpu) * family.price})
		}
	}
	return out
}

// workload is pods that are alike.
type workload struct {
	namespace, name string
	cpu, memory     int // millicores, MiB
	next            int
}

// situation returns the text of a situation with some thousand pods on nodes of three
// NodePools. Nothing in it is pending but a few pods that no NodePool takes.
func situation(r *rand.Rand, nodes, podsOfNode int) string {
	var b strings.Builder
	types := kinds()
	for _, k := range types {
		fmt.Fprintf(&b, "type %s cpu=%d mem=%dGi pods=58 arch=arm64 zones=us-east-1a,us-east-1b,us-east-1c spot=%.4f,us-east-1c:%.4f! on-demand=%.4f overhead=cpu:80m,memory:800Mi\n",
			k.name, k.cpu, k.memory, k.price*0.38, k.price*0.3, k.price)
	}
	b.WriteString("pool general budgets=30\npool batch budgets=10 weight=10 limits=cpu:4000\npool databases requires=\"ct In [on-demand]\" consolidate-after=Never\n")
	var all []*workload
	for i, namespace := range []string{"shop", "search", "payments", "data", "platform", "ml"} {
		for j := range 4 {
			all = append(all, &workload{namespace, fmt.Sprintf("%s-%s", namespace, []string{"api", "web", "worker", "cache"}[j]), 100 + 50*r.IntN(8), 256 << r.IntN(3), i})
		}
	}
	var lines strings.Builder
	for n := range nodes {
		pool := []string{"general", "general", "general", "batch", "databases"}[r.IntN(5)]
		capacityType := "spot"
		if pool == "databases" || r.IntN(4) == 0 {
			capacityType = "on-demand"
		}
		zone := string("ab"[r.IntN(2)])
		k := types[r.IntN(len(types))]
		name := fmt.Sprintf("ip-10-%d-%d-%d.ec2.internal", n/250, n%250, 10+r.IntN(200))
		quiet := []string{"", " consolidatable"}[min(1, r.IntN(4))]
		fmt.Fprintf(&b, "node %s pool=%s type=%s zone=us-east-1%s ct=%s%s\n", name, pool, k.name, zone, capacityType, quiet)
		cpu, memory := k.cpu*1000-80, k.memory*1024-800
		for range podsOfNode + r.IntN(5) - 2 {
			w := all[r.IntN(len(all))]
			if w.cpu > cpu || w.memory > memory {
				continue
			}
			cpu, memory = cpu-w.cpu, memory-w.memory
			w.next++
			fmt.Fprintf(&lines, "pods %s/%s-%d cpu=%dm mem=%dMi on=%s\n", w.namespace, w.name, w.next, w.cpu, w.memory, name)
		}
	}
	b.WriteString(lines.String())
	b.WriteString("pods ml/train-1..6 cpu=8 mem=32Gi gpu=1\npods shop/report-1..3 cpu=2 mem=4Gi select=disk=nvme\n")
	b.WriteString("decide now=2026-11-23T06:00:00Z\n")
	return b.String()
}
