// SPDX-License-Identifier: Apache-2.0

package process

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

func shell(t *testing.T, script string) Spec {
	dir := t.TempDir()
	return Spec{Name: "child", Path: "/bin/sh", Args: []string{"-c", script}, LogPath: filepath.Join(dir, "log"), PIDPath: filepath.Join(dir, "pid")}
}

func TestDeathIsReportedAndRepaired(t *testing.T) {
	exits := make(chan Exit, 10)
	p, err := Start(shell(t, "echo last words; exit 3"), func(e Exit) { exits <- e })
	if err != nil {
		t.Fatal(err)
	}
	first, second := <-exits, <-exits // a second death is proof of a restart
	if text := first.String(); !strings.Contains(text, "child died (exit status 3)") || !strings.Contains(text, "last words") {
		t.Errorf("report %q", text)
	}
	if second.RestartIn != 2*first.RestartIn {
		t.Errorf("backoff %v, then %v; want it doubled", first.RestartIn, second.RestartIn)
	}
	if err := p.Stop(time.Second); err != nil {
		t.Errorf("stop: %v", err)
	}
	if p.Failures() < 2 {
		t.Errorf("failures: %d", p.Failures())
	}
}

func TestStopEndsAWillingChild(t *testing.T) {
	spec := shell(t, "exec sleep 60")
	p, err := Start(spec, func(e Exit) { t.Errorf("unexpected report: %v", e) })
	if err != nil {
		t.Fatal(err)
	}
	pid := p.PID()
	if err := p.Stop(10 * time.Second); err != nil {
		t.Errorf("stop: %v", err)
	}
	if syscall.Kill(pid, 0) == nil {
		t.Errorf("process %d is still there", pid)
	}
	if _, err := os.Stat(spec.PIDPath); err == nil {
		t.Error("the pid file is still there")
	}
}

func TestStopKillsAStubbornChild(t *testing.T) {
	out, in, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	spec := shell(t, "trap '' TERM; echo deaf >&3; while :; do sleep 60; done")
	spec.Inherit = []*os.File{in}
	p, err := Start(spec, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := out.Read(make([]byte, 1)); err != nil { // the trap is set from here on
		t.Fatal(err)
	}
	if err := p.Stop(10 * time.Millisecond); err == nil || !strings.Contains(err.Error(), "was killed") {
		t.Errorf("stop: %v; want it to tell of the kill", err)
	}
}

func TestStartNeedsAnExecutable(t *testing.T) {
	spec := shell(t, "")
	spec.Path = "/does/not/exist"
	if _, err := Start(spec, nil); err == nil || !strings.Contains(err.Error(), "start child") {
		t.Errorf("got %v", err)
	}
}

func TestTailKeepsTheEnd(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	if err := os.WriteFile(path, []byte(strings.Repeat("early\n", 10000)+"late\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(Tail(path), "\n")
	if len(lines) != tailLines || lines[tailLines-1] != "late" {
		t.Errorf("%d lines, the last %q", len(lines), lines[len(lines)-1])
	}
}
