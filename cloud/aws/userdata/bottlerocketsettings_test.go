// SPDX-License-Identifier: Apache-2.0

package userdata

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
)

// TestBottlerocketTypes sets each setting of settings.kubernetes to a value of
// each TOML type: exactly those of the type that Bottlerocket expects render.
func TestBottlerocketTypes(t *testing.T) {
	values := map[string]string{
		"string": `"10"`, "integer": `10`, "float": `1.5`, "boolean": `true`, "date": `2026-11-22`, "array of strings": `["a"]`, "array of integers": `[1]`,
		"table of strings": `{a = "b"}`, "table of integers": `{a = 1}`, "table of arrays": `{a = ["b:NoSchedule"]}`, "table of tables": `{a = {enabled = true}}`,
	}
	fits := map[valueType][]string{
		text: {"string"}, integer: {"integer"}, boolean: {"boolean"}, textList: {"array of strings"}, textOrList: {"string", "array of strings"},
		textTable: {"table of strings"}, listTable: {"table of arrays"}, tableOfTable: {"table of tables"},
	}
	render := func(userData string) error {
		s := situation{UserData: userData}
		_, err := Render(s.machine("Bottlerocket"))
		return err
	}
	names := slices.Sorted(maps.Keys(kubernetesSettings()))
	for _, name := range names {
		want := kubernetesSettings()[name]
		if want == optionTable {
			continue
		}
		for kind, value := range values {
			err := render(fmt.Sprintf("[settings.kubernetes]\n%s = %s\n", name, value))
			if ok := slices.Contains(fits[want], kind); ok != (err == nil) || err != nil && !strings.Contains(err.Error(), "settings.kubernetes."+name+" must be "+string(want)) {
				t.Errorf("%s as %s: %v", name, kind, err)
			}
		}
	}
	if len(names) != 49 {
		t.Errorf("%d settings", len(names))
	}
	for userData, ok := range map[string]bool{
		"[settings.kubernetes.topology-manager-policy-options]\nprefer-closest-numa-nodes = true\nmax-allowable-numa-nodes = 8": true,
		"[settings.kubernetes.topology-manager-policy-options]\nprefer-closest-numa-nodes = 1":                                  false,
		"[settings.kubernetes.topology-manager-policy-options]\nmax-allowable-numa-nodes = 1.5":                                 false,
		"[settings.kubernetes]\ntopology-manager-policy-options = 3":                                                            false,
		"[settings.network]\nhostname = 3": true, // not Karpenter's to judge
	} {
		if err := render(userData); (err == nil) != ok {
			t.Errorf("%s: %v", userData, err)
		}
	}
}
