// SPDX-License-Identifier: Apache-2.0

package harness

import "syscall"

// dieWithParent makes the kernel stop the control plane when the test process
// dies without stopping it, as on a test timeout.
func dieWithParent() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM}
}
