// SPDX-License-Identifier: Apache-2.0

package disruption

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"karpenter/api/conditions"
	v1 "karpenter/api/v1"
	"karpenter/cloud"
	"karpenter/cloud/health"
	"karpenter/kube/events"
	"karpenter/kube/meter"
	"karpenter/model"
)

const (
	// mostUnhealthy is how many nodes of a pool, in percent rounded up, may be
	// unhealthy at once. If more are, new instances would not help.
	mostUnhealthy = 20
	// maxReboots is how many reboots a NodeClaim may have within rebootMemory. The
	// next time its node is replaced.
	maxReboots   = 2
	rebootMemory = 24 * time.Hour
)

// Repairs is the repair of unhealthy nodes. Both fields are required.
type Repairs struct {
	Policies *health.Policies
	Counts   *meter.Unhealthy
}

// illness is why and how a node is repaired.
type illness struct {
	health.Diagnosis
	escalated bool // it is replaced because rebooting has not helped
}

// diagnose finds the nodes to repair and marks them in the pass's Snapshot. If
// something prevents a repair that a policy demands, it publishes an event.
func (l *Loop) diagnose(ctx context.Context, s *scope) {
	if l.Repairs == nil {
		return
	}
	s.ill = map[string]*illness{}
	snapshot := *s.snapshot
	snapshot.Nodes = slices.Clone(s.snapshot.Nodes)
	tripped := map[string]string{}
	for i := range snapshot.Nodes {
		n := &snapshot.Nodes[i]
		found := l.illnessOf(s, n)
		if found == nil {
			continue
		}
		if _, asked := tripped[n.Pool]; !asked {
			tripped[n.Pool] = l.breaker(s, n.Pool)
		}
		if why := l.vetoes(s, n, found); why != "" {
			s.on(model.Target{Claim: n.Claim}, func(o client.Object) { l.Events.Publish(aboutNodes(len(s.managed)).blocked(o, why)) })
			continue
		}
		if why := tripped[n.Pool]; why != "" {
			s.on(model.Target{Claim: n.Claim}, func(o client.Object) { l.Events.Publish(repairBlocked(o, why)) })
			l.Events.Publish(repairBlocked(s.pools[n.Pool], why))
			continue
		}
		s.ill[n.Claim] = found
		n.Disruption.Unhealthy, n.Disruption.Severity = string(found.Condition.Type), found.Score
		n.Disruption.Reboot = found.Action == cloud.RebootNode
	}
	s.snapshot = &snapshot
}

// illnessOf returns the repair that a policy demands for the node. It returns
// nil if none is due, or if the node is starting, is being removed, or pods are
// expected on it.
func (l *Loop) illnessOf(s *scope, n *model.Node) *illness {
	claim := s.claims[n.Claim]
	if claim == nil || !n.Registered || n.Deleting || claim.DeletionTimestamp != nil || conditions.IsTrue(claim, v1.RebootingCondition) {
		return nil
	}
	node := s.nodeOf(claim)
	if node == nil || node.DeletionTimestamp != nil || n.Initialized && n.Disruption.Blocked == model.BlockedByNomination {
		return nil
	}
	var floor time.Time
	if c := conditions.Get(claim, v1.RebootingCondition); c != nil && c.Status == metav1.ConditionFalse {
		floor = c.LastTransitionTime.Time
	}
	d, sick := l.Repairs.Policies.Diagnose(node, s.now, floor)
	if !sick {
		return nil
	}
	found := &illness{Diagnosis: d}
	if d.Action == cloud.RebootNode && len(rebootsOf(claim, s.now)) >= maxReboots {
		found.Action, found.escalated = cloud.ReplaceNode, true
	}
	return found
}

// vetoes returns what about the node forbids its repair, "" if nothing does.
func (l *Loop) vetoes(s *scope, n *model.Node, found *illness) string {
	claim := s.claims[n.Claim]
	node := s.nodeOf(claim)
	pool := s.pools[n.Pool]
	switch {
	case n.Pool == "" || pool == nil:
		return "repair requires a NodePool to construct and budget a safe replacement"
	case node.Annotations[v1.DoNotRepairAnnotationKey] == "true" || claim.Annotations[v1.DoNotRepairAnnotationKey] == "true":
		return `the node has the annotation ` + v1.DoNotRepairAnnotationKey + `: "true"`
	case n.Disruption.Held != "" && found.Bound == nil && claim.Spec.TerminationGracePeriod == nil:
		return "repair requires a termination grace period to bypass blocking pods: " + n.Disruption.Held
	}
	return ""
}

// breaker returns why no node of the pool is repaired: too many are unhealthy.
// Nodes that start or reboot count as healthy, whatever their conditions say:
// they are expected to be ready soon.
func (l *Loop) breaker(s *scope, pool string) string {
	total, unhealthy := 0, 0
	for name, n := range s.managed {
		claim := s.claims[name]
		if n.Pool != pool || claim == nil || !n.Registered {
			continue
		}
		node := s.nodeOf(claim)
		if node == nil {
			continue
		}
		total++
		starting := !n.Initialized && l.illnessOf(s, n) == nil
		if !starting && !conditions.IsTrue(claim, v1.RebootingCondition) && l.Repairs.Policies.Sick(node) {
			unhealthy++
		}
	}
	if most := (total*mostUnhealthy + 99) / 100; unhealthy > most {
		return fmt.Sprintf("%d of %d nodes of nodepool %s are unhealthy, and more than %d%% are not repaired at once", unhealthy, total, pool, mostUnhealthy)
	}
	return ""
}

func repairBlocked(o client.Object, why string) events.Event {
	return events.Event{
		Object: o, Type: corev1.EventTypeWarning, Reason: "NodeRepairBlocked",
		Message: "Unhealthy nodes are not repaired: " + why, Dedupe: []string{string(o.GetUID())}, Timeout: 15 * time.Minute,
	}
}

