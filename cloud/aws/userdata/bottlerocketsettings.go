// SPDX-License-Identifier: Apache-2.0

package userdata

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// valueType is a type that Bottlerocket expects a setting to have in TOML.
type valueType string

const (
	text         valueType = "a string"
	integer      valueType = "an integer"
	boolean      valueType = "a boolean"
	textList     valueType = "an array of strings"
	textOrList   valueType = "a string or an array of strings"
	textOrBool   valueType = "a string or a boolean"
	textOrInt    valueType = "a string or an integer"
	textTable    valueType = "a table of strings"
	listTable    valueType = "a table of arrays of strings"
	tableOfTable valueType = "a table of tables"
	optionTable  valueType = "a table"
)

const policyOptions = "topology-manager-policy-options"

// kubernetesSettings are the settings that users may set in settings.kubernetes,
// by type.
func kubernetesSettings() map[string]valueType {
	return byName(map[valueType]string{
		text: `api-server cloud-provider cluster-certificate cluster-name cluster-domain
			container-log-max-size container-log-monitor-interval cpu-manager-policy cpu-manager-reconcile-period
			hostname-override-source image-gc-high-threshold-percent image-gc-low-threshold-percent memory-manager-policy
			shutdown-grace-period shutdown-grace-period-for-critical-pods topology-manager-scope topology-manager-policy`,
		integer: `max-pods eviction-max-pod-grace-period registry-qps registry-burst event-qps event-burst kube-api-qps
			kube-api-burst container-log-max-files container-log-max-workers ids-per-pod pod-pids-limit log-level`,
		boolean:      `server-tls-bootstrap cpu-cfs-quota-enforced seccomp-default device-ownership-from-security-context single-process-oom-kill`,
		textList:     `allowed-unsafe-sysctls cpu-manager-policy-options`,
		textOrList:   `cluster-dns-ip`,
		textTable:    `node-labels eviction-hard eviction-soft eviction-soft-grace-period kube-reserved system-reserved`,
		listTable:    `node-taints`,
		tableOfTable: `credential-providers static-pods memory-manager-reserved-memory`,
		optionTable:  policyOptions,
	})
}

func byName(byType map[valueType]string) map[string]valueType {
	out := map[string]valueType{}
	for kind, names := range byType {
		for _, name := range strings.Fields(names) {
			out[name] = kind
		}
	}
	return out
}

// policySettings are the settings in topology-manager-policy-options, by type.
func policySettings() map[string]valueType {
	return byName(map[valueType]string{textOrBool: "prefer-closest-numa-nodes", textOrInt: "max-allowable-numa-nodes"})
}

// dropUnknown deletes settings that are not known from settings.kubernetes, and
// returns their paths.
func dropUnknown(kubernetes map[string]any) []string {
	var dropped []string
	drop := func(path string, in map[string]any, known map[string]valueType) {
		for _, name := range slices.Sorted(maps.Keys(in)) {
			if known[name] == "" {
				delete(in, name)
				dropped = append(dropped, path+name)
			}
		}
	}
	drop("settings.kubernetes.", kubernetes, kubernetesSettings())
	if in, ok := kubernetes[policyOptions].(map[string]any); ok {
		drop("settings.kubernetes."+policyOptions+".", in, policySettings())
	}
	return dropped
}

// checkTypes returns an error that names all settings of the wrong type in
// settings.kubernetes. A node with such user data never joins its cluster.
func checkTypes(kubernetes map[string]any) error {
	var wrong []string
	check := func(path string, in map[string]any, known map[string]valueType) {
		for _, name := range slices.Sorted(maps.Keys(in)) {
			if want := known[name]; !isOf(in[name], want) {
				wrong = append(wrong, fmt.Sprintf("%s%s must be %s", path, name, want))
			}
		}
	}
	check("settings.kubernetes.", kubernetes, kubernetesSettings())
	if in, ok := kubernetes[policyOptions].(map[string]any); ok {
		check("settings.kubernetes."+policyOptions+".", in, policySettings())
	}
	if len(wrong) == 0 {
		return nil
	}
	return fmt.Errorf("spec.userData: %s", strings.Join(wrong, "; "))
}

// isOf reports whether a value that was read from TOML is of the type.
func isOf(value any, want valueType) bool {
	switch want {
	case text:
		_, ok := value.(string)
		return ok
	case integer:
		_, ok := value.(int64)
		return ok
	case boolean:
		_, ok := value.(bool)
		return ok
	case textList:
		list, ok := value.([]any)
		return ok && !slices.ContainsFunc(list, func(v any) bool { return !isOf(v, text) })
	case textOrList:
		return isOf(value, text) || isOf(value, textList)
	case textOrBool:
		return isOf(value, text) || isOf(value, boolean)
	case textOrInt:
		return isOf(value, text) || isOf(value, integer)
	case textTable:
		return tableOf(value, text)
	case listTable:
		return tableOf(value, textList)
	case tableOfTable:
		return tableOf(value, optionTable)
	case optionTable:
		_, ok := value.(map[string]any)
		return ok
	}
	return false
}

// tableOf reports whether the value is a table whose values are of the type.
func tableOf(value any, of valueType) bool {
	in, ok := value.(map[string]any)
	if !ok {
		return false
	}
	for _, v := range in {
		if !isOf(v, of) {
			return false
		}
	}
	return true
}
