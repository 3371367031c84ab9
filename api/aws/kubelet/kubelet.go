// SPDX-License-Identifier: Apache-2.0

// Package kubelet says what is wrong with the kubelet configuration of an
// EC2NodeClass, which the schema leaves open, and which AMI families can
// deliver it.
//
// Vocabulary:
//
//   - A managed field is one that the provider reads itself, as it follows from
//     it what fits a node. Every family delivers those.
//   - Any other field of kubelet.config.k8s.io/v1beta1 is unmanaged, and passed
//     on as it is by the families that can.
//   - An expression stands in the place of a number that depends on the
//     instance type: in maxPods, kubeReserved and systemReserved. What is in it
//     is not looked at here.
//
// It is a package of its own because the kubelet's types drag more in than
// types of an API should.
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

// Expressions returns the expressions of a configuration that Check accepts,
// by field: a maxPods that is text, and what is reserved in values that are no
// quantities.
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

// Supported returns an error that says what of the configuration nodes of the
// family would not get, as v1.ValidationErrors, or nil.
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
