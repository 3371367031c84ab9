// SPDX-License-Identifier: Apache-2.0

// Package process keeps child processes alive: it starts them in process groups of their own, appends their output to
// a log file, restarts them with bounded backoff when they die, and stops them with SIGTERM, then SIGKILL.
package process

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"sync"
	"syscall"
	"time"
)

// Backoff between restarts doubles from minBackoff to maxBackoff; a child that lived stableAfter starts over at minBackoff.
const (
	minBackoff  = 250 * time.Millisecond
	maxBackoff  = 10 * time.Second
	stableAfter = 30 * time.Second
)

// Spec says what to run. Name, Path and LogPath are required.
type Spec struct {
	Name    string
	Path    string   // the executable
	Args    []string // without argv[0]
	Env     []string // nil: this process's environment
	LogPath string   // stdout and stderr are appended here
	PIDPath string   // holds the child's process id while it runs; empty: no file
	// Inherit are files the child holds open from descriptor 3 on; the caller keeps them open while the Process lives.
	Inherit []*os.File
}

// Exit is a child's unasked-for end.
type Exit struct {
	Name      string
	Err       error // how it ended; never nil
	LogPath   string
	LogTail   string        // the last lines that it wrote
	RestartIn time.Duration // when it will be started again
}

// String tells the exit as a person wants to read it: what, where, what happens next.
func (e Exit) String() string {
	return fmt.Sprintf("%s died (%v), restarting in %v; the end of %s:\n%s", e.Name, e.Err, e.RestartIn, e.LogPath, e.LogTail)
}

// Process is one child that is kept alive until Stop. Its methods are safe for concurrent use.
type Process struct {
	spec   Spec
	report func(Exit)
	stop   chan struct{} // closed by the first Stop
	done   chan struct{} // closed when the child is gone permanently

	mu       sync.Mutex
	stopping bool
	cmd      *exec.Cmd // nil between a death and the next start
	failures int
}

// Start starts the child and keeps it alive. report, if not nil, hears of every exit that Stop did not ask for;
// it is called from one goroutine at a time.
func Start(spec Spec, report func(Exit)) (*Process, error) {
	if report == nil {
		report = func(Exit) {}
	}
	p := &Process{spec: spec, report: report, stop: make(chan struct{}), done: make(chan struct{})}
	cmd, err := p.spawn()
	if err != nil {
		return nil, err
	}
	go p.keepAlive(cmd)
	return p, nil
}

// Name returns the Spec's name.
func (p *Process) Name() string { return p.spec.Name }

// PID returns the child's process id, 0 while none runs.
func (p *Process) PID() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cmd == nil {
		return 0
	}
	return p.cmd.Process.Pid
}

// Failures counts the exits that Stop did not ask for.
func (p *Process) Failures() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.failures
}

// Stop stops the child permanently: SIGTERM, and SIGKILL to its group after
// grace. It returns when the child is gone, with an error if it had to be
// killed. Later calls only wait.
func (p *Process) Stop(grace time.Duration) error {
	if cmd := p.markStopping(); cmd != nil {
		_ = cmd.Process.Signal(syscall.SIGTERM)
	}
	timer := time.NewTimer(grace)
	defer timer.Stop()
	select {
	case <-p.done:
		return nil
	case <-timer.C:
	}
	p.mu.Lock()
	if p.cmd != nil {
		_ = syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL)
	}
	p.mu.Unlock()
	<-p.done
	return fmt.Errorf("%s did not stop within %v and was killed; its log is %s", p.spec.Name, grace, p.spec.LogPath)
}

func (p *Process) markStopping() *exec.Cmd {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.stopping {
		p.stopping = true
		close(p.stop)
	}
	return p.cmd
}

var errStopping = errors.New("stopping")

// spawn starts the child once. The log file is opened again each time, so a rotated one is let go.
func (p *Process) spawn() (*exec.Cmd, error) {
	log, err := os.OpenFile(p.spec.LogPath, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open log of %s: %w", p.spec.Name, err)
	}
	defer log.Close()
	cmd := exec.Command(p.spec.Path, p.spec.Args...)
	cmd.Env = p.spec.Env
	cmd.Stdout, cmd.Stderr = log, log
	cmd.ExtraFiles = p.spec.Inherit
	cmd.SysProcAttr = childAttributes()

	p.mu.Lock()
	defer p.mu.Unlock()
	if p.stopping {
		return nil, errStopping
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", p.spec.Name, err)
	}
	p.cmd = cmd
	if p.spec.PIDPath != "" {
		// For people and tests that want to signal one component; nothing here depends on it.
		_ = os.WriteFile(p.spec.PIDPath, []byte(strconv.Itoa(cmd.Process.Pid)+"\n"), 0o600)
	}
	return cmd, nil
}

// keepAlive waits for cmd and its successors until Stop.
func (p *Process) keepAlive(cmd *exec.Cmd) {
	defer close(p.done)
	backoff := minBackoff
	for cmd != nil {
		started := time.Now()
		err := cmd.Wait()
		if err == nil {
			err = errors.New("exit status 0")
		}
		if p.ended() {
			return
		}
		if time.Since(started) > stableAfter {
			backoff = minBackoff
		}
		p.report(Exit{Name: p.spec.Name, Err: err, LogPath: p.spec.LogPath, LogTail: Tail(p.spec.LogPath), RestartIn: backoff})
		cmd, backoff = p.respawn(backoff)
	}
}

// respawn starts the child again after backoff, however often that takes; the command is nil if Stop came first.
// It returns the backoff for the next time.
func (p *Process) respawn(backoff time.Duration) (*exec.Cmd, time.Duration) {
	for p.pause(backoff) {
		backoff = min(2*backoff, maxBackoff)
		cmd, err := p.spawn()
		if err == nil {
			return cmd, backoff
		}
		if !errors.Is(err, errStopping) {
			p.report(Exit{Name: p.spec.Name, Err: err, LogPath: p.spec.LogPath, RestartIn: backoff})
		}
	}
	return nil, backoff
}

// ended records that the child has exited, and reports whether Stop was called.
func (p *Process) ended() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cmd = nil
	if p.spec.PIDPath != "" {
		_ = os.Remove(p.spec.PIDPath)
	}
	if !p.stopping {
		p.failures++
	}
	return p.stopping
}

// pause waits out a backoff and reports whether to go on.
func (p *Process) pause(d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-p.stop:
		return false
	case <-timer.C:
		return true
	}
}
