// SPDX-License-Identifier: Apache-2.0

package top

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"karpenter/cmd/karpenter/explain"
	"karpenter/cmd/karpenter/situation"
	"karpenter/model"
	"karpenter/scenario"
	"karpenter/solve"
)

// Answers is what the planner says of the cluster at one moment. It is safe for
// concurrent use.
type Answers struct {
	Bound  Bound
	Prices Prices // nil = Karpenter publishes none

	situation scenario.Situation
	pods      []*corev1.Pod
	once      sync.Once
	plan      *model.Plan
}

// Ask plans for the cluster as it is at the time. If that cannot be done, Bound says
// why.
func Ask(ctx context.Context, r *situation.Reader, now time.Time) (*Answers, error) {
	a := &Answers{Bound: Bound{At: now}}
	published, _, err := r.Published(ctx)
	switch {
	case apierrors.IsForbidden(errors.Unwrap(err)), apierrors.IsForbidden(err):
		a.Bound.Missing = "you may not read ConfigMap " + situation.Name
		return a, nil
	case errors.Is(err, situation.ErrNotPublished):
		a.Bound.Missing = "Karpenter publishes no offerings here"
		return a, nil
	case err != nil:
		return nil, err
	}
	if !slices.ContainsFunc(published.Offerings.Snapshot.Pools, func(p model.Pool) bool { return len(p.Types) > 0 }) {
		a.Bound.Missing = "no NodePool has instance types yet"
		return a, nil
	}
	a.Prices = PricesOf(published.Offerings.Snapshot)
	a.situation, err = situation.Build(published, now, r.Listing(ctx, func(p *corev1.Pod) { a.pods = append(a.pods, p) }))
	if err != nil {
		a.Bound.Missing = strings.ReplaceAll(err.Error(), "\n", "; ")
		return a, nil
	}
	c := explain.OfCluster(a.situation.Snapshot, func(fresh *model.Snapshot) *model.Plan {
		return new(solve.Planner).Place(fresh, a.situation.Policy)
	})
	a.Bound.Cost, a.Bound.Least = c.Cost, c.Bound
	return a, nil
}

// PricesOf returns the prices of the offerings.
func PricesOf(s *model.Snapshot) Prices {
	type offer struct{ instanceType, zone, capacityType string }
	known := map[offer]float64{}
	for i := range s.Pools {
		for _, t := range s.Pools[i].Types {
			for j := range t.Offerings {
				o := &t.Offerings[j]
				known[offer{t.Name, o.Zone, string(o.CapacityType)}] = o.Price.Dollars()
			}
		}
	}
	return func(instanceType, zone, capacityType string) (float64, bool) {
		price, ok := known[offer{instanceType, zone, capacityType}]
		return price, ok
	}
}

// decided returns the plan for the situation.
func (a *Answers) decided() *model.Plan {
	a.once.Do(func() { a.plan = solve.Decide(a.situation.Snapshot, a.situation.Policy) })
	return a.plan
}

// Node explains why the node stays or goes.
func (a *Answers) Node(n *Node) (*Detail, error) {
	if a.situation.Snapshot == nil {
		return nil, errors.New(a.Bound.Missing)
	}
	answer, found := explain.OfNode(a.situation.Snapshot, a.decided(), n.Name)
	if !found && n.Claim != "" {
		answer, found = explain.OfNode(a.situation.Snapshot, a.decided(), n.Claim)
	}
	if !found {
		return nil, fmt.Errorf("the planner has not seen node %s yet; try again in a few seconds", n.Name)
	}
	var text strings.Builder
	if err := answer.Text(&text); err != nil {
		return nil, err
	}
	lines := strings.Split(strings.TrimRight(text.String(), "\n"), "\n")
	if n.Why != "" {
		lines = append(lines, "", n.Why)
	}
	return &Detail{Title: "karpenter explain node " + n.Name, Lines: lines}, nil
}

// Pod explains why the pod waits.
func (a *Answers) Pod(namespace, name string) (*Detail, error) {
	if a.situation.Snapshot == nil {
		return nil, errors.New(a.Bound.Missing)
	}
	key := namespace + "/" + name
	answer, found := explain.Of(a.situation.Snapshot, a.decided(), key)
	if !found {
		at := slices.IndexFunc(a.pods, func(p *corev1.Pod) bool { return p.Namespace == namespace && p.Name == name })
		if at < 0 {
			return nil, fmt.Errorf("the planner has not seen pod %s yet; try again in a few seconds", key)
		}
		answer = explain.OfOther(a.pods[at])
	}
	var text strings.Builder
	if err := answer.Text(&text); err != nil {
		return nil, err
	}
	return &Detail{Title: "karpenter explain pod " + name + " -n " + namespace, Lines: strings.Split(strings.TrimRight(text.String(), "\n"), "\n")}, nil
}
