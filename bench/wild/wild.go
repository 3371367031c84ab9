// SPDX-License-Identifier: Apache-2.0

package wild

import (
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"slices"
	"strings"

	v1 "karpenter/api/v1"
	"karpenter/bench/workload"
)

// Case names one problem.
type Case struct {
	Family      string `json:"family"`
	Deployments int    `json:"deployments"`
	Nodes       int    `json:"nodes"` // existing ones
	Draw        int    `json:"draw"`  // problems of equal size are counted from 1
	Seed        uint64 `json:"seed"`  // of the run
}

// Name returns a name that is unique within a run and usable as a file name.
func (c Case) Name() string {
	return fmt.Sprintf("%s-d%d-n%d-%d", c.Family, c.Deployments, c.Nodes, c.Draw)
}

// rng returns the source of everything drawn for the case. Cases do not share
// one, so that leaving out some of them does not change the others.
func (c Case) rng() *rand.Rand {
	h := fnv.New64a()
	fmt.Fprint(h, c.Name())
	return rand.New(rand.NewPCG(c.Seed, h.Sum64()))
}

// family draws problems of one kind.
type family struct {
	name, about string
	draw        func(*problem)
	disruption  bool // no pod is pending; nodes have to be disrupted
}

// Families returns the names of all families in the order they are reported.
func Families() []string {
	var out []string
	for _, f := range families() {
		out = append(out, f.name)
	}
	return out
}

// About returns one line about a family.
func About(name string) string {
	for _, f := range families() {
		if f.name == name {
			return f.about
		}
	}
	return ""
}

// Matching returns the families of that name, or whose names begin with it and
// a dash.
func Matching(name string) []string {
	return slices.DeleteFunc(Families(), func(f string) bool { return f != name && !strings.HasPrefix(f, name+"-") })
}

// Disruption reports whether the family is about disrupting nodes.
func Disruption(name string) bool {
	return slices.ContainsFunc(families(), func(f family) bool { return f.name == name && f.disruption })
}

// problem is a workload while it is drawn.
type problem struct {
	*workload.Workload
	*rand.Rand
	Case
	nearlyFull bool // existing nodes are
	apart      bool // existing nodes run no replicas of the Deployments
}

// Draw draws the problem.
func Draw(c Case) (*workload.Workload, error) {
	at := slices.IndexFunc(families(), func(f family) bool { return f.name == c.Family })
	if at < 0 {
		return nil, fmt.Errorf("unknown family %q, want one of %v", c.Family, Families())
	}
	if c.Deployments < 1 || c.Nodes < 0 {
		return nil, fmt.Errorf("%d Deployments on %d nodes: want at least one Deployment and no negative number of nodes", c.Deployments, c.Nodes)
	}
	f := families()[at]
	w, err := workload.Empty(c.Name())
	if err != nil {
		return nil, err
	}
	w.About = f.about
	w.SetPools(workload.Terms{Spot: true, Weighted: true})
	p := &problem{Workload: w, Rand: c.rng(), Case: c}
	f.draw(p)
	w.Count()
	for _, pool := range w.Pools {
		pool.Spec.Disruption.ConsolidateAfter = v1.MustParseNillableDuration("0s")
		pool.Spec.Disruption.ConsolidationPolicy = v1.ConsolidationPolicyWhenEmptyOrUnderutilized
		pool.Spec.Disruption.Budgets = []v1.Budget{{Nodes: "100%"}}
	}
	if f.disruption {
		p.halfEmpty()
	} else {
		p.existing()
	}
	w.Count()
	return w, nil
}
