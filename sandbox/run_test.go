// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"bytes"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"karpenter/sandbox/session"
)

// testPool is what is there at first.
const testPool = `apiVersion: karpenter.kwok.sh/v1alpha1
kind: KWOKNodeClass
metadata: {name: default}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: first, namespace: kube-system}
data: {edited: "no"}
`

// fakeAutoscaler links the test binary under names that make it an autoscaler and, beside it, a simulated AWS.
func fakeAutoscaler(t *testing.T) string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), fakeControllerName)
	for _, name := range []string{path, filepath.Join(filepath.Dir(path), session.SimulatorName)} {
		if err := os.Symlink(self, name); err != nil {
			t.Fatal(err)
		}
	}
	return path
}

func writeFile(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// sandboxRun is a running `sandbox run`.
type sandboxRun struct {
	*exec.Cmd
	lines *bufio.Scanner
	seen  []string
}

func startRun(t *testing.T, dir, manifests string, more ...string) *sandboxRun {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	r := &sandboxRun{Cmd: exec.Command(self, "run", "--data", dir, "--controller", fakeAutoscaler(t), "--crds", "../api/crds", "--manifests", manifests,
		"--node-ready-delay", "50ms", "--pod-start-delay", "50ms", "--pod-stop-delay", "50ms")}
	r.Args = append(r.Args, more...)
	r.Stderr = t.Output()
	out, err := r.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	r.lines = bufio.NewScanner(out)
	if err := r.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Process.Signal(syscall.SIGTERM); _ = r.Wait() })
	return r
}

// await returns the first line from here on that matches.
func (r *sandboxRun) await(t *testing.T, pattern string) string {
	t.Helper()
	want := regexp.MustCompile(pattern)
	end := time.AfterFunc(time.Minute, func() { _ = r.Process.Signal(syscall.SIGTERM) }) // which ends the lines
	defer end.Stop()
	for r.lines.Scan() {
		r.seen = append(r.seen, r.lines.Text())
		if want.MatchString(r.lines.Text()) {
			return r.lines.Text()
		}
	}
	t.Fatalf("no line matches %s:\n%s", pattern, strings.Join(r.seen, "\n"))
	return ""
}

// kubectl runs kubectl, which this binary is, against the cluster in dir.
func kubectl(t *testing.T, dir string, args ...string) string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(self, append([]string{"kubectl", "--kubeconfig", filepath.Join(dir, "kubeconfig")}, args...)...).CombinedOutput()
	if err != nil {
		t.Fatalf("kubectl %v: %v\n%s", args, err, out)
	}
	return string(out)
}

// TestRunShowsWhatHappens: a user's first minutes: the cluster comes up, grows and shrinks under kubectl; a controller
// that dies comes back; Ctrl-C leaves no process; running it again continues, and keeps what the user edited.
func TestRunShowsWhatHappens(t *testing.T) {
	t.Parallel()
	dir, manifests := t.TempDir(), writeFile(t, "first.yaml", testPool)
	r := startRun(t, dir, manifests)
	r.await(t, `^  kubeconfig   `+regexp.QuoteMeta(filepath.Join(dir, "kubeconfig")))
	r.await(t, `^  in a browser http://127\.0\.0\.1:\d+`)
	r.await(t, `^  .*kubectl --kubeconfig .*kubeconfig apply -f examples/inflate.yaml`)
	r.await(t, `^0 of 0 nodes ready, \$0.000/h; pods: none`)
	kubectl(t, dir, "create", "deployment", "inflate", "--image=none", "--replicas=3")
	r.await(t, `^1 of 1 nodes ready, \$0.500/h; pods: 3 running`)
	killController(t, dir)
	r.await(t, `^karpenter died \(signal: killed\), restarting`)
	kubectl(t, dir, "scale", "deployment", "inflate", "--replicas=0")
	r.await(t, `^0 of 0 nodes ready, \$0.000/h; pods: none`)
	kubectl(t, dir, "--namespace=kube-system", "patch", "configmap", "first", "-p", `{"data":{"edited":"yes"}}`)
	r.interrupt(t, dir)

	r = startRun(t, dir, manifests)
	r.await(t, `^0 of 0 nodes ready`)
	if got := kubectl(t, dir, "--namespace=kube-system", "get", "configmap", "first", "-o", "jsonpath={.data.edited}"); got != "yes" {
		t.Errorf("after a restart the user's edit reads %q", got)
	}
	kubectl(t, dir, "scale", "deployment", "inflate", "--replicas=1")
	r.await(t, `pods: 1 running`)
	r.interrupt(t, dir)
}

