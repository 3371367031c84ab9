// SPDX-License-Identifier: Apache-2.0

package script

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"
)

// Draw makes up a script: a small cluster, some events and some faults. The
// same seed always gives the same script.
func Draw(seed uint64) *Script {
	d := &drawer{rand.New(rand.NewPCG(seed, 0)), &Script{Seed: seed}}
	d.s.Run = time.Duration(6+d.IntN(4)*4) * time.Minute
	d.s.Rest = 32 * time.Minute
	d.types()
	d.pools()
	d.pods()
	d.events()
	d.faults()
	d.sickness()
	d.frozen()
	d.hindered()
	d.Rand = rand.New(rand.NewPCG(seed, 3))
	if d.one(3) {
		d.buffers()
	}
	return d.s
}

// DrawGroups makes up a script as Draw does, in which pods of workloads are of PodGroups.
func DrawGroups(seed uint64) *Script {
	d := &drawer{rand.New(rand.NewPCG(seed, 4)), Draw(seed)}
	for i := range d.s.Pods {
		if w := &d.s.Pods[i]; !w.Daemon && w.Count > 0 && !d.one(3) {
			w.Group, w.Whole = 1+d.IntN(w.Count), d.one(3)
		}
	}
	if d.one(2) { // the usual reason why a group cannot start
		t := d.s.Types[d.IntN(len(d.s.Types))]
		d.s.Faults = append(d.s.Faults, Fault{Kind: NoCapacity, Zone: t.Zones[d.IntN(len(t.Zones))], Every: 1 + d.IntN(3)})
	}
	return d.s
}

type drawer struct {
	*rand.Rand
	s *Script
}

// one reports true once in n times.
func (d *drawer) one(n int) bool { return d.IntN(n) == 0 }

func pick[T any](d *drawer, from ...T) T { return from[d.IntN(len(from))] }

func (d *drawer) types() {
	sold := []Type{
		{Name: "s1", CPU: "1", Mem: "2Gi", Price: 0.05},
		{Name: "m2", CPU: "2", Mem: "8Gi", Price: 0.1},
		{Name: "c4", CPU: "4", Mem: "8Gi", Price: 0.17},
		{Name: "m4", CPU: "4", Mem: "16Gi", Price: 0.2},
		{Name: "m8", CPU: "8", Mem: "32Gi", Price: 0.4},
		{Name: "m16", CPU: "16", Mem: "64Gi", Price: 0.8},
	}
	zones := []string{"a", "b", "c"}[:1+d.IntN(3)]
	d.Shuffle(len(sold), func(i, j int) { sold[i], sold[j] = sold[j], sold[i] })
	for _, t := range sold[:2+d.IntN(4)] {
		t.Zones = zones
		if !d.one(4) {
			t.Spot = t.Price * 0.3
			t.Spot = float64(int(t.Spot*1000)) / 1000
		}
		d.s.Types = append(d.s.Types, t)
	}
}

func (d *drawer) pools() {
	for i := range 1 + d.IntN(2) {
		p := Pool{Name: []string{"general", "extra"}[i]}
		p.After = pick(d, 0, 0, 30*time.Second, 2*time.Minute, Never)
		p.Policy = pick(d, "", "", "WhenEmpty", "Balanced")
		p.Budgets = pick(d, nil, nil, []string{"1"}, []string{"100%"}, []string{"50%", "0:Drifted"}, []string{"2", "0@hourly/10m"})
		if d.one(3) {
			p.Limits.Nodes = 1 + d.IntN(8)
		}
		if d.one(4) {
			p.Limits.CPU = fmt.Sprint(4 + d.IntN(28))
		}
		if d.one(6) {
			p.Limits.Mem = fmt.Sprintf("%dGi", 8+d.IntN(60))
		}
		if d.one(6) {
			p.Expire = time.Duration(8+d.IntN(15)) * time.Minute
		}
		if d.one(4) {
			p.Grace = time.Duration(1+d.IntN(5)) * time.Minute
		}
		if d.one(3) {
			p.Weight = 1 + d.IntN(50)
		}
		if d.one(3) {
			p.Capacity = []string{pick(d, "spot", "on-demand")}
		}
		if i > 0 && d.one(3) {
			p.Taint = "dedicated"
		}
		d.s.Pools = append(d.s.Pools, p)
	}
}

func (d *drawer) pods() {
	for i := range 1 + d.IntN(4) {
		w := Workload{Name: []string{"web", "api", "job", "db"}[i], Count: 1 + d.IntN(10)}
		w.CPU = pick(d, "100m", "250m", "500m", "1", "1500m", "3")
		w.Mem = pick(d, "128Mi", "500Mi", "1Gi", "3Gi")
		w.Apart = pick(d, "", "", "", "", "node", "zone")
		if w.Apart == "" {
			w.Spread = pick(d, "", "", "", "node", "zone")
		}
		w.PDB = pick(d, "", "", "1", "25%", "0")
		if d.one(5) {
			w.Protect = pick(d, "true", "5m", "15m")
		}
		w.Grace = pick(d, 0, 10*time.Second, time.Minute)
		if d.one(3) {
			w.Life = time.Duration(5+d.IntN(30)) * time.Minute
		}
		if d.one(6) {
			w.Zone = pick(d, d.s.Types[0].Zones...)
		}
		if d.one(4) {
			w.Tolerates = "dedicated"
		}
		if w.Count == 1 && w.Protect == "" && d.one(2) {
			w.Surge = true
		}
		d.s.Pods = append(d.s.Pods, w)
	}
	if d.one(3) {
		d.s.Pods = append(d.s.Pods, Workload{Name: "agent", Daemon: true, CPU: "100m", Mem: "128Mi"})
	}
}

