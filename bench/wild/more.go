// SPDX-License-Identifier: Apache-2.0

package wild

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"karpenter/bench/workload"
)

// ports draws what daemons of old and game servers have.
func (p *problem) ports() {
	p.apart = true
	number, shared := int32(0), int32(max(p.Case.Deployments/10, 1))
	p.deploy(func() rule {
		number++
		list := []int32{8000 + number}
		if p.IntN(2) == 0 {
			list = append(list, 20000+p.Int32N(shared))
		}
		return hostPorts(list...)
	})
}

func hostPorts(list ...int32) rule {
	return func(_ string, s *corev1.PodSpec) {
		for _, port := range list {
			s.Containers[0].Ports = append(s.Containers[0].Ports, corev1.ContainerPort{ContainerPort: port, HostPort: port, Protocol: corev1.ProtocolTCP})
		}
	}
}

// chains draws chains of 2 to 8 Deployments. The first of a chain needs no
// other; the first of a ring needs the last, so that no scheduler can place it.
func (p *problem) chains() {
	p.apart = true
	all := p.sized()
	for first := 0; first < len(all); {
		length := min(2+p.IntN(7), len(all)-first)
		key := corev1.LabelTopologyZone
		if p.IntN(5) == 0 {
			key = corev1.LabelHostname
		}
		for i := first + 1; i < first+length; i++ {
			all[i].Constrain = near(key, all[i-1].Name)
		}
		if p.IntN(5) == 0 {
			all[first].Constrain = near(key, all[first+length-1].Name)
		}
		if key == corev1.LabelHostname {
			together(all[first : first+length])
		}
		first += length
	}
	p.Workload.Deployments = all
}

// trees draws Deployments of up to three pods that have required affinity to an earlier one
// each, half of them to its hosts: up to 40 in a tree, whose first needs no other.
func (p *problem) trees() {
	p.apart = true
	all := p.sized()
	for i := range all {
		all[i].Replicas, all[i].CPU, all[i].Memory = 1+p.IntN(3), min(all[i].CPU, 2000), min(all[i].Memory, 8192)
		if first := i / 40 * 40; i > first {
			key := []string{corev1.LabelTopologyZone, corev1.LabelHostname}[p.IntN(2)]
			all[i].Constrain = near(key, all[first+p.IntN(i-first)].Name)
		}
	}
	p.Workload.Deployments = all
}

// together makes Deployments small enough for one host to run a pod of each for
// every pod of the first.
func together(all []workload.Deployment) {
	for i := range all {
		all[i].Replicas, all[i].CPU, all[i].Memory = min(all[0].Replicas, 20), min(all[i].CPU, 500), min(all[i].Memory, 1024)
	}
}

// near demands a pod of the other Deployment in the same domain.
func near(key, other string) rule {
	return func(_ string, s *corev1.PodSpec) {
		affinity(s).PodAffinity = &corev1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{
			{TopologyKey: key, LabelSelector: selecting(other)},
		}}
	}
}

// stream draws what comes in all day long.
func (p *problem) stream() {
	p.nearlyFull = true
	p.mix()
	for i := range p.Workload.Deployments {
		p.Workload.Deployments[i].Replicas = 1 + p.IntN(3)
	}
}

// zeroPrices draws the price list of somebody who owns the machines.
func (p *problem) zeroPrices() {
	p.mix()
	p.price(func(string, float64) float64 { return 0 })
}

func (p *problem) equalPrices() {
	p.mix()
	p.price(func(string, float64) float64 { return 1 })
}

func (p *problem) expensiveZone() {
	p.mix()
	expensive := zones()[p.IntN(len(zones()))]
	p.price(func(zone string, price float64) float64 {
		if zone == expensive {
			return 10 * price
		}
		return price
	})
}

// price changes all prices.
func (p *problem) price(of func(zone string, price float64) float64) {
	for i := range p.Entries {
		for k := range p.Entries[i].Offerings {
			o := &p.Entries[i].Offerings[k]
			for _, r := range o.Requirements {
				if r.Key == corev1.LabelTopologyZone {
					o.Price = new(of(r.Values[0], *o.Price))
				}
			}
		}
	}
}

// few adds small Deployments of a prefix, one pod each.
func (p *problem) few(prefix string, count int, constrain rule) {
	for i := range count {
		p.Workload.Deployments = append(p.Workload.Deployments, workload.Deployment{
			Name: fmt.Sprintf("%s-%04d", prefix, i), Replicas: 1, CPU: 500, Memory: 1024, Constrain: constrain,
		})
	}
}
