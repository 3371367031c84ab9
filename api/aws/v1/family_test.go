// SPDX-License-Identifier: Apache-2.0

package v1_test

import (
	"testing"

	v1 "karpenter/api/aws/v1"
)

// TestAMIFamily covers spec 60 §3.6: which family is in effect, and which alias.
func TestAMIFamily(t *testing.T) {
	for _, c := range []struct {
		family v1.AMIFamily // "" for unset
		terms  []v1.AMISelectorTerm
		want   v1.AMIFamily
		alias  v1.Alias // empty for none
	}{
		{"", nil, v1.AMIFamilyCustom, v1.Alias{}},
		{"", []v1.AMISelectorTerm{{ID: "ami-1"}}, v1.AMIFamilyCustom, v1.Alias{}},
		{v1.AMIFamilyAL2023, []v1.AMISelectorTerm{{ID: "ami-1"}}, v1.AMIFamilyAL2023, v1.Alias{}},
		{"", []v1.AMISelectorTerm{{Alias: "al2@v20240625"}}, v1.AMIFamilyAL2, v1.Alias{Family: v1.AMIFamilyAL2, Version: "v20240625"}},
		{"", []v1.AMISelectorTerm{{Alias: "bottlerocket@1.20.3"}}, v1.AMIFamilyBottlerocket, v1.Alias{Family: v1.AMIFamilyBottlerocket, Version: "1.20.3"}},
		{"", []v1.AMISelectorTerm{{Alias: "windows2025@latest"}}, v1.AMIFamilyWindows2025, v1.Alias{Family: v1.AMIFamilyWindows2025, Version: "latest"}},
		{v1.AMIFamilyCustom, []v1.AMISelectorTerm{{Alias: "al2023@latest"}}, v1.AMIFamilyCustom, v1.Alias{Family: v1.AMIFamilyAL2023, Version: "latest"}},
		{"", []v1.AMISelectorTerm{{Alias: "ubuntu@latest"}}, v1.AMIFamilyCustom, v1.Alias{}},
		{"", []v1.AMISelectorTerm{{Alias: "AL2023@latest"}}, v1.AMIFamilyCustom, v1.Alias{}},
		{"", []v1.AMISelectorTerm{{Alias: "al2023"}}, v1.AMIFamilyCustom, v1.Alias{}},
		{"", []v1.AMISelectorTerm{{Alias: "al2023@"}}, v1.AMIFamilyCustom, v1.Alias{}},
		{"", []v1.AMISelectorTerm{{Alias: "al2023@a@b"}}, v1.AMIFamilyAL2023, v1.Alias{Family: v1.AMIFamilyAL2023, Version: "a@b"}},
	} {
		class := v1.EC2NodeClass{Spec: v1.EC2NodeClassSpec{AMISelectorTerms: c.terms}}
		if c.family != "" {
			class.Spec.AMIFamily = &c.family
		}
		if got := class.AMIFamily(); got != c.want {
			t.Errorf("amiFamily %q, terms %v: family %s, want %s", c.family, c.terms, got, c.want)
		}
		if got, ok := class.Alias(); got != c.alias || ok != (c.alias != v1.Alias{}) {
			t.Errorf("terms %v: alias %v, %t", c.terms, got, ok)
		}
		if got := c.want.IsWindows(); got != (c.want == v1.AMIFamilyWindows2025) {
			t.Errorf("%s is Windows: %t", c.want, got)
		}
	}
}
