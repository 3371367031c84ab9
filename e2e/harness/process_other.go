// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package harness

import "syscall"

// dieWithParent does nothing: only Linux can tie a process to its parent.
func dieWithParent() *syscall.SysProcAttr { return nil }
