// SPDX-License-Identifier: Apache-2.0

package drift

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "karpenter/api/v1"
)

// spec 40/49: whatever of the template is edited, its claims drift; requirements
// and all that is not the template do not count.
func TestTemplateEdits(t *testing.T) {
	for name, tt := range map[string]struct {
		edit func(*v1.NodePool)
		want string
	}{
		"annotations":       {func(p *v1.NodePool) { p.Spec.Template.Annotations = map[string]string{"a": "b"} }, v1.NodePoolDriftedReason},
		"labels":            {func(p *v1.NodePool) { p.Spec.Template.Labels = map[string]string{"a": "b"} }, v1.NodePoolDriftedReason},
		"taints":            {func(p *v1.NodePool) { p.Spec.Template.Spec.Taints = taint() }, v1.NodePoolDriftedReason},
		"startupTaints":     {func(p *v1.NodePool) { p.Spec.Template.Spec.StartupTaints = taint() }, v1.NodePoolDriftedReason},
		"nodeClassRef.name": {func(p *v1.NodePool) { p.Spec.Template.Spec.NodeClassRef.Name = "other" }, v1.NodePoolDriftedReason},
		"expireAfter":       {func(p *v1.NodePool) { p.Spec.Template.Spec.ExpireAfter = v1.MustParseNillableDuration("5h") }, v1.NodePoolDriftedReason},
		"terminationGracePeriod": {func(p *v1.NodePool) {
			p.Spec.Template.Spec.TerminationGracePeriod = &metav1.Duration{Duration: time.Hour}
		}, v1.NodePoolDriftedReason},
		"weight":                            {func(p *v1.NodePool) { w := int32(3); p.Spec.Weight = &w }, ""},
		"requirements that the claim meets": {func(p *v1.NodePool) { p.Spec.Template.Spec.Requirements = require("zone In z1 z2") }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			pool, claim := &v1.NodePool{}, &v1.NodeClaim{}
			pool.Spec.Template.Spec.NodeClassRef = &v1.NodeClassReference{Group: "g", Kind: "K", Name: "n"}
			claim.Labels = map[string]string{corev1.LabelTopologyZone: "z1"}
			claim.Annotations = stamp(pool)
			pool.Annotations = stamp(pool)
			if got := outdated(claim, pool, v1.DefaultLabels()); got != "" {
				t.Fatalf("before the edit: %s", got)
			}
			tt.edit(pool)
			pool.Annotations = stamp(pool)
			if got := outdated(claim, pool, v1.DefaultLabels()); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

func stamp(p *v1.NodePool) map[string]string {
	return map[string]string{v1.NodePoolHashAnnotationKey: p.Hash(), v1.NodePoolHashVersionAnnotationKey: v1.NodePoolHashVersion}
}

func taint() []v1.Taint { return []v1.Taint{{Key: "a", Effect: corev1.TaintEffectNoSchedule}} }

// spec 40/50: the claim's labels against the pool's requirements.
func TestRequirements(t *testing.T) {
	for _, tt := range []struct {
		name, before, after string // requirements
		labels              string
		drifts              bool
	}{
		{"capacity type changed", "capacity In on-demand", "capacity In spot", "capacity=on-demand", true},
		{"key added that the claim lacks", "capacity In on-demand", "capacity In on-demand; team In a", "capacity=on-demand", true},
		{"known key added that the claim lacks", "", "arch In amd64", "capacity=on-demand", true},
		{"key added that must be absent", "", "team DoesNotExist", "capacity=on-demand", false},
		{"key added that may be absent", "", "team NotIn b", "capacity=on-demand", false},
		{"values reduced to others", "zone In z1 z2", "zone In z2", "zone=z1", true},
		{"values reduced to the claim's", "zone In z1 z2", "zone In z1", "zone=z1", false},
		{"values expanded", "zone In z1", "zone In z1 z2", "zone=z1", false},
		{"Exists", "team In a", "team Exists", "team=a", false},
		{"DoesNotExist", "team In a", "team DoesNotExist", "team=a", true},
		{"NotIn", "team In a", "team NotIn a", "team=a", true},
		{"Gt", "size Gt 3", "size Gt 10", "size=5", true},
		{"Gt that holds", "size Gt 3", "size Gt 4", "size=5", false},
		{"Lt", "size Lt 3", "size Lt 1", "size=2", true},
		{"Lt that holds", "size Lt 3", "size Lt 5", "size=2", false},
		{"an old name of a key", "", "beta.kubernetes.io/arch In amd64", "arch=amd64", false},
		{"an old name of a key on the claim", "", "arch In amd64", "beta.kubernetes.io/arch=amd64", false},
		{"the new name counts where both are", "", "arch In amd64", "arch=amd64 beta.kubernetes.io/arch=arm64", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			pool, claim := &v1.NodePool{}, &v1.NodeClaim{}
			claim.Labels = map[string]string{}
			for _, pair := range strings.Fields(tt.labels) {
				key, value, _ := strings.Cut(pair, "=")
				claim.Labels[long(key)] = value
			}
			pool.Spec.Template.Spec.Requirements = require(tt.before)
			if got := outdated(claim, pool, v1.DefaultLabels()); got != "" {
				t.Fatalf("before the edit: %s", got)
			}
			pool.Spec.Template.Spec.Requirements = require(tt.after)
			if got := outdated(claim, pool, v1.DefaultLabels()); (got == v1.RequirementsDriftedReason) != tt.drifts {
				t.Errorf("got %q, want drift: %t", got, tt.drifts)
			}
		})
	}
}

// require reads "KEY OPERATOR VALUES…; …".
func require(text string) []v1.NodeSelectorRequirementWithMinValues {
	var out []v1.NodeSelectorRequirementWithMinValues
	for _, one := range strings.Split(text, ";") {
		if words := strings.Fields(one); len(words) > 0 {
			out = append(out, v1.NodeSelectorRequirementWithMinValues{
				Key: long(words[0]), Operator: corev1.NodeSelectorOperator(words[1]), Values: words[2:],
			})
		}
	}
	return out
}

func long(key string) string {
	switch key {
	case "zone":
		return corev1.LabelTopologyZone
	case "arch":
		return corev1.LabelArchStable
	case "capacity":
		return v1.CapacityTypeLabelKey
	}
	return key
}
