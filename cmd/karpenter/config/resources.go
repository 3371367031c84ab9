// SPDX-License-Identifier: Apache-2.0

package config

import (
	"cmp"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"karpenter/api/quantity"
)

// unlimited is the text of resources that are not limited.
const unlimited = "none"

// resources accepts quantities by name, such as cpu=100,memory=400Gi, or none.
func (s setting) resources(field func(*Config) *corev1.ResourceList) setting {
	s.values = cmp.Or(s.values, "quantities by resource, such as `cpu=100,memory=400Gi,nvidia.com/gpu=8`, or `none`")
	s.check = valid
	s.set = func(c *Config, value string) error {
		if value == unlimited {
			*field(c) = nil
			return nil
		}
		out := corev1.ResourceList{}
		for pair := range strings.SplitSeq(value, ",") {
			name, amount, found := strings.Cut(pair, "=")
			name = strings.TrimSpace(name)
			if !found || name == "" {
				return fmt.Errorf("want NAME=QUANTITY separated by commas, such as cpu=100,memory=400Gi, or %s", unlimited)
			}
			q, err := quantity.Parse(strings.TrimSpace(amount))
			if err != nil {
				return fmt.Errorf("resource %s: %w", name, err)
			}
			if q.Sign() < 0 {
				return fmt.Errorf("resource %s: %s is negative", name, q.String())
			}
			out[corev1.ResourceName(name)] = q
		}
		*field(c) = out
		return nil
	}
	return s
}
