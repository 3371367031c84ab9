// SPDX-License-Identifier: Apache-2.0

package process

import (
	"testing"
	"time"
)

func TestProcFiles(t *testing.T) {
	// The name may hold spaces and parentheses.
	cpu, err := cpuTime([]byte("42 (a) b (c) S 1 42 42 0 -1 4194560 900 0 0 0 150 50 7 9 20 0 8 0 100 0 0\n"))
	if err != nil || cpu != 2*time.Second {
		t.Errorf("CPU time %v, %v; want 2s", cpu, err)
	}
	if _, err := cpuTime([]byte("42 (a) S 1")); err == nil {
		t.Error("a short stat is taken for whole")
	}
	memory, err := sizeOf("VmHWM", "Name:\tkarpenter\nVmPeak:\t  99 kB\nVmHWM:\t  2048 kB\n")
	if err != nil || memory != 2<<20 {
		t.Errorf("memory %d, %v; want 2 MiB", memory, err)
	}
	if _, err := sizeOf("VmHWM", "Name:\tkarpenter\n"); err == nil {
		t.Error("no memory is taken for some")
	}
}
