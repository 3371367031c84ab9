// SPDX-License-Identifier: Apache-2.0

package disruption

import (
	"context"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	v1 "karpenter/api/v1"
	"karpenter/kube/meter"
	"karpenter/model"
)

// abnormal is a time between two passes that is long enough to be logged.
const abnormal = 15 * time.Minute

// shownTypes is how many instance types of a replacement are logged.
const shownTypes = 5

// removed describes a node that is being disrupted in the log.
type removed struct {
	Node, NodeClaim string
	InstanceType    string `json:"instance-type"`
	CapacityType    string `json:"capacity-type"`
}

// replacing describes what replaces nodes in the log.
type replacing struct {
	CapacityType  string `json:"capacity-type"`
	InstanceTypes string `json:"instance-types,omitempty"`
}

// on calls tell with the NodeClaim and the Node of the target, as far as they
// are there.
func (s *scope) on(target model.Target, tell func(client.Object)) {
	claim := s.claims[target.Claim]
	if claim == nil {
		return
	}
	tell(claim)
	if node := s.nodeOf(claim); node != nil {
		tell(node)
	}
}

// reportStarts logs and counts what was started in one pass. Empty nodes are one
// command together.
func (l *Loop) reportStarts(ctx context.Context, s *scope, started []*execution) {
	var empty []model.Command
	id := ""
	for _, x := range started {
		if x.command.Reason == model.Empty && len(x.command.Launches) == 0 {
			if empty = append(empty, x.command); id == "" {
				id = x.id
			}
			continue
		}
		l.reportStart(ctx, s, &x.command, x.id)
	}
	if len(empty) > 0 {
		all := together(empty)
		l.reportStart(ctx, s, &all, id)
	}
}

func (l *Loop) reportStart(ctx context.Context, s *scope, c *model.Command, id string) {
	pools := s.poolsOf(c)
	l.Metrics.decisions.WithLabelValues(decision(c), lower(c.Reason), consolidationType(c)).Inc()
	for _, pool := range pools {
		l.Metrics.decisionsByPool.WithLabelValues(pool, decision(c), lower(c.Reason), consolidationType(c)).Inc()
	}
	if c.TerminateFirst != "" {
		for _, pool := range pools {
			l.Metrics.terminatedFirst.WithLabelValues(pool, lower(c.Reason), string(c.TerminateFirst)).Inc()
		}
	}
	rows, podCount := []removed{}, 0
	for _, n := range c.Nodes {
		claim := s.claims[n.Claim]
		podCount += l.reschedulable(ctx, s.nodeOf(claim))
		rows = append(rows, removed{n.Node, n.Claim, claim.Labels[corev1.LabelInstanceTypeStable], claim.Labels[v1.CapacityTypeLabelKey]})
	}
	news := []replacing{}
	for i := range c.Launches {
		r := replacing{CapacityType: capacityType(&c.Launches[i])}
		if len(c.Launches) == 1 {
			r.InstanceTypes = typesText(c.Launches[i].Types)
		}
		news = append(news, r)
	}
	log.FromContext(ctx).Info("disrupting nodes", "command", title(c, id, pools), "reason", c.Reason, "decision", decision(c),
		"disrupted-node-count", len(rows), "replacement-node-count", len(news), "pod-count", podCount,
		"disrupted-nodes", rows, "replacement-nodes", news)
}

// capacityType returns what the launch becomes if it can be had.
func capacityType(l *model.Launch) string {
	for _, t := range []string{v1.CapacityTypeReserved, v1.CapacityTypeSpot, v1.CapacityTypeOnDemand} {
		for _, have := range l.CapacityTypes {
			if have == t {
				return t
			}
		}
	}
	return l.CapacityType
}

// typesText names the first types, and how many more there are.
func typesText(types []string) string {
	if len(types) <= shownTypes {
		return strings.Join(types, ", ")
	}
	return fmt.Sprintf("%s and %d other(s)", strings.Join(types[:shownTypes], ", "), len(types)-shownTypes)
}

// reportDeletion tells and counts that a claim was deleted.
func (l *Loop) reportDeletion(ctx context.Context, s *scope, claim *v1.NodeClaim, reason model.Reason) {
	node := s.nodeOf(claim)
	s.on(model.Target{Claim: claim.Name}, func(o client.Object) { l.Events.Publish(terminating(o, reason)) })
	policy := ""
	if pool := s.pools[claim.Labels[v1.NodePoolLabelKey]]; pool != nil && reason != model.Drifted && reason != model.Unhealthy {
		policy = meter.Snake(string(pool.Spec.Disruption.ConsolidationPolicy))
	}
	l.Disruptions.Count(meter.Disruption{
		Claim: claim, Reason: meter.Snake(string(reason)), Policy: policy, Pods: l.reschedulable(ctx, node),
	})
}

// reportPause logs that the last pass is long ago.
func (l *Loop) reportPause(ctx context.Context) {
	now := l.Clock.Now()
	if pause := now.Sub(l.began); !l.began.IsZero() && pause > abnormal {
		log.FromContext(ctx).V(1).Info("abnormal time between passes", "pause", pause)
	}
	l.began = now
}

// reportTrouble logs an error after which the execution is tried again.
func (l *Loop) reportTrouble(ctx context.Context, x *execution, err error) {
	log.FromContext(ctx).Error(err, "disruption makes no progress", "command-id", x.id)
}

