// SPDX-License-Identifier: Apache-2.0

package provisioning

import (
	"context"
	"errors"
	"strings"

	"golang.org/x/sync/errgroup"

	v1 "karpenter/api/v1"
	"karpenter/model"
)

// Replace creates a NodeClaim for each launch, for pods that run elsewhere and
// are to move: all of them within the limits of their pools, or none. The pools are those that
// the launches were planned with, by name. Replace plans the pods of each launch on its claim,
// and returns the names of the claims in the order of the launches. If it returns an error, the
// names are those of claims that were created nevertheless, on which no pod is planned. Safe for
// concurrent use.
func (p *Provisioner) Replace(ctx context.Context, reason model.Reason, launches []model.Launch, pools map[string]*v1.NodePool) ([]string, error) {
	if len(launches) == 0 {
		return nil, nil
	}
	keys, release, err := p.reserve(launches)
	if err != nil {
		return nil, err
	}
	defer release()
	claims, errs := make([]*v1.NodeClaim, len(launches)), make([]error, len(launches))
	var group errgroup.Group
	group.SetLimit(p.parallel())
	for i := range launches {
		group.Go(func() error {
			claims[i], errs[i] = p.create(ctx, &launches[i], pools[launches[i].Pool], strings.ToLower(string(reason)))
			return nil
		})
	}
	_ = group.Wait() // no function of the group returns an error
	failure := errors.Join(errs...)
	var names []string
	p.ledger.mu.Lock()
	defer p.ledger.mu.Unlock()
	for i, claim := range claims {
		p.ledger.settleLocked(keys[i], errs[i], p.Clock.Now())
		if claim == nil {
			continue
		}
		names = append(names, claim.Name)
		pods := launches[i].Pods
		if failure != nil {
			pods = nil
		}
		if known, ok := p.Convert.Claim(claim); ok {
			p.World.Planned(known, pods)
		}
	}
	return names, failure
}

// reserve reserves capacity within the limits for all launches, or for none.
// The caller settles each launch by its key, and then releases what the world
// has granted.
func (p *Provisioner) reserve(launches []model.Launch) (keys []int, release func(), err error) {
	p.ledger.mu.Lock()
	defer p.ledger.mu.Unlock()
	now := p.admission(p.World.Snapshot(p.Clock.Now()))
	var grants []func()
	release = func() {
		for _, g := range grants {
			g()
		}
	}
	for _, l := range launches {
		why := now.reserve(l)
		if s := now.standings[l.Pool]; why == "" && s.static {
			n, back := p.World.Reserve(l.Pool, s.maxNodes(), 1)
			grants = append(grants, back)
			if n < 1 {
				why = "its limit of nodes would be exceeded"
			}
		}
		if why != "" {
			release()
			return nil, nil, refused(l, why)
		}
	}
	for _, l := range launches {
		keys = append(keys, p.ledger.enterLocked(l))
	}
	return keys, release, nil
}

// refusedError reports that a claim was rejected before the API server was
// asked to create it.
type refusedError struct{ pool, why string }

func (e *refusedError) Error() string {
	return "create node claim for node pool " + e.pool + ": " + e.why
}

func refused(l model.Launch, why string) error { return &refusedError{l.Pool, why} }

// Move plans the pods on nodes of the Snapshot, publishes events on them, and
// protects these nodes from disruption for a while. Safe for concurrent use.
func (p *Provisioner) Move(s *model.Snapshot, placements []model.Placement) {
	if len(placements) > 0 {
		p.place(s, placements)
	}
}
