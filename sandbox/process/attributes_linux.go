// SPDX-License-Identifier: Apache-2.0

package process

import "syscall"

// childAttributes puts a child into its own process group, so that Ctrl-C reaches only the parent, and has the kernel
// kill it when the parent dies without stopping it: children ended together, in no order, would wait for one another.
func childAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