// reportFailure logs and counts an execution that was abandoned, with so many
// replacements missing.
func (l *Loop) reportFailure(ctx context.Context, x *execution, missing int, why error) {
	c := &x.command
	l.Metrics.queueFailures.WithLabelValues(decision(c), lower(c.Reason), consolidationType(c)).Add(float64(missing))
	log.FromContext(ctx).Error(why, "abandoned the disruption of nodes", "command-id", x.id, "reason", c.Reason, "nodes", nodesText(c))
}

// The decisions of consolidation_moves_total.
const (
	moveApproved = "approved"
	moveRejected = "rejected"
)

// countMove counts a consolidation that is found in the pools, or rejected.
func (l *Loop) countMove(s *scope, decision string, pools ...string) {
	for _, name := range pools {
		policy := ""
		if pool := s.pools[name]; pool != nil {
			policy = string(pool.Spec.Disruption.ConsolidationPolicy)
		}
		l.Metrics.moves.WithLabelValues(decision, name, policy).Inc()
	}
}

// countRejected counts the consolidations that the policy Balanced rejects now
// and did not reject in the last plan.
func (l *Loop) countRejected(s *scope) {
	rejected := map[string]bool{}
	for i := range s.plan.Stays {
		stay := &s.plan.Stays[i]
		if stay.Score.Pool == "" {
			continue
		}
		if rejected[stay.Claim] = true; !l.rejected[stay.Claim] {
			l.countMove(s, moveRejected, stay.Score.Pool)
			l.Metrics.score.WithLabelValues(moveRejected, stay.Score.Pool, string(model.Balanced)).Observe(stay.Score.Value)
		}
	}
	l.rejected = rejected
}

// reportFound tells and counts a consolidation that is new.
func (l *Loop) reportFound(s *scope, c *model.Command) {
	if c.Reason != model.Underutilized {
		return
	}
	l.countMove(s, moveApproved, s.poolsOf(c)...)
	for i := range c.Scores {
		score := &c.Scores[i]
		l.Metrics.score.WithLabelValues(moveApproved, score.Pool, string(model.Balanced)).Observe(score.Value)
		if pool := s.pools[score.Pool]; pool != nil && len(c.Nodes) > 1 {
			l.Events.Publish(approved(pool, score))
		}
	}
	for _, n := range c.Nodes {
		s.on(n, func(o client.Object) {
			if len(c.Launches) > 0 {
				l.Events.Publish(candidate(o, textFor(c, n.Node)))
			}
			for i := range c.Scores {
				if len(c.Nodes) == 1 {
					l.Events.Publish(approved(o, &c.Scores[i]))
				}
			}
		})
	}
}

// reportDropped counts and reports a command that was not confirmed, for those
// of its nodes that are not being removed anyway.
func (l *Loop) reportDropped(s *scope, c *model.Command) {
	going := map[string]bool{}
	for i := range s.plan.Commands {
		for _, n := range s.plan.Commands[i].Nodes {
			going[n.Claim] = true
		}
	}
	for _, n := range c.Nodes {
		node := s.managed[n.Claim]
		if node == nil || node.Deleting || going[n.Claim] {
			continue
		}
		l.Metrics.failedValidations.WithLabelValues(consolidationType(c)).Inc()
		if c.Reason == model.Underutilized {
			s.on(n, func(o client.Object) { l.Events.Publish(rejected(o, textFor(c, n.Node), s.category(c))) })
		}
	}
}

// category returns in one word why the plan no longer has the command.
func (s *scope) category(c *model.Command) string {
	for _, n := range c.Nodes {
		for _, stay := range s.plan.Stays {
			if stay.Claim != n.Claim || stay.Reason != c.Reason {
				continue
			}
			switch stay.Cause {
			case model.ByBudget, model.ByUse:
				return "budget"
			case model.ByPlace, model.ByPrice, model.Unexamined:
				return "scheduling"
			case model.ByNode, model.ByPolicy:
				return "churn"
			}
		}
	}
	return "unknown"
}

// reportStays publishes why nodes are kept: nodes that the plan has examined,
// nodes that must not be disrupted, and nodes whose pool never consolidates. It
// skips nodes that start or are being removed, because their own status shows
// that.
func (l *Loop) reportStays(s *scope) {
	about := aboutNodes(len(s.managed))
	for i := range s.plan.Stays {
		stay := &s.plan.Stays[i]
		n := s.managed[stay.Claim]
		if n == nil || n.Disruption.Blocked != "" {
			continue
		}
		s.on(model.Target{Claim: stay.Claim}, func(o client.Object) {
			if e, ok := about.stayed(o, stay); ok {
				l.Events.Publish(e)
			}
		})
	}
	for i := range s.snapshot.Nodes {
		n := &s.snapshot.Nodes[i]
		if n.Claim == "" || !n.Initialized || n.Deleting {
			continue
		}
		pool := s.pools[n.Pool]
		switch {
		case n.Disruption.Blocked != "":
			s.on(model.Target{Claim: n.Claim}, func(o client.Object) { l.Events.Publish(about.blocked(o, n.Disruption.Blocked)) })
		case pool != nil && !pool.IsStatic() && pool.Spec.Disruption.ConsolidateAfter.Duration == nil:
			why := fmt.Sprintf("NodePool %q has consolidation disabled: spec.disruption.consolidateAfter is Never", pool.Name)
			s.on(model.Target{Claim: n.Claim}, func(o client.Object) { l.Events.Publish(about.unconsolidatable(o, model.ByPolicy, why)) })
		}
	}
}
