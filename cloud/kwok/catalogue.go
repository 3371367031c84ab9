// SPDX-License-Identifier: Apache-2.0

package kwok

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"os"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"

	kwokv1alpha1 "karpenter/api/kwok/v1alpha1"
	v1 "karpenter/api/v1"
	"karpenter/cloud"
	"karpenter/model"
)

// Catalogue has the instance types of the provider. It never changes.
type Catalogue struct {
	types        []*cloud.InstanceType
	launchErrors map[offeringKey]string
	labels       []string
}

type offeringKey struct{ instanceType, zone, capacityType, reservationID string }

func keyOf(t *cloud.InstanceType, o *cloud.Offering) offeringKey {
	return offeringKey{t.Name, o.Zone(), o.CapacityType(), o.ReservationID}
}

func (k offeringKey) String() string { return k.instanceType + "/" + k.zone + "/" + k.capacityType }

// Labels returns what the provider adds to the core's knowledge of labels: the
// labels that nodes of the catalogue's types have are well-known, and the
// provider's own domain is reserved.
func (c *Catalogue) Labels() v1.Labels {
	return v1.Labels{
		WellKnown:         sets.New(c.labels...),
		RestrictedDomains: sets.New(kwokv1alpha1.Group),
	}
}

// Types returns the types as advertised at the start. The caller must not
// modify them.
func (c *Catalogue) Types() []*cloud.InstanceType { return slices.Clone(c.types) }

// ReadCatalogue reads an instance types file. An empty path gives the default
// types.
func ReadCatalogue(path string) (*Catalogue, error) {
	if path == "" {
		return NewCatalogue(DefaultEntries())
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("instance types file: %w", err)
	}
	c, err := ParseCatalogue(data)
	if err != nil {
		return nil, fmt.Errorf("instance types file %s: %w", path, err)
	}
	return c, nil
}

// ParseCatalogue reads the contents of an instance types file.
func ParseCatalogue(data []byte) (*Catalogue, error) {
	var entries []Entry
	if err := json.Unmarshal(data, &entries); err != nil {
		return nil, located(data, err)
	}
	return NewCatalogue(entries)
}

// located adds the line to an error that knows its offset.
func located(data []byte, err error) error {
	var offset int64
	var syntax *json.SyntaxError
	var kind *json.UnmarshalTypeError
	switch {
	case errors.As(err, &syntax):
		offset = syntax.Offset
	case errors.As(err, &kind):
		offset = kind.Offset
	default:
		return err
	}
	line := 1 + strings.Count(string(data[:min(int(offset), len(data))]), "\n")
	return fmt.Errorf("line %d: %w", line, err)
}

// NewCatalogue checks the entries and makes a catalogue of them. The error
// names every fault by entry and field.
func NewCatalogue(entries []Entry) (*Catalogue, error) {
	c := &Catalogue{launchErrors: map[offeringKey]string{}}
	if len(entries) == 0 {
		return nil, errors.New("no instance types")
	}
	labels := map[string]struct{}{
		kwokv1alpha1.InstanceSizeLabelKey: {}, kwokv1alpha1.InstanceFamilyLabelKey: {},
		kwokv1alpha1.InstanceCPULabelKey: {}, kwokv1alpha1.InstanceMemoryLabelKey: {},
	}
	names := map[string]int{}
	var errs []error
	for i := range entries {
		e := &entries[i]
		err := e.check()
		if first, ok := names[e.Name]; ok {
			err = errors.Join(err, fmt.Errorf("name: also the name of entry %d", first))
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("entry %d (%q): %w", i, e.Name, err))
			continue
		}
		names[e.Name] = i
		for _, r := range e.allRequirements() {
			labels[r.Key] = struct{}{}
		}
		c.add(e)
	}
	c.labels = slices.Sorted(maps.Keys(labels))
	c.complete()
	return c, errors.Join(errs...)
}

// complete adds to every type, for each label of the catalogue, whether its
// nodes have the label, so that pods don't wait for a label that no node gets.
func (c *Catalogue) complete() {
	for _, t := range c.types {
		for _, key := range c.labels {
			if _, ok := t.Requirements.Get(key); !ok {
				t.Requirements = t.Requirements.And(model.NewRequirement(key, model.DoesNotExist))
			}
		}
	}
}

