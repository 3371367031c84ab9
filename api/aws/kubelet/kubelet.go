// SPDX-License-Identifier: Apache-2.0

// Package kubelet validates the kubelet configuration of an EC2NodeClass, which
// the schema does not, and knows which AMI families support which fields.
//
// Vocabulary:
//
//   - A managed field is one that the provider reads itself, because it affects how many pods
//     fit on a node. Every family supports these fields.
//   - Any other field of kubelet.config.k8s.io/v1beta1 is unmanaged, and passed
//     on as it is by the families that can.
//   - An expression stands in the place of a number that depends on the
//     instance type: in maxPods, kubeReserved and systemReserved. This package does not evaluate it.
//
// It is a separate package because the kubelet's types have more dependencies
// than API types should.
package kubelet

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	awsv1 "karpenter/api/aws/v1"
	"karpenter/api/quantity"
	v1 "karpenter/api/v1"
)

// Expression is text in the place of a number.
type Expression struct {
	// Field is where it is: "maxPods", or such as "kubeReserved[cpu]".
	Field string
	Text  string
}

// Expressions returns the expressions of a configuration that Check accepts, by
// field: maxPods if it is text, and reserved values that are not quantities.
func Expressions(config awsv1.KubeletConfiguration) []Expression {
	var found []Expression
	for _, field := range []string{"kubeReserved", "systemReserved"} {
		var reserved map[string]string
		if json.Unmarshal(config[field].Raw, &reserved) != nil {
			continue
		}
		for _, name := range slices.Sorted(maps.Keys(reserved)) {
			if _, err := quantity.Parse(reserved[name]); err != nil {
				found = append(found, Expression{Field: fmt.Sprintf("%s[%s]", field, name), Text: reserved[name]})
			}
		}
	}
	if text, ok := maxPodsText(config); ok {
		found = append(found, Expression{Field: "maxPods", Text: text})
	}
	return found
}

// maxPodsText returns maxPods if it is text.
func maxPodsText(config awsv1.KubeletConfiguration) (text string, ok bool) {
	raw := config["maxPods"].Raw
	ok = len(raw) > 0 && raw[0] == '"' && json.Unmarshal(raw, &text) == nil
	return text, ok
}

// Supported returns an error for each field of the configuration that the
// family does not support, as v1.ValidationErrors, or nil.
func Supported(config awsv1.KubeletConfiguration, family awsv1.AMIFamily) error {
	switch family {
	case awsv1.AMIFamilyAL2023, awsv1.AMIFamilyCustom:
		return nil
	}
	var errs v1.ValidationErrors
	for _, field := range slices.Sorted(maps.Keys(config)) {
		switch {
		case !isManaged(field):
			errs = append(errs, fmt.Errorf("spec.kubelet.%s: AMI family %s does not support it; remove it or use %s", field, family, awsv1.AMIFamilyAL2023))
		case field == "podsPerCore" && family == awsv1.AMIFamilyBottlerocket:
			errs = append(errs, fmt.Errorf("spec.kubelet.podsPerCore: AMI family %s does not support it; use maxPods", family))
		}
	}
	var servers []string
	if json.Unmarshal(config["clusterDNS"].Raw, &servers) == nil && len(servers) > 1 {
		errs = append(errs, fmt.Errorf("spec.kubelet.clusterDNS: AMI family %s supports one address, not %d", family, len(servers)))
	}
	return errs.Join()
}

// isManaged reports whether the provider reads the field itself.
func isManaged(field string) bool {
	switch field {
	case "clusterDNS", "maxPods", "podsPerCore", "systemReserved", "kubeReserved",
		"evictionHard", "evictionSoft", "evictionSoftGracePeriod", "evictionMaxPodGracePeriod",
		"imageGCHighThresholdPercent", "imageGCLowThresholdPercent", "cpuCFSQuota":
		return true
	}
	return false
}
