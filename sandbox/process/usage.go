// SPDX-License-Identifier: Apache-2.0

package process

import (
	"errors"
	"time"
)

// Usage is what a running process has used since its start.
type Usage struct {
	Memory     int64         // bytes resident now
	PeakMemory int64         // bytes resident, at most
	CPU        time.Duration // user and system, of all threads
}

// Usage asks the operating system about the child that runs now, not about those before a restart. Only Linux answers.
func (p *Process) Usage() (Usage, error) {
	pid := p.PID()
	if pid == 0 {
		return Usage{}, errors.New(p.Name() + " does not run")
	}
	return usageOf(pid)
}
