// SPDX-License-Identifier: Apache-2.0

package meter_test

import (
	"testing"

	"karpenter/kube/meter"
)

func TestSnake(t *testing.T) {
	for camel, want := range map[string]string{
		"Ready": "ready", "PIDPressure": "pid_pressure", "KernelDeadlock": "kernel_deadlock",
		"AcceleratedHardwareReady": "accelerated_hardware_ready", "WhenEmptyOrUnderutilized": "when_empty_or_underutilized", "": "",
	} {
		if got := meter.Snake(camel); got != want {
			t.Errorf("Snake(%q) = %q, want %q", camel, got, want)
		}
	}
}
