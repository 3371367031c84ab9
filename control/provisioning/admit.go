package provisioning

import (
	"fmt"
	"sync"

	"karpenter/model"
	"karpenter/world"
)

// ledger is the launches that have been admitted and that the world does not
// know of yet. Whoever launches enters them under the lock under which it has
// looked at the world, so that no two exceed a limit together.
type ledger struct {
	mu   sync.Mutex
	last int
	open map[int]model.Launch
}

// enterLocked enters the launches. Release takes them out, once, together with
// what it is given to do.
func (l *ledger) enterLocked(launches []model.Launch) (release func(with func())) {
	if l.open == nil {
		l.open = map[int]model.Launch{}
	}
	keys := make([]int, len(launches))
	for i := range launches {
		l.last++
		keys[i] = l.last
		l.open[l.last] = launches[i]
	}
	return func(with func()) {
		l.mu.Lock()
		defer l.mu.Unlock()
		with()
		for _, k := range keys {
			delete(l.open, k)
		}
	}
}

// refusal is a launch that is not carried out.
type refusal struct {
	launch model.Launch
	why    string
}

// admit checks launches for pending pods against the cluster as it is now,
// which may have changed since they were planned. A launch whose pods have all
// found a place or gone is dropped without a word.
func (a *admission) admit(launches []model.Launch) (admitted []model.Launch, refused []refusal) {
	pending := pendingUIDs(a.now)
	for _, l := range launches {
		if !wanted(l, pending) {
			continue
		}
		if why := a.reserve(l); why != "" {
			refused = append(refused, refusal{l, why})
			continue
		}
		admitted = append(admitted, l)
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

// admission is the cluster at a moment with what is being launched.
type admission struct {
	now       *model.Snapshot
	standings map[string]*standing // by pool
}

// admission returns how things stand; the ledger is locked.
func (p *Provisioner) admission(now *model.Snapshot) *admission {
	a := &admission{now: now, standings: map[string]*standing{}}
	for i := range now.Pools {
		a.standings[now.Pools[i].Name] = newStanding(&now.Pools[i])
	}
	for _, l := range p.ledger.open {
		if s := a.standings[l.Pool]; s != nil {
			s.used = s.used.Plus(s.most(l))
		}
	}
	return a
}

// reserve takes room for the launch or returns why it cannot be.
func (a *admission) reserve(l model.Launch) (why string) {
	s := a.standings[l.Pool]
	if s == nil || s.closed && !(s.static && len(l.Pods) == 0) {
		return "the node pool is gone or not ready any more"
	}
	if over, ok := s.reserve(l); !ok {
		return fmt.Sprintf("its limit %s=%s would be exceeded", a.now.Resources[over.Resource], model.FormatQuantity(over.Resource, over.Max))
	}
	return ""
}

// standing is a pool with what has been reserved in it.
type standing struct {
	closed     bool // launches nothing for pods
	static     bool // keeps a number of nodes, whose limit the world knows about
	limits     []model.Limit
	used       model.Resources
	capacities map[string]model.Resources // by type
}

func newStanding(p *model.Pool) *standing {
	s := &standing{
		closed: p.Unavailable != "", static: p.Static != nil,
		limits: p.Limits, used: p.Usage, capacities: make(map[string]model.Resources, len(p.Types)),
	}
	for _, t := range p.Types {
		s.capacities[t.Name] = t.Capacity
	}
	return s
}

// maxNodes returns how many nodes the pool may have.
func (s *standing) maxNodes() int {
	for _, l := range s.limits {
		if l.Resource == model.Nodes {
			return int(l.Max)
		}
	}
	return world.NoLimit
}

// most returns what the launch takes of the limits, whatever it becomes.
func (s *standing) most(l model.Launch) model.Resources {
	most := model.Resources{}.With(model.Nodes, 1)
	for _, name := range l.Types {
		most = most.Max(s.capacities[name])
	}
	return most
}

// reserve takes room for whatever the launch may become, or returns the limit
// that leaves none.
func (s *standing) reserve(l model.Launch) (over model.Limit, ok bool) {
	most := s.most(l)
	used := s.used.Plus(most)
	for _, limit := range s.limits {
		if most.At(limit.Resource) > 0 && used.At(limit.Resource) > limit.Max {
			return limit, false
		}
	}
	s.used = used
	return model.Limit{}, true
}