// hurry bounds the drain of a claim that is about to be deleted: its deadline is
// at most the bound from now, and no longer than its own grace period. An earlier
// deadline stays.
func (l *Loop) hurry(ctx context.Context, claim *v1.NodeClaim, bound *time.Duration) error {
	if claim == nil || bound == nil || claim.DeletionTimestamp != nil {
		return nil
	}
	within := *bound
	if own := claim.Spec.TerminationGracePeriod; own != nil {
		within = min(within, own.Duration)
	}
	fresh := &v1.NodeClaim{} // this pass may have marked it
	if err := l.Client.Get(ctx, client.ObjectKeyFromObject(claim), fresh); err != nil {
		return client.IgnoreNotFound(err)
	}
	hurried := fresh.DeepCopy()
	if !hurried.Hurry(l.Clock.Now().Add(within)) {
		return nil
	}
	hurried.Annotations[v1.RepairDeadlineAnnotationKey] = "true"
	err := l.Client.Patch(ctx, hurried, locked(fresh))
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("set deadline of node claim %s: %w", claim.Name, err)
	}
	return nil
}

// withdraw removes the deadline that a repair has set on a claim it did not get
// to delete, and returns the claim as it is then. Without repairs it may be
// that of the controller node.health.
func (l *Loop) withdraw(ctx context.Context, claim *v1.NodeClaim) (*v1.NodeClaim, error) {
	if l.Repairs == nil || claim.Annotations[v1.RepairDeadlineAnnotationKey] == "" {
		return claim, nil
	}
	free := claim.DeepCopy()
	delete(free.Annotations, v1.RepairDeadlineAnnotationKey)
	delete(free.Annotations, v1.NodeClaimTerminationTimestampAnnotationKey)
	if err := l.Client.Patch(ctx, free, locked(claim)); err != nil {
		return claim, client.IgnoreNotFound(err)
	}
	return free, nil
}

// reportRepair logs and counts what is done about an unhealthy node.
func (l *Loop) reportRepair(claim *v1.NodeClaim, found *illness) {
	mode := meter.TerminationMode(claim)
	switch {
	case found.Bound == nil:
	case *found.Bound == 0:
		mode = "forceful"
	case mode != "forceful":
		mode = "eventual"
	}
	l.Repairs.Counts.Count(claim, found.Condition.Type, mode)
}

// logPolicy logs which policy governs a repair that starts.
func (l *Loop) logPolicy(ctx context.Context, claim *v1.NodeClaim, found *illness) {
	bound, action := "none", string(found.Action)
	if found.Bound != nil {
		bound = found.Bound.String()
	}
	if found.escalated {
		action += " (reboot-escalated)"
	}
	log.FromContext(ctx).Info("selected repair policy", "NodeClaim", claim.Name,
		"condition", found.Condition.Type, "status", found.Condition.Status, "reason", found.Condition.Reason,
		"reason-regex", found.Policy.ReasonRegex, "fallback", found.Policy.ReasonRegex == "", "action", action,
		"eligible-at", found.Since, "bound", bound, "bound-condition", found.BoundBy)
}

// rebootsOf returns when reboots of the claim were requested, those that count no
// more left out.
func rebootsOf(claim *v1.NodeClaim, now time.Time) []time.Time {
	return slices.DeleteFunc(claim.Reboots(), func(t time.Time) bool { return !now.Before(t.Add(rebootMemory)) })
}

// reboot requests the reboot of a node, and reports whether it did. The controller
// nodeclaim.reboot carries the request out.
func (l *Loop) reboot(ctx context.Context, s *scope, target model.Target) (bool, error) {
	claim, found := s.claims[target.Claim], s.ill[target.Claim]
	if claim == nil || found == nil || claim.DeletionTimestamp != nil || conditions.IsTrue(claim, v1.RebootingCondition) {
		return false, nil
	}
	now := l.Clock.Now()
	asked := claim.DeepCopy()
	asked.Annotations = maps.Clone(asked.Annotations)
	if asked.Annotations == nil {
		asked.Annotations = map[string]string{}
	}
	for _, left := range []string{v1.RebootGracePeriodAnnotationKey, v1.RebootPreBootIDAnnotationKey, v1.RebootIssuingSinceAnnotationKey} {
		delete(asked.Annotations, left) // of an earlier reboot
	}
	if bound := found.Bound; bound != nil {
		asked.Annotations[v1.RebootGracePeriodAnnotationKey] = bound.String()
	} else if own := claim.Spec.TerminationGracePeriod; own != nil {
		asked.Annotations[v1.RebootGracePeriodAnnotationKey] = own.Duration.String()
	}
	asked.SetReboots(append(rebootsOf(claim, now), now))
	if err := l.Client.Patch(ctx, asked, locked(claim)); err != nil {
		return false, client.IgnoreNotFound(err)
	}
	stored := asked.DeepCopy()
	set := asked.StatusConditions(now)
	set.SetTrueWithReason(v1.DisruptionReasonCondition, string(model.Unhealthy), string(model.Unhealthy))
	set.SetTrueWithReason(v1.RebootingCondition, v1.RebootRequestedReason,
		fmt.Sprintf("rebooting for %s/%s", found.Condition.Type, found.Condition.Reason))
	if err := l.Client.Status().Patch(ctx, asked, locked(stored)); err != nil {
		return false, client.IgnoreNotFound(err)
	}
	l.logPolicy(ctx, claim, found)
	l.Disruptions.Count(meter.Disruption{Claim: claim, Reason: lower(model.Unhealthy), Pods: l.reschedulable(ctx, s.nodeOf(claim))})
	l.reportRepair(claim, found)
	return true, nil
}
