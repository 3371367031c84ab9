// SPDX-License-Identifier: Apache-2.0

package kwok

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	kwokv1alpha1 "karpenter/api/kwok/v1alpha1"
	v1 "karpenter/api/v1"
	"karpenter/model"
)

// faults collects what is wrong, each with the field it is about.
type faults []error

func (f *faults) add(field, format string, args ...any) {
	*f = append(*f, fmt.Errorf("%s: "+format, append([]any{field}, args...)...))
}

// check reports every field of the entry that a type can't be made of.
func (e *Entry) check() error {
	var f faults
	if e.Name == "" {
		f.add("name", "missing")
	} else if err := labelValue(e.Name); err != nil {
		f.add("name", "%w", err)
	} else if err := errors.Join(labelValue(e.size()), labelValue(e.family())); err != nil {
		f.add("name", "size or family: %w", err)
	}
	if !slices.Contains([]string{v1.ArchitectureAmd64, v1.ArchitectureArm64}, e.Architecture) {
		f.add("architecture", "%q is neither %s nor %s", e.Architecture, v1.ArchitectureAmd64, v1.ArchitectureArm64)
	}
	if len(e.OperatingSystems) == 0 {
		f.add("operatingSystems", "missing")
	}
	for i, os := range e.OperatingSystems {
		if os != corev1.Linux && os != corev1.Windows {
			f.add(fmt.Sprintf("operatingSystems[%d]", i), "%q is neither %s nor %s", os, corev1.Linux, corev1.Windows)
		}
	}
	f.checkResources(e)
	f.checkRequirements("requirements", e.Requirements)
	for i, r := range e.Requirements {
		if slices.Contains(derivedLabels(), r.Key) {
			f.add(fmt.Sprintf("requirements[%d].key", i), "%s follows from other fields", r.Key)
		}
	}
	if len(e.Offerings) == 0 {
		f.add("offerings", "missing")
	}
	seen := map[string]int{}
	for i := range e.Offerings {
		field := fmt.Sprintf("offerings[%d]", i)
		f.checkOffering(field, &e.Offerings[i])
		id := requirements(e.Offerings[i].Requirements).String()
		if first, ok := seen[id]; ok {
			f.add(field, "the same as offerings[%d]", first)
		}
		seen[id] = i
	}
	return errors.Join(f...)
}

// derivedLabels are set from the fields of an entry and of its offerings.
func derivedLabels() []string {
	return []string{
		corev1.LabelInstanceTypeStable, corev1.LabelArchStable, corev1.LabelOSStable,
		corev1.LabelTopologyZone, v1.CapacityTypeLabelKey, v1.NodePoolLabelKey, corev1.LabelHostname,
		kwokv1alpha1.InstanceSizeLabelKey, kwokv1alpha1.InstanceFamilyLabelKey,
		kwokv1alpha1.InstanceCPULabelKey, kwokv1alpha1.InstanceMemoryLabelKey,
	}
}

func (f *faults) checkResources(e *Entry) {
	for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory} {
		if q := e.Resources[name]; q.Sign() <= 0 {
			f.add("resources."+string(name), "missing or not positive")
		} else if err := labelValue(q.String()); err != nil {
			f.add("resources."+string(name), "%w", err)
		}
	}
	for _, list := range []struct {
		field string
		list  corev1.ResourceList
	}{{"resources", e.Resources}, {"overhead", e.Overhead}} {
		for name, q := range list.list {
			if q.Sign() < 0 {
				f.add(list.field+"."+string(name), "negative")
			}
			if bad := validation.IsQualifiedName(string(name)); len(bad) > 0 {
				f.add(list.field+"."+string(name), "%s", strings.Join(bad, "; "))
			}
		}
	}
}

func (f *faults) checkOffering(field string, o *OfferingEntry) {
	if o.Price == nil {
		f.add(field+".price", "missing")
	} else if *o.Price < 0 || *o.Price > math.MaxInt64/float64(model.Dollar)/2 {
		f.add(field+".price", "%g is not a price", *o.Price)
	}
	f.checkRequirements(field+".requirements", o.Requirements)
	rs := requirements(o.Requirements)
	for _, key := range []string{corev1.LabelTopologyZone, v1.CapacityTypeLabelKey} {
		if _, ok := rs.Value(key); !ok {
			f.add(field+".requirements", "%s must have one value", key)
		}
	}
	known := []string{v1.CapacityTypeOnDemand, v1.CapacityTypeSpot, v1.CapacityTypeReserved}
	if value, ok := rs.Value(v1.CapacityTypeLabelKey); ok && !slices.Contains(known, value) {
		f.add(field+".requirements", "capacity type %q is none of %s", value, strings.Join(known, ", "))
	}
	if o.ReservationCapacity < 0 {
		f.add(field+".reservationCapacity", "negative")
	}
	if o.LaunchError != "" && o.LaunchError != InsufficientCapacity {
		f.add(field+".launchError", "%q is not %s", o.LaunchError, InsufficientCapacity)
	}
}

func (f *faults) checkRequirements(field string, rs []RequirementEntry) {
	keys := map[string]bool{}
	for i, r := range rs {
		at := fmt.Sprintf("%s[%d]", field, i)
		if bad := validation.IsQualifiedName(r.Key); len(bad) > 0 {
			f.add(at+".key", "%q: %s", r.Key, strings.Join(bad, "; "))
		}
		if keys[r.Key] {
			f.add(at+".key", "%s is there twice", r.Key)
		}
		keys[r.Key] = true
		switch {
		case r.Operator == corev1.NodeSelectorOpDoesNotExist && len(r.Values) == 0:
		case r.Operator == corev1.NodeSelectorOpIn && len(r.Values) > 0:
		default:
			f.add(at, "must be In with values or DoesNotExist without")
		}
		for _, v := range r.Values {
			if err := labelValue(v); err != nil {
				f.add(at+".values", "%q: %w", v, err)
			}
		}
	}
}
