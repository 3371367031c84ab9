// SPDX-License-Identifier: Apache-2.0

package provisioning

import (
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"karpenter/model"
	"karpenter/world"
)

// doubt is how long a claim counts if it is unknown whether it was created. If
// it was, the world has received it by then.
const doubt = time.Minute

// ledger holds the launches that were admitted and that the world does not know
// yet. A caller reads the world and enters its launches under the same lock, so
// that two callers cannot exceed a limit together.
type ledger struct {
	mu   sync.Mutex
	last int
	open map[int]entry
}

// entry is a launch in the ledger.
type entry struct {
	launch model.Launch
	until  time.Time // when it is forgotten; zero = when it is settled
}

// enterLocked enters the launch and returns its key.
func (l *ledger) enterLocked(launch model.Launch) int {
	if l.open == nil {
		l.open = map[int]entry{}
	}
	l.last++
	l.open[l.last] = entry{launch: launch}
	return l.last
}

// settleLocked removes the launch, which ended with err. If err does not tell
// whether the claim was created, the launch stays until the world must have
// received the claim.
func (l *ledger) settleLocked(key int, err error, now time.Time) {
	if !inDoubt(err) {
		delete(l.open, key)
		return
	}
	e := l.open[key]
	e.until = now.Add(doubt)
	l.open[key] = e
}

// sweepLocked drops launches whose time is over.
func (l *ledger) sweepLocked(now time.Time) {
	maps.DeleteFunc(l.open, func(_ int, e entry) bool { return !e.until.IsZero() && !now.Before(e.until) })
}

// inDoubt reports whether the object may have been created in spite of the
// error. That is so unless the API server has rejected it.
func inDoubt(err error) bool {
	var status apierrors.APIStatus
	var unasked *refusedError
	if err == nil || errors.As(err, &unasked) {
		return false
	}
	if !errors.As(err, &status) {
		return true
	}
	code := status.Status().Code
	return code < 400 || code >= 500
}

// refusal is a launch that is not carried out.
type refusal struct {
	launch model.Launch
	why    string
}

// admit checks launches for pending pods against the cluster as it is now,
// which may have changed since they were planned. A launch is dropped silently
// if all of its pods have found a node or were deleted.
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
	return whole(admitted, refused)
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

// admission returns the cluster with the launches in the ledger, which the
// caller has locked.
func (p *Provisioner) admission(now *model.Snapshot) *admission {
	a := &admission{now: now, standings: map[string]*standing{}}
	for i := range now.Pools {
		a.standings[now.Pools[i].Name] = newStanding(&now.Pools[i])
	}
	p.ledger.sweepLocked(now.Now)
	for _, e := range p.ledger.open {
		if s := a.standings[e.launch.Pool]; s != nil {
			s.used = s.used.Plus(s.most(e.launch))
		}
	}
	return a
}

// reserve reserves capacity for the launch within the limits, or returns why
// that is not possible.
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

// most returns the most that the launch can take of the limits, over all
// instance types that it can become.
func (s *standing) most(l model.Launch) model.Resources {
	most := model.Resources{}.With(model.Nodes, 1)
	for _, name := range l.Types {
		most = most.Max(s.capacities[name])
	}
	return most
}

// reserve reserves the most that the launch can take, or returns the limit that
// it would exceed.
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
