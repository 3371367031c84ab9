// SPDX-License-Identifier: Apache-2.0

package config

import (
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/yaml"
)

// SchedulerConfig has the defaults of the cluster's scheduler for pods without
// settings of their own.
type SchedulerConfig struct {
	PodTopologySpread PodTopologySpread `json:"podTopologySpread"`
}

// PodTopologySpread is how pods without constraints of their own are spread.
type PodTopologySpread struct {
	// DefaultConstraints have no selector. kube-scheduler uses the selector of
	// the pod's owner.
	DefaultConstraints []corev1.TopologySpreadConstraint `json:"defaultConstraints"`
}

func (s setting) schedulerConfig() setting {
	s.values = "YAML or JSON"
	s.check = func(c *Config) error { return c.SchedulerConfig.validate() }
	s.set = func(c *Config, value string) error {
		if value == "" {
			return nil
		}
		parsed := &SchedulerConfig{}
		if err := yaml.UnmarshalStrict([]byte(value), parsed); err != nil {
			return err
		}
		c.SchedulerConfig = parsed
		return s.check(c)
	}
	return s
}

// validate returns what is invalid. Nil is valid.
func (s *SchedulerConfig) validate() error {
	if s == nil {
		return nil
	}
	var failures []error
	constraints := s.PodTopologySpread.DefaultConstraints
	for i, c := range constraints {
		for _, err := range faults(c) {
			failures = append(failures, fmt.Errorf("podTopologySpread.defaultConstraints[%d].%w", i, err))
		}
		if slices.ContainsFunc(constraints[:i], func(b corev1.TopologySpreadConstraint) bool {
			return b.TopologyKey == c.TopologyKey && b.WhenUnsatisfiable == c.WhenUnsatisfiable
		}) {
			failures = append(failures, fmt.Errorf("podTopologySpread.defaultConstraints[%d]: topologyKey %q with whenUnsatisfiable %s occurs twice", i, c.TopologyKey, c.WhenUnsatisfiable))
		}
	}
	return errors.Join(failures...)
}

// faults returns what is wrong with a default constraint, field by field.
func faults(c corev1.TopologySpreadConstraint) []error {
	var out []error
	refuse := func(format string, args ...any) { out = append(out, fmt.Errorf(format, args...)) }
	if c.MaxSkew <= 0 {
		refuse("maxSkew: %d: want 1 or more", c.MaxSkew)
	}
	for _, problem := range validation.IsQualifiedName(c.TopologyKey) {
		refuse("topologyKey: %q: want a label key: %s", c.TopologyKey, problem)
	}
	if w := c.WhenUnsatisfiable; w != corev1.DoNotSchedule && w != corev1.ScheduleAnyway {
		refuse("whenUnsatisfiable: %q: want DoNotSchedule or ScheduleAnyway", w)
	}
	if c.LabelSelector != nil {
		refuse("labelSelector: not allowed: the selector of the pod's owner counts")
	}
	if len(c.MatchLabelKeys) > 0 {
		refuse("matchLabelKeys: not allowed: the selector of the pod's owner counts")
	}
	if m := c.MinDomains; m != nil && (*m <= 0 || c.WhenUnsatisfiable != corev1.DoNotSchedule) {
		refuse("minDomains: %d: want 1 or more, with DoNotSchedule only", *m)
	}
	for _, p := range []struct {
		name  string
		value *corev1.NodeInclusionPolicy
	}{{"nodeAffinityPolicy", c.NodeAffinityPolicy}, {"nodeTaintsPolicy", c.NodeTaintsPolicy}} {
		if p.value != nil && *p.value != corev1.NodeInclusionPolicyHonor && *p.value != corev1.NodeInclusionPolicyIgnore {
			refuse("%s: %q: want Honor or Ignore", p.name, *p.value)
		}
	}
	return out
}
