// SPDX-License-Identifier: Apache-2.0

package pods

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"

	v1 "karpenter/api/v1"
)

// Reasons why no eviction of a pod is granted.
const (
	NeverAllowed   = "PodDisruptionBudgetNeverAllows"
	SeveralBudgets = "MultiplePodDisruptionBudgets"
	DoNotDisrupt   = "DoNotDisrupt"
)

// Obstacle is the reason why a pod stays on its node until someone changes
// something: waiting does not help.
type Obstacle struct {
	Reason string // one of the reasons above
	Why    string // names the budgets
}

// ObstacleOf returns what keeps the pod on its node forever, nil when nothing
// does. A pod that need not be evicted has no obstacle. The budgets are those
// of the pod's namespace, or more.
func ObstacleOf(p *corev1.Pod, budgets []policyv1.PodDisruptionBudget, now time.Time) (*Obstacle, error) {
	if !Active(p) || !Drainable(p, now) {
		return nil, nil
	}
	if ProtectionOf(p, now).Kind == ProtectedForever {
		return &Obstacle{DoNotDisrupt, fmt.Sprintf("it has the annotation %s: \"true\"", v1.DoNotDisruptAnnotationKey)}, nil
	}
	// The API server evicts pods that have not started whatever their budgets.
	if p.Status.Phase == corev1.PodPending {
		return nil, nil
	}
	own, err := BudgetsOf(p, budgets)
	switch {
	case err != nil || len(own) == 0:
		return nil, err
	case len(own) > 1:
		return &Obstacle{SeveralBudgets, fmt.Sprintf("PodDisruptionBudgets %s and %s both select it, and such pods are never evicted", own[0].Name, own[1].Name)}, nil
	case Exempt(p, own[0]):
		return nil, nil
	}
	if why := Deadlock(own[0]); why != "" {
		return &Obstacle{NeverAllowed, fmt.Sprintf("PodDisruptionBudget %s never allows an eviction (%s)", own[0].Name, why)}, nil
	}
	return nil, nil
}
