// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"syscall"
	"testing"
)

// Controller is a running karpenter process.
type Controller struct {
	t       testing.TB
	process *exec.Cmd
	exited  chan struct{}
	log     *lockedBuffer
}

// StartController runs bin/karpenter against the cluster until the test ends
// or Kill is called. The environment is what a user would set, as NAME=value;
// ports are chosen free, leader election is off and instances are KWOK's unless it
// says otherwise.
func (c *Cluster) StartController(t testing.TB, env ...string) *Controller {
	t.Helper()
	return c.StartCommand(t, exec.Command(program(t, "karpenter"), "controller"), env...)
}

// StartCommand is like StartController but runs a command of the caller's, which
// must end up as the program's process.
func (c *Cluster) StartCommand(t testing.TB, command *exec.Cmd, env ...string) *Controller {
	t.Helper()
	k := &Controller{t: t, process: command, exited: make(chan struct{}), log: &lockedBuffer{}}
	k.process.Env = append(os.Environ(), "KUBECONFIG="+c.Kubeconfig, "DISABLE_LEADER_ELECTION=true", "CLOUD_PROVIDER=kwok",
		fmt.Sprint("METRICS_PORT=", FreePort(t)), fmt.Sprint("HEALTH_PROBE_PORT=", FreePort(t)))
	k.process.Env = append(k.process.Env, env...)
	k.process.Stdout, k.process.Stderr = k.log, k.log
	k.process.SysProcAttr = dieWithParent()
	started := make(chan error)
	go func() {
		runtime.LockOSThread() // see launch
		err := k.process.Start()
		started <- err
		if err == nil {
			_ = k.process.Wait()
			close(k.exited)
		}
	}()
	if err := <-started; err != nil {
		t.Fatalf("start %s: %v", command, err)
	}
	t.Cleanup(func() {
		k.Kill()
		if t.Failed() {
			t.Logf("the end of the controller's log:\n%s", tail(k.log.String(), 60))
		}
	})
	return k
}

// Kill ends the process as a power cut would, and waits until it is gone.
func (k *Controller) Kill() { k.end(syscall.SIGKILL) }

// Stop asks the process to end, and waits until it has.
func (k *Controller) Stop() { k.end(syscall.SIGTERM) }

func (k *Controller) end(signal syscall.Signal) {
	_ = k.process.Process.Signal(signal)
	<-k.exited
}

// Freeze stops the process in its tracks, as a machine does that is out of memory
// or moved to another host; Thaw lets it go on.
func (k *Controller) Freeze() { _ = k.process.Process.Signal(syscall.SIGSTOP) }

// Thaw lets the process go on.
func (k *Controller) Thaw() { _ = k.process.Process.Signal(syscall.SIGCONT) }

// Exited is closed when the process has ended.
func (k *Controller) Exited() <-chan struct{} { return k.exited }

// ExitCode is the process's, once it has ended.
func (k *Controller) ExitCode() int { return k.process.ProcessState.ExitCode() }

// Log is what the process has printed so far.
func (k *Controller) Log() string { return k.log.String() }

// FreePort returns a port of the loopback device that is free now.
func FreePort(t testing.TB) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}

// lockedBuffer is a buffer that a process writes while a test reads.
type lockedBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}
