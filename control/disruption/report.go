package disruption

import (
	"context"
	"fmt"
	"strings"
	"time"
	"unicode"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	v1 "karpenter/api/v1"
	"karpenter/kube/events"
	"karpenter/kube/meter"
	"karpenter/model"
)

// removed describes a node that is being disrupted in the log.
type removed struct {
	Node, NodeClaim string
	InstanceType    string `json:"instance-type"`
	CapacityType    string `json:"capacity-type"`
}

// report logs and counts the removals that were started in one pass.
func (l *Loop) report(ctx context.Context, s *scope, started []removal) {
	const decision = "delete"
	byReason := map[model.Reason][]removal{}
	for _, r := range started {
		byReason[r.Reason] = append(byReason[r.Reason], r)
	}
	for reason, removals := range byReason {
		l.Metrics.decisions.WithLabelValues(decision, lower(reason), consolidationType(reason)).Inc()
		pools, rows, podCount := map[string]bool{}, []removed{}, 0
		for _, r := range removals {
			claim := s.claims[r.Claim]
			pools[claim.Labels[v1.NodePoolLabelKey]] = true
			podCount += l.reschedulable(ctx, s.nodeOf(claim))
			rows = append(rows, removed{r.Node, r.Claim, claim.Labels[corev1.LabelInstanceTypeStable], claim.Labels[v1.CapacityTypeLabelKey]})
		}
		for pool := range pools {
			l.Metrics.decisionsByPool.WithLabelValues(pool, decision, lower(reason), consolidationType(reason)).Inc()
		}
		log.FromContext(ctx).Info("disrupting nodes", "reason", reason, "decision", decision,
			"disrupted-node-count", len(rows), "replacement-node-count", 0, "pod-count", podCount, "disrupted-nodes", rows)
	}
}

// reportDeletion tells and counts that a claim was deleted.
func (l *Loop) reportDeletion(ctx context.Context, s *scope, r removal) {
	claim := s.claims[r.Claim]
	node := s.nodeOf(claim)
	l.Events.Publish(terminating(claim, r.Reason))
	if node != nil {
		l.Events.Publish(terminating(node, r.Reason))
	}
	policy := ""
	if pool := s.pools[claim.Labels[v1.NodePoolLabelKey]]; pool != nil && r.Reason != model.Drifted {
		policy = snake(string(pool.Spec.Disruption.ConsolidationPolicy))
	}
	l.Disruptions.Count(meter.Disruption{
		Claim: claim, Reason: snake(string(r.Reason)), Policy: policy, Pods: l.reschedulable(ctx, node),
	})
}

// reportStays tells why nodes that are not needed are kept. What a budget
// holds back is told on its pool, and pending pods are no reason for long.
func (l *Loop) reportStays(s *scope) {
	for _, stay := range s.plan.Stays {
		claim, n := s.claims[stay.Claim], s.managed[stay.Claim]
		if claim == nil || n == nil || n.Disruption.Blocked == "" && n.Disruption.Held == "" && stay.Buffer == "" {
			continue
		}
		l.Events.Publish(blocked(claim, stay.Why))
		if node := s.nodeOf(claim); node != nil {
			l.Events.Publish(blocked(node, stay.Why))
		}
	}
}

// reportSwitchedOff tells on empty nodes that their pool keeps them for ever.
func (l *Loop) reportSwitchedOff(s *scope) {
	for i := range s.snapshot.Nodes {
		n := &s.snapshot.Nodes[i]
		pool, claim := s.pools[n.Pool], s.claims[n.Claim]
		if pool == nil || claim == nil || n.Deleting || n.Disruption.Blocked != "" || n.Disruption.Held != "" || !n.Disruption.Empty ||
			pool.IsStatic() || pool.Spec.Disruption.ConsolidateAfter.Duration != nil {
			continue
		}
		l.Events.Publish(unconsolidatable(claim, pool.Name))
		if node := s.nodeOf(claim); node != nil {
			l.Events.Publish(unconsolidatable(node, pool.Name))
		}
	}
}

func unconsolidatable(o client.Object, pool string) events.Event {
	return events.Event{
		Object: o, Type: corev1.EventTypeNormal, Reason: "Unconsolidatable",
		Message: fmt.Sprintf("NodePool %q has consolidation disabled: spec.disruption.consolidateAfter is Never", pool),
		Timeout: 15 * time.Minute,
	}
}

func blocked(o client.Object, why string) events.Event {
	return events.Event{Object: o, Type: corev1.EventTypeNormal, Reason: "DisruptionBlocked", Message: "Not disrupted: " + why}
}

func budgetBlocks(pool *v1.NodePool, reason v1.DisruptionReason) events.Event {
	return events.Event{
		Object: pool, Type: corev1.EventTypeNormal, Reason: "DisruptionBlocked",
		Message: fmt.Sprintf("No allowed disruptions for disruption reason %s due to blocking budget", reason),
		Dedupe:  []string{string(pool.UID), string(reason)}, Timeout: time.Minute,
	}
}

func terminating(o client.Object, reason model.Reason) events.Event {
	return events.Event{
		Object: o, Type: corev1.EventTypeNormal, Reason: "DisruptionTerminating",
		Message: "Disrupting " + kind(o) + ": " + string(reason),
		Dedupe:  []string{string(o.GetUID()), string(reason)},
	}
}

func kind(o client.Object) string {
	if _, ok := o.(*corev1.Node); ok {
		return "Node"
	}
	return "NodeClaim"
}

func lower(reason model.Reason) string { return strings.ToLower(string(reason)) }

// consolidationType is the metric label of the way a removal was found.
func consolidationType(reason model.Reason) string {
	if reason == model.Empty {
		return "empty"
	}
	return ""
}

// snake turns CamelCase into snake_case.
func snake(camel string) string {
	var b strings.Builder
	for i, r := range camel {
		if unicode.IsUpper(r) && i > 0 {
			b.WriteByte('_')
		}
		b.WriteRune(unicode.ToLower(r))
	}
	return b.String()
}
