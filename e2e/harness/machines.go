package harness

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"
)

// StartMachines has the instances of an emulator of AWS boot into the cluster as
// their user data says, until the test ends: bin/awssim --endpoint. The cluster
// needs Kubelets for their pods to run.
func (c *Cluster) StartMachines(t testing.TB, endpoint, region, clusterName string) {
	t.Helper()
	root, err := moduleRoot()
	if err != nil {
		t.Fatal(err)
	}
	binary := filepath.Join(root, "bin", "awssim")
	if _, err := os.Stat(binary); err != nil {
		t.Fatalf("%v: `make test` builds it", err)
	}
	log := &lockedBuffer{}
	process := exec.Command(binary, "--endpoint", endpoint, "--kubeconfig", c.Kubeconfig, "--region", region, "--cluster-name", clusterName, "--join-delay", "1s")
	process.Stdout, process.Stderr = log, log
	process.SysProcAttr = dieWithParent()
	started, exited := make(chan error), make(chan struct{})
	go func() {
		runtime.LockOSThread() // see launch
		err := process.Start()
		started <- err
		if err == nil {
			_ = process.Wait()
			close(exited)
		}
	}()
	if err := <-started; err != nil {
		t.Fatalf("start %s: %v", binary, err)
	}
	t.Cleanup(func() {
		_ = process.Process.Signal(syscall.SIGTERM)
		<-exited
		if t.Failed() {
			t.Logf("the end of awssim's log:\n%s", tail(log.String(), 20))
		}
	})
}
