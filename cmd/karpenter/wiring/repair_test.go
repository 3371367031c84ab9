// SPDX-License-Identifier: Apache-2.0

package wiring

import (
	"strings"
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"

	"karpenter/cloud"
	"karpenter/cloud/cloudtest"
	"karpenter/cmd/karpenter/config"
)

// TestRepairNeedsPolicies: spec 48/9, spec 48/27.
func TestRepairNeedsPolicies(t *testing.T) {
	fallback := cloud.RepairPolicy{ConditionType: "Ready", ConditionStatus: "False", Action: cloud.ReplaceNode}
	for _, tc := range []struct {
		name         string
		gate, legacy bool
		policies     []cloud.RepairPolicy
		fails, loops bool
	}{
		{"no policies", true, false, nil, true, false},
		{"an invalid set", true, false, []cloud.RepairPolicy{fallback, fallback}, true, false},
		{"a valid set", true, false, []cloud.RepairPolicy{fallback}, false, true},
		{"gate off", false, false, nil, false, false},
		{"no policies, legacy", true, true, nil, false, false},
		{"valid, legacy", true, true, []cloud.RepairPolicy{fallback}, false, false},
	} {
		fake := cloudtest.NewFake(clocktesting.NewFakePassiveClock(time.Unix(0, 0)))
		fake.SetRepairPolicies(tc.policies...)
		w := &wiring{config: config.Config{Gates: config.Gates{NodeRepair: tc.gate}, LegacyNodeRepair: tc.legacy}, provider: Provider{Provider: fake}}
		policies, err := w.policies()
		if (err != nil) != tc.fails || (policies != nil) != tc.loops {
			t.Errorf("%s: policies %v, error %v", tc.name, policies, err)
		}
		if err != nil && !strings.Contains(err.Error(), "feature gate NodeRepair: repair policies of provider fake") {
			t.Errorf("%s: %v", tc.name, err)
		}
	}
}
