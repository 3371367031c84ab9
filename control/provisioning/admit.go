package provisioning

import (
	"fmt"

	"karpenter/model"
)

// refusal is a launch that is not carried out.
type refusal struct {
	launch model.Launch
	why    string
}

// admit checks launches against the cluster as it is now, which may have
// changed since they were planned. A launch whose pods have all found a place
// or gone is dropped without a word.
func admit(launches []model.Launch, now *model.Snapshot) (admitted []model.Launch, refused []refusal) {
	pending := pendingUIDs(now)
	standings := map[string]*standing{}
	for i := range now.Pools {
		if p := &now.Pools[i]; p.Unavailable == "" {
			standings[p.Name] = newStanding(p)
		}
	}
	for _, l := range launches {
		s := standings[l.Pool]
		switch {
		case !wanted(l, pending):
		case s == nil:
			refused = append(refused, refusal{l, "the node pool is gone or not ready any more"})
		default:
			if over, ok := s.reserve(l); !ok {
				refused = append(refused, refusal{l, fmt.Sprintf("its limit %s=%s would be exceeded",
					now.Resources[over.Resource], model.FormatQuantity(over.Resource, over.Max))})
				continue
			}
			admitted = append(admitted, l)
		}
	}
	return admitted, refused
}

func pendingUIDs(s *model.Snapshot) map[string]bool {
	out := map[string]bool{}
	for _, p := range s.Pending {
		for _, pod := range p.Pods {
			out[pod.UID] = true
		}
	}
	return out
}

func wanted(l model.Launch, pending map[string]bool) bool {
	for _, pod := range l.Pods {
		if pending[pod.UID] {
			return true
		}
	}
	return false
}

// standing is a pool with what has been reserved in it.
type standing struct {
	limits     []model.Limit
	used       model.Resources
	capacities map[string]model.Resources // by type
}

func newStanding(p *model.Pool) *standing {
	s := &standing{limits: p.Limits, used: p.Usage, capacities: make(map[string]model.Resources, len(p.Types))}
	for _, t := range p.Types {
		s.capacities[t.Name] = t.Capacity
	}
	return s
}

// reserve takes room for whatever the launch may become, or returns the limit
// that leaves none.
func (s *standing) reserve(l model.Launch) (over model.Limit, ok bool) {
	most := model.Resources{}.With(model.Nodes, 1)
	for _, name := range l.Types {
		most = most.Max(s.capacities[name])
	}
	used := s.used.Plus(most)
	for _, limit := range s.limits {
		if most.At(limit.Resource) > 0 && used.At(limit.Resource) > limit.Max {
			return limit, false
		}
	}
	s.used = used
	return model.Limit{}, true
}
