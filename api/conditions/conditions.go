// SPDX-License-Identifier: Apache-2.0

// Package conditions keeps the status conditions of an object consistent: a
// root condition, Ready, that sums up the conditions it depends on.
//
// Vocabulary: the root is the condition Ready. A dependent is a condition the
// root depends on; which ones is fixed per resource (Kind). Any other
// condition is independent and does not move the root.
//
// Invariants:
//
//  1. A set always holds the root and every dependent; those no one has set
//     yet are Unknown with reason AwaitingReconciliation.
//  2. A condition's transition time moves only when its status changes.
//  3. Conditions are stored by transition time, oldest first, the root last.
//  4. Nothing here reads a clock: the time is given when the set is opened.
package conditions

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Ready is the type of the root condition.
const Ready = "Ready"

// Reasons this package gives by itself.
const (
	// AwaitingReconciliation is the reason of a condition no one has set yet.
	AwaitingReconciliation = "AwaitingReconciliation"
	// UnhealthyDependents is the root's reason when a dependent is False.
	UnhealthyDependents = "UnhealthyDependents"
	// ReconcilingDependents is the root's reason when none is False, but some
	// are not True at the current generation.
	ReconcilingDependents = "ReconcilingDependents"
)

// Object is what conditions are kept on. SetConditions takes ownership of the
// slice; GetConditions may return the stored slice, which is not modified.
type Object interface {
	GetConditions() []metav1.Condition
	SetConditions([]metav1.Condition)
	GetGeneration() int64
	GetCreationTimestamp() metav1.Time
}

// Kind is the list of dependents of a resource, in the order they come True.
type Kind struct {
	Dependents []string
}

// Set has the conditions of one object, for reading and writing at one point in
// time. It is not safe for concurrent use.
type Set struct {
	object Object
	kind   Kind
	now    metav1.Time
}

// For opens the conditions of the object and fills in the dependents and the
// root if they are missing.
func For(object Object, kind Kind, now time.Time) *Set {
	s := &Set{object: object, kind: kind, now: metav1.NewTime(now)}
	hadRoot := s.Get(Ready) != nil
	filled := false
	for _, t := range append(slices.Clone(kind.Dependents), Ready) {
		if s.Get(t) == nil {
			s.store(metav1.Condition{
				Type:    t,
				Status:  metav1.ConditionUnknown,
				Reason:  AwaitingReconciliation,
				Message: "object is awaiting reconciliation",
			})
			filled = true
		}
	}
	if filled && hadRoot {
		s.recomputeRoot()
	}
	return s
}

// List returns a copy of all conditions as stored.
func (s *Set) List() []metav1.Condition { return slices.Clone(s.object.GetConditions()) }

// Get returns a copy of the condition, or nil if the object has none of the
// type.
func (s *Set) Get(conditionType string) *metav1.Condition {
	return Get(s.object, conditionType)
}

// Root returns a copy of the root condition.
func (s *Set) Root() *metav1.Condition { return s.Get(Ready) }

// IsTrue reports whether the object has all the conditions and they are True.
func (s *Set) IsTrue(conditionTypes ...string) bool { return IsTrue(s.object, conditionTypes...) }

// IsDependent reports whether the root depends on the condition.
func (s *Set) IsDependent(conditionType string) bool {
	return slices.Contains(s.kind.Dependents, conditionType)
}

// SetTrue sets the condition True with its own type as the reason. Like all
// setters, it reports whether the object changed.
func (s *Set) SetTrue(conditionType string) bool {
	return s.SetTrueWithReason(conditionType, conditionType, "")
}

// SetTrueWithReason sets the condition True.
func (s *Set) SetTrueWithReason(conditionType, reason, message string) bool {
	return s.Set(metav1.Condition{Type: conditionType, Status: metav1.ConditionTrue, Reason: reason, Message: message})
}

// SetFalse sets the condition False.
func (s *Set) SetFalse(conditionType, reason, message string) bool {
	return s.Set(metav1.Condition{Type: conditionType, Status: metav1.ConditionFalse, Reason: reason, Message: message})
}

// SetUnknown sets the condition Unknown, as if no one had set it yet.
func (s *Set) SetUnknown(conditionType string) bool {
	return s.SetUnknownWithReason(conditionType, AwaitingReconciliation, "object is awaiting reconciliation")
}

// SetUnknownWithReason sets the condition Unknown.
func (s *Set) SetUnknownWithReason(conditionType, reason, message string) bool {
	return s.Set(metav1.Condition{Type: conditionType, Status: metav1.ConditionUnknown, Reason: reason, Message: message})
}

