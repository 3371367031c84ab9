// SPDX-License-Identifier: Apache-2.0

// Package meter holds the metrics that several controllers write, so that
// each has one definition, and those of pods.
package meter

import (
	"context"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "karpenter/api/v1"
	"karpenter/kube/join"
	"karpenter/kube/pods"
)

// Disruptions counts the NodeClaims that Karpenter disrupts, and the pods that
// have to be rescheduled because of it.
type Disruptions struct {
	reader client.Reader
	claims *prometheus.CounterVec
	pods   *prometheus.CounterVec
}

// NewDisruptions registers the counters. The reader serves Pods by node name.
func NewDisruptions(reg prometheus.Registerer, reader client.Reader) *Disruptions {
	labels := []string{"reason", "nodepool", "capacity_type", "consolidation_policy", "termination_mode"}
	d := &Disruptions{
		reader: reader,
		claims: prometheus.NewCounterVec(prometheus.CounterOpts{
			Namespace: "karpenter", Subsystem: "nodeclaims", Name: "disrupted_total",
			Help: "Number of node claims deleted by Karpenter, by reason.",
		}, labels),
		pods: prometheus.NewCounterVec(prometheus.CounterOpts{
			Namespace: "karpenter", Subsystem: "pods", Name: "disruption_initiated_total",
			Help: "Number of reschedulable pods on node claims deleted by Karpenter, by reason.",
		}, labels),
	}
	reg.MustRegister(d.claims, d.pods)
	return d
}

// Disruption is the disruption of one NodeClaim.
type Disruption struct {
	Claim  *v1.NodeClaim
	Reason string // snake case
	Policy string // snake case of the pool's consolidation policy, "" when it had no part
	Pods   int    // reschedulable pods on the node
}

// Count counts a disruption whose pods are known.
func (d *Disruptions) Count(x Disruption) {
	labels := []string{
		x.Reason, x.Claim.Labels[v1.NodePoolLabelKey], x.Claim.Labels[v1.CapacityTypeLabelKey],
		x.Policy, TerminationMode(x.Claim),
	}
	d.claims.WithLabelValues(labels...).Inc()
	d.pods.WithLabelValues(labels...).Add(float64(x.Pods))
}

// Forced counts a claim that is disrupted without regard to budgets and pods.
// If its pods cannot be listed, they count as 0.
func (d *Disruptions) Forced(ctx context.Context, claim *v1.NodeClaim, reason string) {
	d.Count(Disruption{Claim: claim, Reason: reason, Pods: d.reschedulable(ctx, claim.Status.NodeName)})
}

// TerminationMode returns how long pods can delay the termination of the claim:
// without limit ("graceful"), up to a grace period ("eventual"), or not at all
// ("forceful").
func TerminationMode(claim *v1.NodeClaim) string {
	switch period := claim.Spec.TerminationGracePeriod; {
	case period == nil:
		return "graceful"
	case period.Duration <= 0:
		return "forceful"
	default:
		return "eventual"
	}
}

func (d *Disruptions) reschedulable(ctx context.Context, node string) int {
	if node == "" {
		return 0
	}
	list := &corev1.PodList{}
	if err := d.reader.List(ctx, list, client.MatchingFields{join.PodNodeName: node}); err != nil {
		return 0
	}
	n := 0
	for i := range list.Items {
		if pods.Reschedulable(&list.Items[i]) {
			n++
		}
	}
	return n
}
