// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/log"

	v1 "karpenter/api/v1"
)

// expire abandons a claim that is not launched or not registered in time. The
// time counts from the last change of the condition, or from the creation of
// the claim if the condition never changed.
func (r *Reconciler) expire(ctx context.Context, s *scope) (time.Duration, error) {
	if s.conditions.IsTrue(v1.RegisteredCondition) {
		return 0, nil
	}
	waiting, timeout, reason := s.conditions.Get(v1.LaunchedCondition), orDefault(r.LaunchTimeout, DefaultLaunchTimeout), "launch_timeout"
	why, message := waiting.Reason, waiting.Message
	if waiting.Status == metav1.ConditionTrue {
		waiting, timeout, reason = s.conditions.Get(v1.RegisteredCondition), orDefault(r.RegistrationTimeout, DefaultRegistrationTimeout), "registration_timeout"
		why, message = v1.RegistrationFailedReason, "the instance did not become a node in time"
	}
	if left := timeout - s.now.Sub(waiting.LastTransitionTime.Time); left > 0 {
		return left, nil
	}
	log.FromContext(ctx).Info("abandoning node claim", "reason", reason, "timeout", timeout.String())
	r.Health.Failed(s.claim, why, message)
	return 0, r.giveUp(ctx, s, reason)
}

func orDefault(d, byDefault time.Duration) time.Duration {
	if d == 0 {
		return byDefault
	}
	return d
}
