// SPDX-License-Identifier: Apache-2.0

package v1

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"

	"karpenter/api/unreadable"
)

// ValidationErrors is everything that is wrong with an object, on one line.
//
// +kubebuilder:object:generate=false
type ValidationErrors []error

// Error returns the errors joined by "; ".
func (e ValidationErrors) Error() string {
	texts := make([]string, len(e))
	for i, err := range e {
		texts[i] = err.Error()
	}
	return strings.Join(texts, "; ")
}

// Unwrap returns the single errors.
func (e ValidationErrors) Unwrap() []error { return e }

// Join returns the errors that are not nil, or nil if there are none.
func (e ValidationErrors) Join() error {
	e = slices.DeleteFunc(slices.Clone(e), func(err error) bool { return err == nil })
	if len(e) == 0 {
		return nil
	}
	return e
}

// ValidateNodePool returns everything that is wrong with the pool's template and
// limits beyond the checks of the CRD schema, as ValidationErrors, or nil.
func ValidateNodePool(pool *NodePool, labels Labels) error {
	template := &pool.Spec.Template
	errs := ValidationErrors{unreadable.Error(pool)}
	if len(pool.Name) > validation.LabelValueMaxLength {
		errs = append(errs, fmt.Errorf("metadata.name: it has %d characters; nodes have it as the value of label %s, which takes at most %d", len(pool.Name), NodePoolLabelKey, validation.LabelValueMaxLength))
	}
	errs = append(errs, validateLimits(pool.Spec.Limits)...)
	errs = append(errs, validateTemplateLabels(template.Labels, labels)...)
	errs = append(errs, validateTaints(template.Spec.Taints, template.Spec.StartupTaints)...)
	for i, requirement := range template.Spec.Requirements {
		where := fmt.Sprintf("spec.template.spec.requirements[%d]", i)
		if labels.CanonicalKey(requirement.Key) == NodePoolLabelKey {
			errs = append(errs, fmt.Errorf("%s: key %q is restricted: Karpenter sets it to the name of the pool; remove the requirement", where, requirement.Key))
		}
		if err := ValidateRequirement(requirement, labels); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", where, err))
		}
	}
	return errs.Join()
}

// NodePoolWarnings returns what is questionable in the pool but accepted:
// unknown values of a key with known values, beside known ones, and budgets that
// cannot be read or are for no reason.
func NodePoolWarnings(pool *NodePool, labels Labels) []string {
	var warnings []string
	for i, requirement := range pool.Spec.Template.Spec.Requirements {
		known, unknown := splitKnown(requirement, labels)
		if len(known) > 0 && len(unknown) > 0 {
			warnings = append(warnings, fmt.Sprintf("spec.template.spec.requirements[%d]: values %q of key %q are unknown and have no effect; remove them",
				i, unknown, requirement.Key))
		}
	}
	for i, budget := range pool.Spec.Disruption.Budgets {
		where := fmt.Sprintf("spec.disruption.budgets[%d]", i)
		if _, err := budget.AllowedDisruptions(time.Time{}, 0); err != nil {
			warnings = append(warnings, fmt.Sprintf("%s: %v; no node of the pool is disrupted until it is corrected", where, err))
		}
		if budget.Reasons != nil && len(budget.Reasons) == 0 {
			warnings = append(warnings, where+": an empty list of reasons means none, so the budget limits nothing; leave reasons out to mean all")
		}
	}
	return warnings
}

// validateLimits checks that no limit is negative.
func validateLimits(limits Limits) ValidationErrors {
	var errs ValidationErrors
	for _, name := range slices.Sorted(maps.Keys(limits)) {
		if q := limits[name]; q.Sign() < 0 {
			errs = append(errs, fmt.Errorf("spec.limits[%s]: %s is negative; use 0 to launch nothing", name, q.String()))
		}
	}
	return errs
}

func validateTemplateLabels(template map[string]string, labels Labels) ValidationErrors {
	var errs ValidationErrors
	for _, key := range slices.Sorted(maps.Keys(template)) {
		where := fmt.Sprintf("spec.template.metadata.labels[%s]", key)
		if key == NodePoolLabelKey {
			errs = append(errs, fmt.Errorf("%s: restricted: Karpenter sets it to the name of the pool; remove the label", where))
		}
		errs = appendProblems(errs, where+": invalid key", validation.IsQualifiedName(key))
		errs = appendProblems(errs, where+": invalid value "+strconv.Quote(template[key]), validation.IsValidLabelValue(template[key]))
		if err := labels.CheckRestricted(key); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", where, err))
		}
	}
	return errs
}

// validateTaints checks both lists as one: a key and effect may occur once.
func validateTaints(taints, startup []Taint) ValidationErrors {
	type id struct {
		key    string
		effect corev1.TaintEffect
	}
	var errs ValidationErrors
	first := map[id]string{}
	check := func(field string, list []Taint) {
		for i, taint := range list {
			where := fmt.Sprintf("spec.template.spec.%s[%d]", field, i)
			errs = append(errs, validateTaint(where, taint)...)
			if earlier, ok := first[id{taint.Key, taint.Effect}]; ok {
				errs = append(errs, fmt.Errorf("%s: taint %s:%s is already at %s; keep one of them", where, taint.Key, taint.Effect, earlier))
				continue
			}
			first[id{taint.Key, taint.Effect}] = where
		}
	}
	check("taints", taints)
	check("startupTaints", startup)
	return errs
}