// Set stores the condition at the object's current generation. Set computes its transition
// time, and ignores the one in the argument. When it is a dependent and the object changed,
// the root is computed again.
func (s *Set) Set(condition metav1.Condition) bool {
	if !s.store(condition) {
		return false
	}
	if s.IsDependent(condition.Type) {
		s.recomputeRoot()
	}
	return true
}

// Observe sets the observed generation of the conditions to the object's
// current generation, all at once, so that the root does not become Unknown in
// between. Without types it means every condition. It reports whether the
// object changed.
func (s *Set) Observe(conditionTypes ...string) bool {
	changed := false
	for _, c := range s.List() {
		if len(conditionTypes) == 0 || slices.Contains(conditionTypes, c.Type) {
			changed = s.store(c) || changed
		}
	}
	if changed {
		s.recomputeRoot()
	}
	return changed
}

// Clear removes an independent condition. The root and the dependents cannot
// be cleared.
func (s *Set) Clear(conditionType string) error {
	if conditionType == Ready || s.IsDependent(conditionType) {
		return fmt.Errorf("clear condition %s: it must always be present; set it Unknown instead", conditionType)
	}
	old := s.object.GetConditions()
	kept := slices.DeleteFunc(slices.Clone(old), func(c metav1.Condition) bool { return c.Type == conditionType })
	if len(kept) != len(old) {
		s.object.SetConditions(kept)
	}
	return nil
}

// store writes the condition without touching the root and reports whether
// the object changed.
func (s *Set) store(condition metav1.Condition) bool {
	condition.ObservedGeneration = s.object.GetGeneration()
	condition.LastTransitionTime = s.now
	stored := slices.Clone(s.object.GetConditions())
	i := slices.IndexFunc(stored, func(c metav1.Condition) bool { return c.Type == condition.Type })
	switch {
	case i < 0:
		// A dependent has been in its first state since the object exists. An
		// object that is not stored yet has no creation time.
		if created := s.object.GetCreationTimestamp(); s.IsDependent(condition.Type) && !created.IsZero() {
			condition.LastTransitionTime = created
		}
	case stored[i].Status == condition.Status:
		condition.LastTransitionTime = stored[i].LastTransitionTime
		if stored[i] == condition {
			return false
		}
	}
	if i >= 0 {
		stored = slices.Delete(stored, i, i+1)
	}
	stored = append(stored, condition)
	slices.SortStableFunc(stored, func(a, b metav1.Condition) int {
		return cmp.Or(
			compareBool(a.Type == Ready, b.Type == Ready),
			a.LastTransitionTime.Compare(b.LastTransitionTime.Time),
		)
	})
	s.object.SetConditions(stored)
	return true
}

// recomputeRoot derives the root from the dependents.
func (s *Set) recomputeRoot() {
	var unhealthy []metav1.Condition
	status, reason := metav1.ConditionTrue, Ready
	// Backwards, so that among conditions of equal transition time the one
	// that comes True later is named first.
	for _, t := range slices.Backward(s.kind.Dependents) {
		c := s.Get(t)
		current := c.ObservedGeneration == s.object.GetGeneration()
		switch {
		case current && c.Status == metav1.ConditionTrue:
			continue
		case current && c.Status == metav1.ConditionFalse:
			status, reason = metav1.ConditionFalse, UnhealthyDependents
		case status == metav1.ConditionTrue:
			status, reason = metav1.ConditionUnknown, ReconcilingDependents
		}
		unhealthy = append(unhealthy, *c)
	}
	slices.SortStableFunc(unhealthy, func(a, b metav1.Condition) int {
		return b.LastTransitionTime.Compare(a.LastTransitionTime.Time)
	})
	names := make([]string, len(unhealthy))
	for i, c := range unhealthy {
		names[i] = fmt.Sprintf("%s=%s", c.Type, c.Status)
	}
	s.store(metav1.Condition{Type: Ready, Status: status, Reason: reason, Message: strings.Join(names, ", ")})
}

// compareBool orders false before true.
func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return 1
	default:
		return -1
	}
}

// Reader is the part of Object needed to look at conditions.
type Reader interface {
	GetConditions() []metav1.Condition
}

// Get returns a copy of the object's condition of the type, or nil.
func Get(object Reader, conditionType string) *metav1.Condition {
	all := object.GetConditions()
	for i := range all {
		if all[i].Type == conditionType {
			c := all[i]
			return &c
		}
	}
	return nil
}

// IsTrue reports whether the object has all the conditions and they are True.
func IsTrue(object Reader, conditionTypes ...string) bool {
	for _, t := range conditionTypes {
		if c := Get(object, t); c == nil || c.Status != metav1.ConditionTrue {
			return false
		}
	}
	return true
}

// IsFalse reports whether the object has the condition and it is False.
func IsFalse(object Reader, conditionType string) bool {
	c := Get(object, conditionType)
	return c != nil && c.Status == metav1.ConditionFalse
}
