// SPDX-License-Identifier: Apache-2.0

package process

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// clockTick is the unit of CPU time in /proc: USER_HZ is 100 on every architecture Go runs on.
const clockTick = time.Second / 100

func usageOf(pid int) (Usage, error) {
	dir := "/proc/" + strconv.Itoa(pid)
	status, err := os.ReadFile(dir + "/status")
	if err != nil {
		return Usage{}, err
	}
	stat, err := os.ReadFile(dir + "/stat")
	if err != nil {
		return Usage{}, err
	}
	memory, err := sizeOf("VmRSS", string(status))
	if err != nil {
		return Usage{}, err
	}
	peak, err := sizeOf("VmHWM", string(status))
	if err != nil {
		return Usage{}, err
	}
	cpu, err := cpuTime(stat)
	return Usage{Memory: memory, PeakMemory: peak, CPU: cpu}, err
}

// sizeOf reads a line such as "VmHWM:   123 kB".
func sizeOf(name, status string) (int64, error) {
	for line := range strings.Lines(status) {
		if fields := strings.Fields(line); len(fields) == 3 && fields[0] == name+":" {
			kilobytes, err := strconv.ParseInt(fields[1], 10, 64)
			return kilobytes << 10, err
		}
	}
	return 0, fmt.Errorf("no %s in %q", name, status)
}

// cpuTime reads fields 14 and 15 of stat, utime and stime. The second field, the name, may hold anything but ends at
// the last parenthesis.
func cpuTime(stat []byte) (time.Duration, error) {
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	if len(fields) < 13 {
		return 0, fmt.Errorf("short stat %q", stat)
	}
	var ticks int64
	for _, field := range fields[11:13] {
		n, err := strconv.ParseInt(string(field), 10, 64)
		if err != nil {
			return 0, err
		}
		ticks += n
	}
	return time.Duration(ticks) * clockTick, nil
}