func validateTaint(where string, taint Taint) ValidationErrors {
	errs := appendProblems(nil, where+": invalid key "+strconv.Quote(taint.Key), validation.IsQualifiedName(taint.Key))
	if taint.Value != "" {
		errs = appendProblems(errs, where+": invalid value "+strconv.Quote(taint.Value), validation.IsQualifiedName(taint.Value))
	}
	switch taint.Effect {
	case corev1.TaintEffectNoSchedule, corev1.TaintEffectPreferNoSchedule, corev1.TaintEffectNoExecute:
	default:
		errs = append(errs, fmt.Errorf("%s: invalid effect %q: use NoSchedule, PreferNoSchedule or NoExecute", where, taint.Effect))
	}
	return errs
}

// ValidateRequirement returns everything that is wrong with the requirement,
// as ValidationErrors, or nil. An alias is judged as the key it stands for.
func ValidateRequirement(r NodeSelectorRequirementWithMinValues, labels Labels) error {
	key := labels.CanonicalKey(r.Key)
	var errs ValidationErrors
	if err := labels.CheckRestricted(key); err != nil {
		errs = append(errs, err)
	}
	errs = appendProblems(errs, "invalid key "+strconv.Quote(r.Key), validation.IsQualifiedName(key))
	for _, value := range r.Values {
		errs = appendProblems(errs, fmt.Sprintf("invalid value %q of key %q", value, r.Key), validation.IsValidLabelValue(value))
	}
	return append(errs, validateOperator(r), validateKnownValues(r, labels)).Join()
}

// validateOperator checks that the operator is known and the number and kind
// of its values right.
func validateOperator(r NodeSelectorRequirementWithMinValues) error {
	switch r.Operator {
	case corev1.NodeSelectorOpIn:
		if len(r.Values) == 0 {
			return fmt.Errorf("key %q: operator In needs at least one value", r.Key)
		}
		if r.MinValues != nil && len(r.Values) < *r.MinValues {
			return fmt.Errorf("key %q: minValues is %d but operator In lists %d values; lower minValues or add values", r.Key, *r.MinValues, len(r.Values))
		}
	case corev1.NodeSelectorOpGt, corev1.NodeSelectorOpLt, NodeSelectorOpGte, NodeSelectorOpLte:
		if len(r.Values) != 1 {
			return fmt.Errorf("key %q: operator %s needs exactly one value, has %d", r.Key, r.Operator, len(r.Values))
		}
		if n, err := strconv.ParseInt(r.Values[0], 10, 64); err != nil || n < 0 {
			return fmt.Errorf("key %q: operator %s needs a non-negative integer, has %q", r.Key, r.Operator, r.Values[0])
		}
	case corev1.NodeSelectorOpNotIn, corev1.NodeSelectorOpExists, corev1.NodeSelectorOpDoesNotExist:
	default:
		return fmt.Errorf("key %q: unknown operator %q: use In, NotIn, Exists, DoesNotExist, Gt, Lt, Gte or Lte", r.Key, r.Operator)
	}
	return nil
}

// validateKnownValues checks that operator In has enough known values.
func validateKnownValues(r NodeSelectorRequirementWithMinValues, labels Labels) error {
	known, unknown := splitKnown(r, labels)
	if len(unknown) == 0 {
		return nil
	}
	all := sets.List(labels.KnownValues[labels.CanonicalKey(r.Key)])
	if len(known) == 0 {
		return fmt.Errorf("key %q: no value of %q is known; use one of %q", r.Key, unknown, all)
	}
	if r.MinValues != nil && len(known) < *r.MinValues {
		return fmt.Errorf("key %q: minValues is %d but only %q are known values; use %d of %q", r.Key, *r.MinValues, known, *r.MinValues, all)
	}
	return nil
}

// splitKnown divides the values of operator In by whether they are known. Both
// are empty for other operators and for keys whose values are not closed.
func splitKnown(r NodeSelectorRequirementWithMinValues, labels Labels) (known, unknown []string) {
	all, closed := labels.KnownValues[labels.CanonicalKey(r.Key)]
	if !closed || r.Operator != corev1.NodeSelectorOpIn {
		return nil, nil
	}
	for _, value := range r.Values {
		if all.Has(value) {
			known = append(known, value)
		} else {
			unknown = append(unknown, value)
		}
	}
	return known, unknown
}

// appendProblems appends one error if a Kubernetes validator found problems.
func appendProblems(errs ValidationErrors, what string, problems []string) ValidationErrors {
	if len(problems) == 0 {
		return errs
	}
	return append(errs, errors.New(what+": "+strings.Join(problems, ", ")))
}
