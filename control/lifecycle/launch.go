// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"karpenter/api/unreadable"
	v1 "karpenter/api/v1"
	"karpenter/cloud"
)

// messageLimit is the length, in characters, at which a provider's error is
// cut before it is shown on a condition or event.
const messageLimit = 300

// launch launches the instance of the claim and records it.
func (r *Reconciler) launch(ctx context.Context, s *scope) (time.Duration, error) {
	if s.isSettled(v1.LaunchedCondition) {
		r.memory.launched(s.claim, nil)
		return 0, nil
	}
	if err := unreadable.Error(s.claim); err != nil {
		s.conditions.SetUnknownWithReason(v1.LaunchedCondition, v1.LaunchFailedReason, cut(err.Error()))
		return 0, nil
	}
	machine := r.memory.machineOf(s.claim)
	if machine == nil {
		var err error
		machine, err = r.Provider.Create(ctx, s.claim.DeepCopy())
		if err != nil {
			return 0, r.launchFailed(ctx, s, err)
		}
		r.memory.launched(s.claim, machine)
		logLaunched(ctx, machine)
	}
	record(s.claim, machine)
	s.conditions.SetTrue(v1.LaunchedCondition)
	return 0, nil
}

// launchFailed deletes the claim if its launch cannot succeed. Otherwise it
// sets a condition with the reason, and the launch is tried again.
func (r *Reconciler) launchFailed(ctx context.Context, s *scope, err error) error {
	var create *cloud.CreateError
	switch {
	case cloud.IsInsufficientCapacity(err):
		log.FromContext(ctx).Error(err, "no capacity to launch; abandoning node claim")
		r.Recorder.Publish(insufficientCapacity(s.claim, err))
		if r.Waiting != nil {
			for _, pod := range r.Waiting(s.claim.Name) {
				r.Recorder.Publish(notLaunched(pod, s.claim, err))
			}
		}
		return r.giveUp(ctx, s, "insufficient_capacity")
	case cloud.IsNodeClassNotReady(err):
		log.FromContext(ctx).Error(err, "node class not ready; abandoning node claim")
		return r.giveUp(ctx, s, "nodeclass_not_ready")
	case errors.As(err, &create):
		s.conditions.SetUnknownWithReason(v1.LaunchedCondition, create.Reason, create.Message)
	default:
		s.conditions.SetUnknownWithReason(v1.LaunchedCondition, v1.LaunchFailedReason, cut(err.Error()))
	}
	return fmt.Errorf("launch instance of node claim %s: %w", s.claim.Name, err)
}

// record writes the instance onto the claim. The claim's own labels win over
// the provider's, the provider's annotations over the claim's.
func record(claim *v1.NodeClaim, machine *cloud.Machine) {
	claim.Labels = merged(machine.Labels, claim.Labels)
	claim.Annotations = merged(claim.Annotations, machine.Annotations)
	claim.Status.ProviderID = machine.ProviderID
	claim.Status.ImageID = machine.ImageID
	claim.Status.Capacity = machine.Capacity.DeepCopy()
	claim.Status.Allocatable = machine.Allocatable.DeepCopy()
}

// merged returns a copy of base with over laid over it.
func merged(base, over map[string]string) map[string]string {
	if len(over) == 0 {
		return maps.Clone(base)
	}
	out := make(map[string]string, len(base)+len(over))
	maps.Copy(out, base)
	maps.Copy(out, over)
	return out
}

// cut shortens a message to the limit.
func cut(message string) string {
	characters := []rune(message)
	if len(characters) < messageLimit {
		return message
	}
	return string(characters[:messageLimit]) + "..."
}

func logLaunched(ctx context.Context, m *cloud.Machine) {
	log.FromContext(ctx).Info("launched node claim",
		"provider-id", m.ProviderID,
		"instance-type", m.Labels[corev1.LabelInstanceTypeStable],
		"zone", m.Labels[corev1.LabelTopologyZone],
		"capacity-type", m.Labels[v1.CapacityTypeLabelKey],
		"allocatable", m.Allocatable)
}
