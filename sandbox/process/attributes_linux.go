package process

import "syscall"

// childAttributes puts a child into its own process group, so that Ctrl-C reaches only the parent, and has the kernel
// send it SIGTERM when the parent dies without stopping it.
func childAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGTERM}
}
