// SPDX-License-Identifier: Apache-2.0

package wild

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"karpenter/bench/workload"
)

// families returns all families. Their names are part of what is drawn.
func families() []family {
	return append([]family{
		{name: "mix", about: "half of the Deployments have no constraint, the others one of eight kinds", draw: (*problem).mix},
		{name: "helm", about: "every Deployment prefers its pods spread over hosts and zones", draw: (*problem).helm},
		{name: "anti", about: "every Deployment has required anti-affinity between its pods per host", draw: (*problem).anti},
		{name: "hard", about: "every Deployment has required spread over zones and hosts", draw: (*problem).hard},
		{name: "ports", about: "every Deployment has a host port of its own, half of them another one that some share", draw: (*problem).ports},
		{name: "chains", about: "Deployments have required affinity to the previous one of a chain; one in five chains is a ring", draw: (*problem).chains},
		{name: "distinct", about: "no two pods request the same", draw: (*problem).distinct},
		{name: "plain", about: "no constraints", draw: (*problem).plain},
		{name: "half-empty", about: "as mix, packed onto nodes, then 30% to 80% of the pods gone", draw: (*problem).mix, disruption: true},
		{name: "half-empty-plain", about: "as plain, packed onto nodes, then 30% to 80% of the pods gone", draw: (*problem).plain, disruption: true},
		{name: "stream", about: "as mix with 1 to 3 replicas, onto nearly full nodes", draw: (*problem).stream},
		{name: "hostile-resources", about: "each Deployment requests a resource that nothing has; 30 ordinary pods wait, too", draw: (*problem).unknownResources},
		{name: "hostile-spread", about: "10 pods with three spread constraints for each Deployment that other families have", draw: (*problem).manySpreads},
		{name: "hostile-labels", about: "20 pods spread over two labels, for which the NodePool allows hundreds of values", draw: (*problem).openLabels},
		{name: "hostile-terms", about: "every pod has 60 alternative node affinity terms and 100 preferred ones", draw: (*problem).manyTerms},
		{name: "scheduler-perf", about: "pod templates of the scheduler's own benchmark in k8s.io/kubernetes", draw: (*problem).schedulerPerf},
		{name: "prices-zero", about: "as mix, every price is zero", draw: (*problem).zeroPrices},
		{name: "prices-equal", about: "as mix, every price is the same", draw: (*problem).equalPrices},
		{name: "prices-zone", about: "as mix, one zone is ten times as expensive", draw: (*problem).expensiveZone},
	}, oddFamilies()...)
}

// deploy adds Deployments of all sizes, each with the rule drawn for it.
func (p *problem) deploy(draw func() rule) {
	for _, d := range p.sized() {
		d.Constrain = draw()
		p.Workload.Deployments = append(p.Workload.Deployments, d)
	}
}

// mix draws what an ordinary cluster has.
func (p *problem) mix() {
	p.deploy(func() rule { return all(p.mixedRule(), p.placeRule()) })
}

// mixedRule draws one of the constraints of mix.
func (p *problem) mixedRule() rule {
	kinds := []struct {
		percent int
		rule    func() rule
	}{
		{50, func() rule { return all() }},
		{18, func() rule { return spread(corev1.LabelTopologyZone, 1, corev1.DoNotSchedule) }},
		{6, func() rule { return spread(corev1.LabelTopologyZone, 1, corev1.ScheduleAnyway) }},
		{6, func() rule { return spread(corev1.LabelHostname, 4, corev1.DoNotSchedule) }},
		{6, apart},
		{3, func() rule { return preferApart(corev1.LabelHostname) }},
		{5, onDemand},
		{3, p.twoZones},
		{3, func() rule { return inCategory([]string{"c", "m", "r"}[p.IntN(3)]) }},
	}
	at := p.IntN(100)
	for _, k := range kinds {
		if at < k.percent {
			return k.rule()
		}
		at -= k.percent
	}
	panic("the shares of the kinds add up to less than 100")
}

func (p *problem) twoZones() rule {
	all := zones()
	out := p.IntN(len(all))
	return inZones(append(append([]string{}, all[:out]...), all[out+1:]...)...)
}

// placeRule sends 12% of the Deployments to ARM and 8% to the tainted pool.
func (p *problem) placeRule() rule {
	switch at := p.IntN(100); {
	case at < 12:
		return onArm()
	case at < 20:
		return onBatch()
	}
	return all()
}

// helm draws what many charts have by default.
func (p *problem) helm() {
	p.deploy(func() rule {
		if p.IntN(2) == 0 {
			return preferApart(corev1.LabelHostname, corev1.LabelTopologyZone)
		}
		return all(spread(corev1.LabelHostname, 1, corev1.ScheduleAnyway), spread(corev1.LabelTopologyZone, 1, corev1.ScheduleAnyway))
	})
}

func (p *problem) anti() { p.deploy(apart) }

func (p *problem) hard() {
	p.deploy(func() rule {
		return all(spread(corev1.LabelTopologyZone, 1, corev1.DoNotSchedule), spread(corev1.LabelHostname, 1+p.Int32N(3), corev1.DoNotSchedule))
	})
}

func (p *problem) plain() { p.deploy(func() rule { return all() }) }

// distinct draws Deployments of one pod, each of its own size.
func (p *problem) distinct() {
	seen := map[[2]int64]bool{}
	for len(seen) < p.Case.Deployments {
		cpu, memory := p.size()
		cpu, memory = cpu+p.Int64N(10), memory+p.Int64N(16)
		if seen[[2]int64{cpu, memory}] {
			continue
		}
		seen[[2]int64{cpu, memory}] = true
		p.Workload.Deployments = append(p.Workload.Deployments, workload.Deployment{
			Name: fmt.Sprintf("app-%04d", len(seen)), Replicas: 1, CPU: cpu, Memory: memory,
		})
	}
}
