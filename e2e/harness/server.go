// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"bufio"
	"io"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"syscall"
	"testing"
	"time"
)

// Server is a program that answers at a URL, for one test.
type Server struct {
	// URL is where it answers.
	URL string

	process *exec.Cmd
	exited  chan struct{}
}

// startServer starts the program and waits until its output, a pipe of the
// process, tells the address.
func startServer(t testing.TB, process *exec.Cmd, output io.Reader, address *regexp.Regexp) *Server {
	t.Helper()
	name := filepath.Base(process.Path)
	s := &Server{process: process, exited: make(chan struct{})}
	process.SysProcAttr = dieWithParent()
	log := &lockedBuffer{}
	if process.Stderr == nil {
		process.Stderr = log
	}
	started, ready := make(chan error), make(chan string, 1)
	go func() {
		runtime.LockOSThread() // see launch
		err := process.Start()
		started <- err
		if err == nil {
			readAddress(io.TeeReader(output, log), address, ready)
			_ = process.Wait()
			close(s.exited)
		}
	}()
	if err := <-started; err != nil {
		t.Fatalf("start %s: %v", process.Path, err)
	}
	t.Cleanup(func() {
		s.Stop()
		if t.Failed() {
			t.Logf("the end of the output of %s:\n%s", name, tail(log.String(), 40))
		}
	})
	select {
	case s.URL = <-ready:
	case <-s.exited:
		t.Fatalf("%s ended before it answered:\n%s", name, tail(log.String(), 20))
	case <-time.After(2 * time.Minute):
		t.Fatalf("%s did not answer in 2 minutes:\n%s", name, tail(log.String(), 20))
	}
	return s
}

// Stop ends the process and waits until it is gone.
func (s *Server) Stop() {
	_ = s.process.Process.Signal(syscall.SIGTERM)
	<-s.exited
}

// Environment is what makes the SDK's clients, those of bin/karpenter too, take
// the server for AWS, as NAME=value.
func (s *Server) Environment() []string {
	return []string{
		"AWS_ENDPOINT_URL=" + s.URL, "AWS_REGION=us-east-1",
		"AWS_ACCESS_KEY_ID=test", "AWS_SECRET_ACCESS_KEY=test", "AWS_EC2_METADATA_DISABLED=true",
	}
}

// readAddress sends the address that the output tells, then drains it.
func readAddress(output io.Reader, address *regexp.Regexp, ready chan<- string) {
	lines := bufio.NewScanner(output)
	for lines.Scan() {
		if found := address.FindStringSubmatch(lines.Text()); found != nil {
			ready <- found[1]
			break
		}
	}
	_, _ = io.Copy(io.Discard, output)
}
