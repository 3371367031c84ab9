// SPDX-License-Identifier: Apache-2.0

package health

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"karpenter/cloud"
)

// maxPriority is the highest Priority of a policy.
const maxPriority = 100

// pair is what policies look up conditions by.
type pair struct {
	condition corev1.NodeConditionType
	status    corev1.ConditionStatus
}

// policy is a RepairPolicy with its expression compiled.
type policy struct {
	cloud.RepairPolicy
	reason *regexp.Regexp
}

// Policies is a valid set of repair policies. It does not change.
type Policies struct {
	specific map[pair][]policy // by condition; the fallback's own pair may have none
	fallback policy
	rank     map[int]int // of priorities, the lowest is 0
}

// New returns the set of the policies. The error names everything that is wrong
// with them.
func New(policies []cloud.RepairPolicy) (*Policies, error) {
	out := &Policies{specific: map[pair][]policy{}, rank: map[int]int{}}
	var faults []error
	fallbacks := 0
	for i, p := range policies {
		reason, err := regexp.Compile(p.ReasonRegex)
		for _, fault := range append(faultsOf(p), err) {
			if fault != nil {
				faults = append(faults, fmt.Errorf("repair policy %d (%s=%s): %w", i, p.ConditionType, p.ConditionStatus, fault))
			}
		}
		key := pair{p.ConditionType, p.ConditionStatus}
		out.rank[p.Priority] = 0
		if p.ReasonRegex == "" {
			fallbacks++
			out.fallback = policy{RepairPolicy: p}
			out.specific[key] = out.specific[key][:len(out.specific[key]):len(out.specific[key])]
			continue
		}
		out.specific[key] = append(out.specific[key], policy{p, reason})
	}
	if fallbacks != 1 {
		faults = append(faults, fmt.Errorf("%d repair policies have no reason expression: want one, the fallback", fallbacks))
	}
	for rank, priority := range slices.Sorted(maps.Keys(out.rank)) {
		out.rank[priority] = rank
	}
	return out, errors.Join(faults...)
}

// faultsOf returns what is wrong with a policy by itself.
func faultsOf(p cloud.RepairPolicy) []error {
	var out []error
	refuse := func(bad bool, format string, args ...any) {
		if bad {
			out = append(out, fmt.Errorf(format, args...))
		}
	}
	statuses := []corev1.ConditionStatus{corev1.ConditionTrue, corev1.ConditionFalse, corev1.ConditionUnknown}
	refuse(p.ConditionType == "", "the condition type is empty")
	refuse(!slices.Contains(statuses, p.ConditionStatus), "condition status %q: want True, False or Unknown", p.ConditionStatus)
	refuse(p.Toleration < 0, "toleration %s is negative", p.Toleration)
	refuse(p.TerminationGracePeriod != nil && *p.TerminationGracePeriod < 0, "termination grace period is negative")
	refuse(p.Priority < 0 || p.Priority > maxPriority, "priority %d: want 0 to %d", p.Priority, maxPriority)
	refuse(p.Action != cloud.ReplaceNode && p.Action != cloud.RebootNode, "action %q: want ReplaceNode or RebootNode", p.Action)
	refuse(p.ReasonRegex == "" && p.Action == cloud.RebootNode, "the fallback, which has no reason expression, must have the action ReplaceNode")
	return out
}

// Sick reports whether the Node has a condition that any policy names,
// regardless of the reason and the toleration.
func (s *Policies) Sick(node *corev1.Node) bool {
	return slices.ContainsFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool {
		_, known := s.specific[pair{c.Type, c.Status}]
		return known
	})
}