func (e *Entry) allRequirements() []RequirementEntry {
	out := slices.Clone(e.Requirements)
	for _, o := range e.Offerings {
		out = append(out, o.Requirements...)
	}
	return out
}

func (c *Catalogue) add(e *Entry) {
	t := &cloud.InstanceType{
		Name:         e.Name,
		Requirements: e.typeRequirements(),
		Capacity:     e.capacity(),
		Overhead:     cloud.Overhead{KubeReserved: e.overhead()},
	}
	for i := range e.Offerings {
		o := &e.Offerings[i]
		t.Offerings = append(t.Offerings, cloud.Offering{
			Requirements:        requirements(o.Requirements),
			Price:               model.Price(math.Round(*o.Price * float64(model.Dollar))),
			Available:           true,
			ReservationCapacity: o.ReservationCapacity,
		})
		if o.LaunchError != "" {
			c.launchErrors[keyOf(t, &t.Offerings[i])] = o.LaunchError
		}
	}
	c.types = append(c.types, t)
}

func (e *Entry) capacity() corev1.ResourceList {
	out := e.Resources.DeepCopy()
	if _, ok := out[corev1.ResourcePods]; !ok {
		out[corev1.ResourcePods] = *resource.NewQuantity(110, resource.DecimalSI)
	}
	return out
}

func (e *Entry) overhead() corev1.ResourceList {
	if e.Overhead != nil {
		return e.Overhead.DeepCopy()
	}
	return corev1.ResourceList{
		corev1.ResourceCPU:    *resource.NewMilliQuantity(100, resource.DecimalSI),
		corev1.ResourceMemory: *resource.NewQuantity(10<<20, resource.BinarySI),
	}
}

// typeRequirements are the labels every type has, the entry's own, and the
// union of its offerings' labels.
func (e *Entry) typeRequirements() model.Requirements {
	systems := make([]string, len(e.OperatingSystems))
	for i, os := range e.OperatingSystems {
		systems[i] = string(os)
	}
	all := []model.Requirement{
		model.NewRequirement(corev1.LabelInstanceTypeStable, model.In, e.Name),
		model.NewRequirement(corev1.LabelArchStable, model.In, e.Architecture),
		model.NewRequirement(corev1.LabelOSStable, model.In, systems...),
		model.NewRequirement(kwokv1alpha1.InstanceSizeLabelKey, model.In, e.size()),
		model.NewRequirement(kwokv1alpha1.InstanceFamilyLabelKey, model.In, e.family()),
		model.NewRequirement(kwokv1alpha1.InstanceCPULabelKey, model.In, text(e.Resources, corev1.ResourceCPU)),
		model.NewRequirement(kwokv1alpha1.InstanceMemoryLabelKey, model.In, text(e.Resources, corev1.ResourceMemory)),
	}
	all = append(all, requirements(e.Requirements)...)
	values := map[string][]string{}
	for _, o := range e.Offerings {
		for _, r := range o.Requirements {
			values[r.Key] = append(values[r.Key], r.Values...)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(values)) {
		all = append(all, model.NewRequirement(key, model.In, values[key]...))
	}
	return model.NewRequirements(all...)
}

func requirements(entries []RequirementEntry) model.Requirements {
	all := make([]model.Requirement, len(entries))
	for i, r := range entries {
		all[i] = model.NewRequirement(r.Key, model.Operator(r.Operator), r.Values...)
	}
	return model.NewRequirements(all...)
}

func text(list corev1.ResourceList, name corev1.ResourceName) string {
	q := list[name]
	return q.String()
}

// size is the part behind the dot of names like m5.large, or the processors.
func (e *Entry) size() string {
	if _, size, ok := strings.Cut(e.Name, "."); ok {
		return size
	}
	return text(e.Resources, corev1.ResourceCPU)
}

// family is the part before the first dot or dash, or the first letter.
func (e *Entry) family() string {
	if i := strings.IndexAny(e.Name, ".-"); i >= 0 {
		return e.Name[:i]
	}
	return e.Name[:1]
}

func labelValue(value string) error {
	if faults := validation.IsValidLabelValue(value); len(faults) > 0 {
		return errors.New(strings.Join(faults, "; "))
	}
	return nil
}
