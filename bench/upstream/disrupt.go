// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	"context"
	"fmt"
	"time"

	"k8s.io/client-go/tools/record"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	v1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/controllers/disruption"
	"sigs.k8s.io/karpenter/pkg/events"

	"karpenter/bench/judge"
	"karpenter/bench/workload"
)

// consolidation is what the disruption controller is made of, without waiting:
// commands are not validated again some seconds later.
type consolidation struct {
	methods  []disruption.Method
	queue    *disruption.Queue
	recorder events.Recorder
	clock    clock.Clock
}

// unchanged lets every command pass.
type unchanged struct{}

// Validate implements disruption.Validator.
func (unchanged) Validate(_ context.Context, c disruption.Command, _ time.Duration) (disruption.Command, error) {
	return c, nil
}

func (e *Engine) consolidation() *consolidation {
	if e.disrupt != nil {
		return e.disrupt
	}
	c := &consolidation{recorder: events.NewRecorder(&record.FakeRecorder{}), clock: clock.RealClock{}}
	c.queue = disruption.NewQueue(e.client, c.recorder, e.cluster, c.clock, e.provisioner)
	base := disruption.MakeConsolidation(c.clock, e.cluster, e.client, e.provisioner, e.provider, c.recorder, c.queue)
	pass := disruption.WithValidator(unchanged{})
	c.methods = []disruption.Method{
		disruption.NewEmptiness(base, pass), disruption.NewMultiNodeConsolidation(base, pass), disruption.NewSingleNodeConsolidation(base, pass),
	}
	e.disrupt = c
	return c
}

// Disrupt makes one pass over the methods of consolidation, in the order of the
// controller, until one has a command.
func (e *Engine) Disrupt() error {
	e.commands = nil
	c := e.consolidation()
	for _, m := range c.methods {
		candidates, err := disruption.GetCandidates(e.ctx, e.cluster, e.client, c.recorder, c.clock, e.provider, m.ShouldDisrupt, m.Class(), c.queue)
		if err != nil {
			return fmt.Errorf("candidates of %s: %w", m.ConsolidationType(), err)
		}
		if len(candidates) == 0 {
			continue
		}
		budgets, err := disruption.BuildDisruptionBudgetMapping(e.ctx, e.cluster, c.clock, e.client, e.provider, c.recorder, m.Reason())
		if err != nil {
			return fmt.Errorf("budgets of %s: %w", m.ConsolidationType(), err)
		}
		commands, err := m.ComputeCommands(e.ctx, budgets, candidates...)
		if err != nil {
			return fmt.Errorf("%s: %w", m.ConsolidationType(), err)
		}
		for _, command := range commands {
			if len(command.Candidates) > 0 {
				e.commands = append(e.commands, command)
			}
		}
		if len(e.commands) > 0 {
			return nil
		}
	}
	return nil
}

// Step returns what the last call of Disrupt decided.
func (e *Engine) Step() judge.Step {
	s := judge.Step{Plan: judge.Plan{Placed: map[string][]string{}}}
	for i := range e.commands {
		c := &e.commands[i]
		for _, candidate := range c.Candidates {
			s.Removed = append(s.Removed, candidate.Name())
		}
		for _, n := range c.Results.ExistingNodes {
			if len(n.Pods) > 0 {
				s.Plan.Placed[n.Node.Name] = append(s.Plan.Placed[n.Node.Name], keys(n.Pods)...)
			}
		}
		for _, r := range c.Replacements {
			s.Plan.Claims = append(s.Plan.Claims, claimOf(r.NodeClaim))
		}
	}
	return s
}

// Apply takes in that machines are gone, new ones are there, and pods have moved
// to others.
func (e *Engine) Apply(c workload.Change) error {
	for _, m := range c.Gone {
		for _, p := range m.Bound {
			e.cluster.DeletePod(client.ObjectKeyFromObject(p))
			e.client.forget(p)
		}
		e.cluster.DeleteNode(m.Node.Name)
		e.cluster.DeleteNodeClaim(m.Claim.Name)
		e.client.forget(m.Node)
		e.client.forget(&v1.NodeClaim{ObjectMeta: m.Claim.ObjectMeta})
	}
	for i := range c.Added {
		if err := e.takeInMachine(&c.Added[i]); err != nil {
			return err
		}
	}
	for _, p := range c.Moved {
		e.client.set(p)
		if err := e.cluster.UpdatePod(e.ctx, p); err != nil {
			return fmt.Errorf("pod %s: %w", p.Name, err)
		}
	}
	e.cluster.MarkUnconsolidated()
	return nil
}
