// SPDX-License-Identifier: Apache-2.0

package aws

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"karpenter/cloud"
	"karpenter/cloud/aws/awsfake"
	"karpenter/cloud/health"
)

// gpuFault returns what the policies make of a node whose GPU condition has had
// the reason for so many minutes.
func gpuFault(t *testing.T, policies *health.Policies, reason string, minutes int) string {
	t.Helper()
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{CreationTimestamp: metav1.NewTime(start)}}
	node.Status.Conditions = []corev1.NodeCondition{{Type: "AcceleratedHardwareReady", Status: corev1.ConditionFalse, Reason: reason, LastTransitionTime: metav1.NewTime(start)}}
	d, sick := policies.Diagnose(node, start.Add(time.Duration(minutes)*time.Minute), time.Time{})
	if !sick {
		return "nothing"
	}
	return fmt.Sprintf("%s within %s", d.Action, *d.Bound)
}

// TestRepairPolicies: spec 48/83.
func TestRepairPolicies(t *testing.T) {
	for _, reboot := range []bool{false, true} {
		policies, err := health.New(New(Config{RebootForRepair: reboot}).RepairPolicies())
		must(t, err)
		cure := "ReplaceNode within 5m0s"
		if reboot {
			cure = "RebootNode within 5m0s"
		}
		for _, tc := range []struct {
			reason  string
			minutes int
			want    string
		}{
			{"NvidiaXID48Error", 9, "nothing"},
			{"NvidiaXID48Error", 10, cure},
			{"NvidiaXID48Error", 31, cure},
			{"NvidiaXID79Error", 10, "ReplaceNode within 5m0s"},
			{"NvidiaDoubleBitError", 29, "nothing"},
			{"NvidiaDoubleBitError", 30, "ReplaceNode within 10m0s"},
			{"NvidiaXID460Error", 29, "nothing"}, // that is not XID 46
		} {
			check(t, fmt.Sprintf("gate %t, %s after %d min", reboot, tc.reason, tc.minutes), gpuFault(t, policies, tc.reason, tc.minutes), tc.want)
		}
	}
}

// TestLegacyRepairPolicies: spec 48/84.
func TestLegacyRepairPolicies(t *testing.T) {
	var got []string
	for _, p := range New(Config{LegacyRepair: true, RebootForRepair: true}).RepairPolicies() {
		got = append(got, string(p.ConditionType)+"="+string(p.ConditionStatus)+" "+p.Toleration.String())
	}
	check(t, "policies", got, []string{
		"Ready=False 30m0s", "Ready=Unknown 30m0s", "AcceleratedHardwareReady=False 10m0s", "StorageReady=False 30m0s",
		"NetworkingReady=False 30m0s", "KernelReady=False 30m0s", "ContainerRuntimeReady=False 30m0s",
	})
}

// TestReboot: spec 48/85.
func TestReboot(t *testing.T) {
	r := newRegion(t, nil)
	claim := r.claim("claim")
	m := r.launch(claim)
	claim.Status.ProviderID = m.ProviderID
	must(t, cloud.Reboot(t.Context(), r.Provider, claim, "op"))
	check(t, "calls", r.aws.Calls()["RebootInstances"], 1)

	r.aws.Fail("RebootInstances", awsfake.Failure{Code: "UnauthorizedOperation", Times: 1})
	if err := cloud.Reboot(t.Context(), r.Provider, claim, "op"); !cloud.IsRebootFailed(err) {
		t.Errorf("refused as unauthorized: %v", err)
	}
	r.aws.Fail("RebootInstances", awsfake.Failure{Code: "InternalFailure", Times: 1})
	if err := cloud.Reboot(t.Context(), r.Provider, claim, "op"); err == nil || cloud.IsRebootFailed(err) || cloud.IsNotFound(err) {
		t.Errorf("internal error: %v", err)
	}
	must(t, r.Delete(t.Context(), claim))
	r.clock.Step(time.Minute)
	if err := cloud.Reboot(t.Context(), r.Provider, claim, "op"); !cloud.IsNotFound(err) {
		t.Errorf("instance gone: %v", err)
	}
}
