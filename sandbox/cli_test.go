// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"bytes"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
)

// TestControlPlaneCommand: one line on stdout, SIGTERM ends it well, and after kill -9 the next start takes over.
func TestControlPlaneCommand(t *testing.T) {
	dir := t.TempDir()
	want := "ready kubeconfig=" + filepath.Join(dir, "kubeconfig") + "\n"
	if runtime.GOOS == "linux" { // elsewhere children outlive a killed parent
		first, line, _ := startCommand(t, dir)
		if line != want {
			t.Errorf("first line %q, want %q", line, want)
		}
		if err := first.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = first.Wait()
	}
	second, line, rest := startCommand(t, dir)
	if line != want {
		t.Errorf("first line %q, want %q", line, want)
	}
	if err := second.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	more, err := io.ReadAll(rest)
	if err != nil || len(more) > 0 {
		t.Errorf("after the first line: %q, %v; want nothing", more, err)
	}
	if err := second.Wait(); err != nil {
		t.Errorf("after SIGTERM: %v, want exit 0", err)
	}
}

// startCommand starts `sandbox control-plane` and returns it, its first line and the rest of its output.
func startCommand(t *testing.T, dir string) (*exec.Cmd, string, io.Reader) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self, "control-plane", "--data", dir)
	cmd.Stderr = t.Output()
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Signal(syscall.SIGTERM) })
	reader := bufio.NewReader(out)
	line, err := reader.ReadString('\n')
	if err != nil {
		t.Fatalf("no first line: %v", err)
	}
	return cmd, line, reader
}

func TestHelpNamesEveryCommandAndFlag(t *testing.T) {
	var help bytes.Buffer
	if code := run([]string{"sandbox", "help"}, &help, io.Discard); code != 0 {
		t.Fatalf("exit code %d", code)
	}
	for _, want := range []string{"run", "demo", "stress", "-controller", "-crds", "-manifests", "-helm", "-charts", "-plain", "-examples", "-scale", "disrupt", "-parts", "-drifted", "size", "-burst", "control-plane", "kubelets", "kube-apiserver", "etcd", "kubectl", "-data", "-component-logs",
		"-node-ready-delay", "-pod-start-delay", "-pod-stop-delay", "-job-duration", "-kubeconfig", "sandbox/heartbeat"} {
		if !strings.Contains(help.String(), want) {
			t.Errorf("help does not mention %s", want)
		}
	}
}

func TestInvalidArguments(t *testing.T) {
	for _, c := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"sandbox"}, 2, "Commands:"},
		{[]string{"sandbox", "kube-proxy"}, 2, "unknown command"},
		{[]string{"sandbox", "control-plane"}, 1, "--data"},
		{[]string{"sandbox", "control-plane", "--data", "x", "y"}, 1, "unexpected argument"},
		{[]string{"sandbox", "control-plane", "--pod-start-delay=-1s", "--data=x"}, 1, "negative"},
		{[]string{"sandbox", "control-plane", "--extra-arg=kube-proxy=--x"}, 1, "NAME=ARG"},
		{[]string{"sandbox", "kubelets"}, 1, "--kubeconfig"},
	} {
		var stderr bytes.Buffer
		if code := run(c.args, io.Discard, &stderr); code != c.code || !strings.Contains(stderr.String(), c.want) {
			t.Errorf("%v: exit %d, %q; want exit %d and %q", c.args, code, stderr.String(), c.code, c.want)
		}
	}
}

func TestVersionIsTheReleaseInGoMod(t *testing.T) {
	if v := kubernetesVersion(); !strings.HasPrefix(v, "v1.") {
		t.Errorf("version %q", v)
	}
}
