// SPDX-License-Identifier: Apache-2.0

package kubelet

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	kubeletv1beta1 "k8s.io/kubelet/config/v1beta1"
	strictjson "sigs.k8s.io/json"

	awsv1 "karpenter/api/aws/v1"
	"karpenter/api/quantity"
	v1 "karpenter/api/v1"
)

// Check returns everything that is wrong with the configuration for every AMI
// family, as v1.ValidationErrors, or nil.
func Check(config awsv1.KubeletConfiguration) error {
	decoded, errs := decode(config)
	if _, ok := config["registerWithTaints"]; ok {
		errs = append(errs, fmt.Errorf("spec.kubelet.registerWithTaints: Karpenter sets it; use taints and startupTaints of the NodePool"))
	}
	for _, field := range []struct {
		name   string
		values map[string]string
		check  func(string) error
	}{
		{"evictionHard", decoded.EvictionHard, checkThreshold},
		{"evictionSoft", decoded.EvictionSoft, checkThreshold},
		{"evictionSoftGracePeriod", decoded.EvictionSoftGracePeriod, checkDuration},
		{"evictionMinimumReclaim", decoded.EvictionMinimumReclaim, checkThreshold},
	} {
		errs = append(errs, checkMap(field.name, field.values, signals(), field.check)...)
	}
	errs = append(errs, checkPairs(decoded.EvictionSoft, decoded.EvictionSoftGracePeriod)...)
	errs = append(errs, checkMap("kubeReserved", decoded.KubeReserved, reservable(), checkReserved)...)
	errs = append(errs, checkMap("systemReserved", decoded.SystemReserved, reservable(), checkReserved)...)
	return append(errs, checkNumbers(decoded)...).Join()
}

// decode reads the configuration as the kubelet would, without the fields that
// cannot be read.
func decode(config awsv1.KubeletConfiguration) (*kubeletv1beta1.KubeletConfiguration, v1.ValidationErrors) {
	var errs v1.ValidationErrors
	if _, ok := maxPodsText(config); ok {
		config = maps.Clone(config)
		delete(config, "maxPods")
	}
	decoded := &kubeletv1beta1.KubeletConfiguration{}
	for _, field := range slices.Sorted(maps.Keys(config)) {
		text, err := json.Marshal(awsv1.KubeletConfiguration{field: config[field]})
		if err != nil {
			errs = append(errs, fmt.Errorf("spec.kubelet.%s: %w", field, err))
			continue
		}
		faults, err := strictjson.UnmarshalStrict(text, &kubeletv1beta1.KubeletConfiguration{})
		if err == nil {
			err = strictjson.UnmarshalCaseSensitivePreserveInts(text, decoded)
		}
		if err != nil {
			faults = []error{err}
		}
		for _, fault := range faults {
			errs = append(errs, fmt.Errorf("spec.kubelet.%s: %w", field, fault))
		}
	}
	return decoded, errs
}

// signals lists the eviction signals.
func signals() []string {
	return []string{
		"imagefs.available", "imagefs.inodesFree", "memory.available",
		"nodefs.available", "nodefs.inodesFree", "pid.available",
	}
}

// reservable lists the resources that can be reserved.
func reservable() []string { return []string{"cpu", "ephemeral-storage", "memory", "pid"} }

// checkMap checks the keys and the values of a field.
func checkMap(field string, values map[string]string, keys []string, check func(string) error) v1.ValidationErrors {
	var errs v1.ValidationErrors
	for _, key := range slices.Sorted(maps.Keys(values)) {
		if !slices.Contains(keys, key) {
			errs = append(errs, fmt.Errorf("spec.kubelet.%s: unknown key %q; use one of [%s]", field, key, strings.Join(keys, ", ")))
			continue
		}
		if err := check(values[key]); err != nil {
			errs = append(errs, fmt.Errorf("spec.kubelet.%s[%s]: %w", field, key, err))
		}
	}
	return errs
}

func checkThreshold(value string) error {
	if number, ok := strings.CutSuffix(value, "%"); ok {
		// The comparison rejects NaN as well.
		percent, err := strconv.ParseFloat(number, 64)
		if err = errors.Join(quantity.Check(number), err); err != nil || !(0 <= percent && percent <= 100) {
			return fmt.Errorf("%q is not a percentage from 0%% to 100%%", value)
		}
		return nil
	}
	if q, err := quantity.Parse(value); err != nil || q.Sign() < 0 {
		return fmt.Errorf("%q is neither a percentage nor a quantity of at least 0", value)
	}
	return nil
}

func checkDuration(value string) error {
	if d, err := time.ParseDuration(value); err != nil || d < 0 {
		return fmt.Errorf("%q is not a duration of at least 0", value)
	}
	return nil
}

// checkReserved accepts values that may be expressions.
func checkReserved(value string) error {
	if strings.HasPrefix(value, "-") {
		return fmt.Errorf("%q is negative", value)
	}
	return nil
}

// checkPairs requires a grace period for each soft threshold, and none without
// a threshold.
func checkPairs(soft, grace map[string]string) v1.ValidationErrors {
	var errs v1.ValidationErrors
	for _, key := range slices.Sorted(maps.Keys(soft)) {
		if _, ok := grace[key]; !ok {
			errs = append(errs, fmt.Errorf("spec.kubelet.evictionSoft[%s]: has no evictionSoftGracePeriod", key))
		}
	}
	for _, key := range slices.Sorted(maps.Keys(grace)) {
		if _, ok := soft[key]; !ok {
			errs = append(errs, fmt.Errorf("spec.kubelet.evictionSoftGracePeriod[%s]: has no evictionSoft", key))
		}
	}
	return errs
}

func checkNumbers(decoded *kubeletv1beta1.KubeletConfiguration) v1.ValidationErrors {
	var errs v1.ValidationErrors
	high, low := decoded.ImageGCHighThresholdPercent, decoded.ImageGCLowThresholdPercent
	percent := func(field string, value *int32) {
		if value != nil && (*value < 0 || *value > 100) {
			errs = append(errs, fmt.Errorf("spec.kubelet.%s: %d is not from 0 to 100", field, *value))
		}
	}
	percent("imageGCHighThresholdPercent", high)
	percent("imageGCLowThresholdPercent", low)
	if high != nil && low != nil && *high <= *low {
		errs = append(errs, fmt.Errorf("spec.kubelet.imageGCHighThresholdPercent: %d is not above imageGCLowThresholdPercent %d", *high, *low))
	}
	for _, number := range []struct {
		field string
		value int32
	}{
		{"podsPerCore", decoded.PodsPerCore},
		{"evictionMaxPodGracePeriod", decoded.EvictionMaxPodGracePeriod},
		{"maxPods", decoded.MaxPods},
	} {
		if number.value < 0 {
			errs = append(errs, fmt.Errorf("spec.kubelet.%s: %d is negative", number.field, number.value))
		}
	}
	return errs
}