// sickness has some nodes be unhealthy for about as long as node repair
// tolerates.
func (d *drawer) sickness() {
	if !d.one(4) {
		return
	}
	d.s.Gates = append(d.s.Gates, "NodeRepair")
	for range 1 + d.IntN(2) {
		d.s.Events = append(d.s.Events, Event{
			At: When{After: time.Duration(d.IntN(int(d.s.Run/time.Second))) * time.Second}, Do: Sicken,
			Name: d.s.Pools[0].Name, Count: 1 + d.IntN(2), For: time.Duration(540+d.IntN(120)) * time.Second,
		})
	}
}

// hindered has nodes or pods not do for a while what they were launched for.
func (d *drawer) hindered() {
	if !d.one(6) {
		return
	}
	e := Event{Do: pick(d, Unready, Unbound, Unstarted), Name: d.s.Pods[d.IntN(len(d.s.Pods))].Name}
	e.At.After = time.Duration(d.IntN(int(d.s.Run/time.Second/2))) * time.Second
	e.For = d.s.Run - e.At.After
	if e.Do == Unready {
		e.Name = d.s.Pools[d.IntN(len(d.s.Pools))].Name
	}
	d.s.Events = append(d.s.Events, e)
}

// buffers has CapacityBuffers keep capacity for more pods of some workloads.
func (d *drawer) buffers() {
	d.s.Gates = append(d.s.Gates, "CapacityBuffer")
	for i := range d.s.Pods {
		if w := &d.s.Pods[i]; !w.Daemon && (i == 0 || d.one(2)) {
			w.Buffer = 1 + d.IntN(4)
		}
	}
}

// frozen has the leader stand still, mostly for longer than its lease lasts.
func (d *drawer) frozen() {
	if d.one(5) {
		d.s.Faults = append(d.s.Faults, Fault{Kind: Freeze, At: 1 + d.IntN(200), Lag: time.Duration(5+d.IntN(55)) * time.Second})
	}
}

func (d *drawer) at() When {
	if d.one(4) {
		return When{Step: 50 + d.IntN(1500)}
	}
	return When{After: time.Duration(d.IntN(int(d.s.Run/time.Second))) * time.Second}
}

func (d *drawer) events() {
	for range d.IntN(6) {
		e := Event{At: d.at(), Do: pick(d, Scale, Scale, Scale, DeletePod, DeleteNode, DeleteClaim, DeletePool, Edit, Edit, Price, Interrupt), Count: 1}
		pool := d.s.Pools[d.IntN(len(d.s.Pools))].Name
		switch e.Do {
		case Scale:
			e.Name, e.Count = d.s.Pods[d.IntN(len(d.s.Pods))].Name, d.IntN(14)
			if d.s.workload(e.Name).Daemon {
				continue
			}
		case DeletePod:
			e.Name, e.Count = d.s.Pods[d.IntN(len(d.s.Pods))].Name, 1+d.IntN(3)
		case DeleteNode, DeleteClaim:
			e.Name, e.Count = pool, 1+d.IntN(2)
		case DeletePool:
			if len(d.s.Pools) < 2 || !d.one(2) {
				continue
			}
			e.Name = d.s.Pools[1].Name
		case Edit:
			e.Name = pool
			e.Edit = []string{pick(d, "label=v2", "label=v3", "budgets=0", "budgets=3", "after=1m", "limits=nodes:3", "policy=WhenEmpty", "taint=dedicated")}
		case Price:
			t := d.s.Types[d.IntN(len(d.s.Types))]
			e.Name, e.Factor = t.Name, pick(d, 0.5, 2, 10)
			if t.Spot > 0 {
				e.Sold = pick(d, "", "spot")
			}
		}
		d.s.Events = append(d.s.Events, e)
	}
}

func (d *drawer) faults() {
	all := slices.DeleteFunc(kinds(), func(k Kind) bool { return k == Freeze }) // drawn by frozen
	for range d.IntN(5) {
		f := Fault{Kind: all[d.IntN(len(all))]}
		if d.one(2) {
			f.From = time.Duration(d.IntN(int(d.s.Run/time.Second))) * time.Second
			f.For = time.Duration(1+d.IntN(10)) * time.Minute
		}
		f.Every = pick(d, 0, 2, 5, 10, 30)
		f.Times = pick(d, 0, 1, 3, 10)
		d.detail(&f)
		d.s.Faults = append(d.s.Faults, f)
	}
}

// detail adds what only some kinds have.
func (d *drawer) detail(f *Fault) {
	switch f.Kind {
	case Crash, CrashAfter, Leader:
		if d.one(2) {
			f.At, f.Every, f.Times = 1+d.IntN(200), 0, 0
			return
		}
		f.Every, f.Times = 20+d.IntN(80), 1+d.IntN(4)
	case Stale:
		f.Lag, f.Every = time.Duration(1+d.IntN(30))*time.Second, max(f.Every, 2)
	case Gap:
		f.Every, f.Times = max(f.Every, 10), 1+d.IntN(4)
	case CloudLag:
		f.Lag = time.Duration(1+d.IntN(90)) * time.Second
	case PartialList, FewTypes:
		f.Keep = 1 + d.IntN(80)
	case NoCapacity, NoJoin:
		if d.one(2) {
			f.Type = d.s.Types[d.IntN(len(d.s.Types))].Name
		}
		if f.Kind == NoJoin {
			f.Times = 1 + d.IntN(3)
		}
	case Conflict, Throttle, Timeout, Lost:
		f.Every = max(f.Every, 2)
		if d.one(2) {
			f.Object = pick(d, "NodeClaim", "Node", "NodePool", "Pod")
		}
	}
}
