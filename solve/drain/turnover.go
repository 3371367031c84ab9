// SPDX-License-Identifier: Apache-2.0

package drain

import (
	"fmt"
	"math"

	"karpenter/model"
)

// turnover returns what is left of what the pool lets be replaced.
func (r *round) turnover(p *model.Pool) *turnover {
	if r.turns == nil {
		r.turns, r.reserved = map[string]*turnover{}, map[string]int64{}
	}
	if r.turns[p.Name] == nil {
		r.turns[p.Name] = turnovers(p)
	}
	return r.turns[p.Name]
}

func turnovers(p *model.Pool) *turnover {
	out := &turnover{room: math.MaxInt, reservations: fullOfferings(p)}
	st := p.Static
	switch {
	case p.Unavailable != "" && p.Unavailable != "static":
		out.cause, out.why = model.ByPolicy, fmt.Sprintf("nodepool %s is %s", p.Name, p.Unavailable)
	case st.Active > st.Replicas:
		out.cause, out.why = model.ByPolicy, fmt.Sprintf("nodepool %s is scaled down first: it has %d nodes for %d replicas", p.Name, st.Active, st.Replicas)
	}
	for _, l := range p.Limits {
		if l.Resource == model.Nodes {
			missing := max(st.Replicas-st.Active-st.Pending, 0)
			out.room = int(l.Max) - st.Active - st.Leaving - st.Pending - missing
			out.full = fmt.Sprintf("the limit nodes=%d of nodepool %s leaves no capacity for its replacement", l.Max, p.Name)
		}
	}
	return out
}
