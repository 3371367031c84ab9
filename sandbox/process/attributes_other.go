// SPDX-License-Identifier: Apache-2.0

//go:build unix && !linux

package process

import "syscall"

// childAttributes puts a child into its own process group, so that Ctrl-C reaches only the parent. This system cannot
// signal children of a killed parent; they have to be found and ended by hand.
func childAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true}
}
