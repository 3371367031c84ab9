// SPDX-License-Identifier: Apache-2.0

package convert_test

import (
	"reflect"
	"strings"
	"testing"
	"time"

	v1 "karpenter/api/v1"
	"karpenter/kube/convert"
	"karpenter/model"
)

// Annotations of a NodePool set its aims; one that cannot be read is named and
// leaves the setting in place.
func TestNodePoolAims(t *testing.T) {
	share, amount, payback := 0.1, model.Dollar/5, 90*time.Minute
	for name, c := range map[string]struct {
		annotations map[string]string
		want        model.Aims
		wrong       []string
	}{
		"none":       {},
		"both":       {map[string]string{v1.PreferencePremiumAnnotationKey: "0.1", v1.PreferenceAllowanceAnnotationKey: "0.2"}, model.Aims{PreferencePremium: &share, PreferenceAllowance: &amount}, nil},
		"on demand":  {map[string]string{v1.MinOnDemandShareAnnotationKey: "0.3"}, model.Aims{OnDemandShare: 0.3}, nil},
		"no share":   {map[string]string{v1.MinOnDemandShareAnnotationKey: "30"}, model.Aims{}, []string{`karpenter.sh/min-on-demand-share="30": want a share of 1`}},
		"spot pools": {map[string]string{v1.MaxSpotPoolShareAnnotationKey: "0.1"}, model.Aims{MaxSpotPoolShare: &share}, nil},
		"saving":     {map[string]string{v1.ConsolidationPaybackTimeAnnotationKey: "90m", v1.ConsolidationSavingsThresholdAnnotationKey: "0.1"}, model.Aims{Payback: &payback, Threshold: &share}, nil},
		"no saving": {
			map[string]string{v1.ConsolidationPaybackTimeAnnotationKey: "-1h", v1.ConsolidationSavingsThresholdAnnotationKey: "25%"}, model.Aims{},
			[]string{`consolidation-payback-time="-1h": want a duration`, `consolidation-savings-threshold="25%": want a share of 1`},
		},
		"zero":  {map[string]string{v1.PreferencePremiumAnnotationKey: "0"}, model.Aims{PreferencePremium: new(float64)}, nil},
		"wrong": {map[string]string{v1.PreferencePremiumAnnotationKey: "10%", v1.PreferenceAllowanceAnnotationKey: "0.2"}, model.Aims{PreferenceAllowance: &amount}, []string{`karpenter.sh/preference-premium="10%"`}},
		"all wrong": {
			map[string]string{v1.PreferencePremiumAnnotationKey: "1.1", v1.PreferenceAllowanceAnnotationKey: "$1"}, model.Aims{},
			[]string{`karpenter.sh/preference-premium="1.1": want a share of 1`, `karpenter.sh/preference-allowance="$1": want dollars per hour`},
		},
	} {
		pool := &v1.NodePool{}
		pool.Annotations = c.annotations
		got, err := convert.Aims(pool)
		if !reflect.DeepEqual(got, c.want) || (err != nil) != (len(c.wrong) > 0) {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
		for _, text := range c.wrong {
			if !strings.Contains(err.Error(), text) {
				t.Errorf("%s: %v does not say %s", name, err, text)
			}
		}
	}
}

func TestShare(t *testing.T) {
	for text, want := range map[string]float64{
		"0": 0, "1": 1, ".05": 0.05, "0.050": 0.05,
		"": -1, "-0.1": -1, "1.01": -1, "5%": -1, "1e-2": -1, "NaN": -1, "1.0.0": -1, " 1": -1, strings.Repeat("0", 41): -1,
	} {
		got, err := convert.Share(text)
		if err != nil {
			got = -1
		}
		if got != want {
			t.Errorf("%q: %v, %v; want %v", text, got, err, want)
		}
	}
}
