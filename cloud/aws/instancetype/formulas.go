// SPDX-License-Identifier: Apache-2.0

package instancetype

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"karpenter/api/aws/kubelet"
	awsv1 "karpenter/api/aws/v1"
	"karpenter/cloud/aws/expression"
)

// Formulas are the expressions in the kubelet configuration of a node class,
// which depend on the instance type. Nil Formulas change nothing.
type Formulas struct {
	maxPods *expression.Expression // nil = a number or nothing
	kube    map[corev1.ResourceName]*expression.Expression
	system  map[corev1.ResourceName]*expression.Expression
}

// NewFormulas compiles the expressions of a configuration, or returns
// everything that is wrong with them.
func NewFormulas(l *expression.Language, config awsv1.KubeletConfiguration) (*Formulas, error) {
	f := &Formulas{
		kube:   map[corev1.ResourceName]*expression.Expression{},
		system: map[corev1.ResourceName]*expression.Expression{},
	}
	var errs []error
	for _, found := range kubelet.Expressions(config) {
		compiled, err := l.Compile(found.Text)
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", found.Field, err))
			continue
		}
		field, name, _ := strings.Cut(strings.TrimSuffix(found.Field, "]"), "[")
		switch field {
		case "maxPods":
			f.maxPods = compiled
		case "kubeReserved":
			f.kube[corev1.ResourceName(name)] = compiled
		case "systemReserved":
			f.system[corev1.ResourceName(name)] = compiled
		}
	}
	return f, errors.Join(errs...)
}

// Apply returns the class with the formulas evaluated for the type.
// Reservations whose formula has no usable result are left out and listed in
// dropped, so that the default of the family applies. Without a usable number
// of pods, there is no result.
func (f *Formulas) Apply(class *Class, facts *Facts, cluster *Cluster) (out *Class, dropped, err error) {
	if f == nil {
		return class, nil, nil
	}
	s := sizing{facts, class, cluster, traitsOf(class.Family)}
	figures := s.figures()
	copied := *class
	if f.maxPods != nil {
		n, err := f.maxPods.Evaluate(figures)
		if err == nil && (n < 0 || n > math.MaxInt32) {
			err = fmt.Errorf("%d pods for %s", n, facts.InstanceType)
		}
		if err != nil {
			return nil, nil, fmt.Errorf("maxPods: %w", err)
		}
		copied.Kubelet.MaxPods = &n
	}
	if m := copied.Kubelet.MaxPods; m != nil {
		figures.MaxPods = *m
	}
	var kube, system error
	copied.Kubelet.KubeReserved, kube = evaluateAll(f.kube, class.Kubelet.KubeReserved, figures)
	copied.Kubelet.SystemReserved, system = evaluateAll(f.system, class.Kubelet.SystemReserved, figures)
	return &copied, errors.Join(in("kubeReserved", kube), in("systemReserved", system)), nil
}

// in says in which field something is wrong, if anything is.
func in(field string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", field, err)
}

// figures are those of the type, with the pods that the family allows it.
func (s *sizing) figures() *expression.Figures {
	network := &s.facts.NetworkInfo
	out := &expression.Figures{
		InstanceType: s.facts.InstanceType,
		CPUs:         s.facts.VCpuInfo.DefaultVCpus,
		MemoryMiB:    s.facts.MemoryInfo.SizeInMiB,
		IPsPerENI:    network.Ipv4AddressesPerInterface,
		MaxPods:      s.defaultPods(),
	}
	if card := cardOf(network, network.DefaultNetworkCardIndex); card != nil {
		out.ENIs = card.MaximumNetworkInterfaces
	}
	return out
}

// evaluateAll adds the results to the fixed quantities.
func evaluateAll(formulas map[corev1.ResourceName]*expression.Expression, fixed corev1.ResourceList, figures *expression.Figures) (corev1.ResourceList, error) {
	out := maps.Clone(fixed)
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(formulas)) {
		n, err := formulas[name].Evaluate(figures)
		if err == nil && n < 0 {
			err = fmt.Errorf("gives %d, which is negative, for %s", n, figures.InstanceType)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", name, err))
			continue
		}
		if out == nil {
			out = corev1.ResourceList{}
		}
		out[name] = expression.Quantity(name, n)
	}
	return out, errors.Join(errs...)
}
