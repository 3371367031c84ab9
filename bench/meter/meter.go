// SPDX-License-Identifier: Apache-2.0

// Package meter measures this process: CPU time and memory.
package meter

import (
	"bytes"
	"os"
	"strconv"
	"syscall"
	"time"
)

// CPU returns the CPU time this process has used on all cores.
func CPU() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// ResetPeak makes the kernel forget the peak of this process's resident memory
// and returns what the process uses now, in bytes. If the kernel can't forget
// it, the peak stays that of the process's whole life.
func ResetPeak() uint64 {
	const forgetPeak = "5"
	_ = os.WriteFile("/proc/self/clear_refs", []byte(forgetPeak), 0)
	return Resident()
}

// Resident returns the resident memory of this process in bytes.
func Resident() uint64 { return status("VmRSS") }

// Peak returns the highest resident memory of this process in bytes since the
// last ResetPeak.
func Peak() uint64 { return status("VmHWM") }

// status returns an amount of memory from the kernel's view of this process,
// in bytes; 0 where there is none.
func status(field string) uint64 {
	text, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0
	}
	for line := range bytes.Lines(text) {
		if rest, ok := bytes.CutPrefix(line, []byte(field+":")); ok {
			kib, _ := strconv.ParseUint(string(bytes.Fields(rest)[0]), 10, 64)
			return kib << 10
		}
	}
	return 0
}
