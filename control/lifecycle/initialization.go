// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	v1 "karpenter/api/v1"
	"karpenter/kube/join"
)

// publishing is how often to check whether drivers have published their devices.
// No event of the Node reports that.
const publishing = 2 * time.Second

// readinessGatePrefix begins the keys of taints by which node readiness gates
// keep pods away until a node is set up.
const readinessGatePrefix = "readiness.k8s.io/"

// initialize sets the condition Initialized of a registered claim as soon as
// its Node can run the pods that it was launched for.
func (r *Reconciler) initialize(ctx context.Context, s *scope) (time.Duration, error) {
	if s.conditions.IsTrue(v1.RebootingCondition) { // the cached node may be older than the reboot
		return 0, nil
	}
	if s.isSettled(v1.InitializedCondition) || !s.conditions.IsTrue(v1.RegisteredCondition) {
		return 0, nil
	}
	node, err := r.nodeOf(ctx, s)
	if err != nil {
		s.conditions.SetUnknownWithReason(v1.InitializedCondition, v1.NodeNotFoundReason, "not exactly one node has its provider ID")
		return 0, nil
	}
	if reason, message := r.unfit(s.claim, node); reason != "" {
		s.conditions.SetUnknownWithReason(v1.InitializedCondition, reason, message)
		if r.Devices != nil && (reason == v1.ResourceNotRegisteredReason || reason == v1.DRADriverPoolsNotPublishedReason) {
			return publishing, nil
		}
		return 0, nil
	}
	if err := r.labelInitialized(ctx, node); err != nil {
		return 0, err
	}
	s.conditions.SetTrue(v1.InitializedCondition)
	s.afterwards(func() {
		log.FromContext(ctx).Info("initialized node claim", "allocatable", node.Status.Allocatable)
	})
	return 0, nil
}

// nodeOf returns the Node of the claim. If the Node was registered in this
// reconcile, it is returned as written, because a cache may not show it yet.
func (r *Reconciler) nodeOf(ctx context.Context, s *scope) (*corev1.Node, error) {
	if s.node != nil {
		return s.node, nil
	}
	return join.NodeOf(ctx, r.Client, s.claim)
}

func (r *Reconciler) labelInitialized(ctx context.Context, node *corev1.Node) error {
	if node.Labels[v1.NodeInitializedLabelKey] == "true" {
		return nil
	}
	labelled := node.DeepCopy()
	labelled.Labels = merged(node.Labels, map[string]string{v1.NodeInitializedLabelKey: "true"})
	return r.Client.Patch(ctx, labelled, client.MergeFrom(node))
}

// unfit returns why the node cannot run the claim's pods yet, as the reason and
// message of a condition, or "".
func (r *Reconciler) unfit(claim *v1.NodeClaim, node *corev1.Node) (reason, message string) {
	if !isRegistered(node) {
		// A read from before the registration, which may lack startup taints.
		return v1.NodeNotReadyReason, fmt.Sprintf("node %s does not show as registered yet", node.Name)
	}
	if !isReady(node) {
		return v1.NodeNotReadyReason, fmt.Sprintf("node %s is not ready", node.Name)
	}
	for _, t := range v1.CoreTaints(claim.Spec.StartupTaints) {
		if hasTaint(node, t) {
			return v1.StartupTaintsExistReason, fmt.Sprintf("startup taint %s is still on the node", taintText(t))
		}
	}
	for _, t := range node.Spec.Taints {
		if isEphemeral(t) {
			return v1.KnownEphemeralTaintsExistReason, fmt.Sprintf("taint %s is still on the node", taintText(t))
		}
	}
	if name := r.missingResource(claim.Spec.Resources.Requests, node); name != "" {
		return v1.ResourceNotRegisteredReason, fmt.Sprintf("resource %s was requested and is not on the node yet", name)
	}
	if r.Devices == nil {
		return "", ""
	}
	published := r.Devices.Published(node)
	for _, driver := range claim.RequestedDRADrivers() {
		if !published.Has(driver) {
			return v1.DRADriverPoolsNotPublishedReason, fmt.Sprintf("driver %s has not published a complete pool of devices of the node yet", driver)
		}
	}
	return "", ""
}

func isReady(node *corev1.Node) bool {
	return slices.ContainsFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	})
}

// isEphemeral reports whether the taint is one that a starting node carries
// for a while.
func isEphemeral(taint corev1.Taint) bool {
	if strings.HasPrefix(taint.Key, readinessGatePrefix) {
		return true
	}
	unregistered := v1.UnregisteredNoExecuteTaint()
	for _, t := range []corev1.Taint{
		{Key: corev1.TaintNodeNotReady, Effect: corev1.TaintEffectNoSchedule},
		{Key: corev1.TaintNodeNotReady, Effect: corev1.TaintEffectNoExecute},
		{Key: corev1.TaintNodeUnreachable, Effect: corev1.TaintEffectNoSchedule},
		{Key: "node.cloudprovider.kubernetes.io/uninitialized", Effect: corev1.TaintEffectNoSchedule},
		unregistered,
	} {
		if taint.MatchTaint(&t) {
			return true
		}
	}
	return false
}

// missingResource returns the first requested resource, by name, of which
// nothing is allocatable, and which no devices serve, or "".
func (r *Reconciler) missingResource(requested corev1.ResourceList, node *corev1.Node) corev1.ResourceName {
	var missing []corev1.ResourceName
	for name, q := range requested {
		served := func() bool { return r.Devices != nil && r.Devices.Serves(node, name) }
		if have := node.Status.Allocatable[name]; !q.IsZero() && have.IsZero() && !served() {
			missing = append(missing, name)
		}
	}
	if len(missing) == 0 {
		return ""
	}
	return slices.Min(missing)
}

// taintText prints a taint as people write it, key[=value]:effect.
func taintText(t corev1.Taint) string {
	if t.Value == "" {
		return fmt.Sprintf("%s:%s", t.Key, t.Effect)
	}
	return fmt.Sprintf("%s=%s:%s", t.Key, t.Value, t.Effect)
}