// TestRunWithoutACloud: the controller gets the instance types of KWOK, and no
// settings of AWS.
func TestRunWithoutACloud(t *testing.T) {
	t.Setenv("AWS_ENDPOINT_URL", "http://production")
	dir := t.TempDir()
	r := startRun(t, dir, writeFile(t, "first.yaml", testPool), "--provider", session.KWOK)
	r.await(t, `^0 of 0 nodes ready`)
	kubectl(t, dir, "create", "deployment", "inflate", "--image=none", "--replicas=1")
	r.await(t, `pods: 1 running`)
	r.interrupt(t, dir)
}

func killController(t *testing.T, dir string) {
	t.Helper()
	if err := syscall.Kill(pidOf(t, dir, "karpenter"), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
}

func pidOf(t *testing.T, dir, name string) int {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, "pids", name))
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		t.Fatal(err)
	}
	return pid
}

// interrupt is Ctrl-C; it checks that it ends well and that no process is left.
func (r *sandboxRun) interrupt(t *testing.T, dir string) {
	t.Helper()
	pids := map[string]int{}
	files, err := os.ReadDir(filepath.Join(dir, "pids"))
	if err != nil || len(files) < 6 {
		t.Fatalf("%d processes, %v", len(files), err)
	}
	for _, f := range files {
		pids[f.Name()] = pidOf(t, dir, f.Name())
	}
	if err := r.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	for r.lines.Scan() { // to its end
	}
	if err := r.Wait(); err != nil {
		t.Errorf("after SIGINT: %v", err)
	}
	for name, pid := range pids {
		if syscall.Kill(pid, 0) == nil {
			t.Errorf("%s (process %d) is left", name, pid)
		}
	}
}

// TestStressCommand: a small stress on the fake controller comes to its end and prints figures.
func TestStressCommand(t *testing.T) {
	t.Parallel()
	var out, stderr bytes.Buffer
	began := time.Now()
	code := run([]string{"sandbox", "stress", "--data", t.TempDir(), "--controller", fakeAutoscaler(t), "--crds", "../api/crds",
		"--manifests", writeFile(t, "pool.yaml", testPool+"---\n"+readyPool), "--scale", "45",
		"--node-ready-delay", "50ms", "--pod-start-delay", "50ms", "--pod-stop-delay", "50ms"}, &out, &stderr)
	if code != 0 {
		t.Fatalf("exit %d after %v\n%s\n%s", code, time.Since(began), out.String(), stderr.String())
	}
	wants := []string{"all 45 pods running, after", "all nodes gone, after", "1  fake.large spot at $0.5000/h", "at most $0.500/h at a time", "9  requests to the API server, 0 of them rejected"}
	if runtime.GOOS == "linux" {
		wants = append(wants, "of memory at most")
	}
	for _, want := range wants {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}
}

// TestDisruptCommand: one part, of one node, on the fake controller comes to its end, prints figures and keeps them; the
// fake's answer about prices is in them.
func TestDisruptCommand(t *testing.T) {
	t.Parallel()
	var out, stderr bytes.Buffer
	data, results := t.TempDir(), filepath.Join(t.TempDir(), "figures.json")
	code := run([]string{"sandbox", "disrupt", "--data", data, "--controller", fakeAutoscaler(t), "--crds", "../api/crds",
		"--parts", "empty", "--emptied", "1", "--rest", "500ms", "--within", "2m", "--capacity-type", "spot", "--json", results,
		"--node-ready-delay", "50ms", "--pod-start-delay", "50ms", "--pod-stop-delay", "50ms"}, &out, &stderr)
	if code != 0 {
		t.Fatalf("exit %d\n%s\n%s", code, out.String(), stderr.String())
	}
	for _, want := range []string{"== part empty, budget 100%", "all at rest for 500ms, after", "all nodes gone, after", "| nodes, then", "| 1, 0", "| 25.00 %"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}
	if text, err := os.ReadFile(results); err != nil || !strings.Contains(string(text), `"Removed": 1`) {
		t.Errorf("%v: %s", err, text)
	}
	if text, err := os.ReadFile(filepath.Join(data, "empty", "before.txt")); err != nil || string(text) != fakeSituation {
		t.Errorf("%v: %s", err, text)
	}
}

// readyPool is a NodePool, which the fake controller makes ready.
const readyPool = `apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: default}
spec:
  limits: {cpu: 10}
  template:
    spec:
      nodeClassRef: {group: karpenter.kwok.sh, kind: KWOKNodeClass, name: default}
      requirements: []
`

// TestDemoRejectsAUsedFolder, before anything is started.
func TestDemoRejectsAUsedFolder(t *testing.T) {
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "etcd"), 0o700); err != nil {
		t.Fatal(err)
	}
	var stderr bytes.Buffer
	code := run([]string{"sandbox", "demo", "--data", dir, "--controller", fakeAutoscaler(t)}, io.Discard, &stderr)
	if code != 1 || !strings.Contains(stderr.String(), "holds a cluster already") {
		t.Errorf("exit %d, %s", code, stderr.String())
	}
}
