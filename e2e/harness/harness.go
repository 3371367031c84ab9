// SPDX-License-Identifier: Apache-2.0

// Package harness runs a real Kubernetes control plane for end-to-end tests.
//
// A test package starts it at most once, on first use, and stops it at its
// end:
//
//	var shared = harness.NewShared(harness.Options{})
//
//	func TestMain(m *testing.M) { os.Exit(shared.Run(m)) }
//
//	func TestPool(t *testing.T) {
//		cluster := shared.Cluster(t)
//		cluster.Client.Create(t.Context(), pool)
//	}
//
// The control plane is the program bin/sandbox, which `make test` builds.
// Nothing is skipped when it is missing: the test fails and says so. All tests
// of a package share the cluster, so each uses names or namespaces of its own
// and removes what is cluster-wide.
package harness

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Options say what to start. The zero value is a control plane with the
// Karpenter CRDs and without kubelets.
type Options struct {
	// Kubelets also starts simulated kubelets, so that pods run.
	Kubelets bool
	// WithoutCRDs leaves the Karpenter CRDs out.
	WithoutCRDs bool
	// Args are more flags of `sandbox control-plane`.
	Args []string
	// Dir keeps the cluster's data after the tests. Empty means a temporary
	// folder that is removed.
	Dir string
	// StartTimeout bounds the wait for the control plane; 0 means 3 minutes.
	StartTimeout time.Duration
}

// Cluster is a running control plane. Its fields are safe for concurrent use.
type Cluster struct {
	// Config reaches the API server as an administrator, without client-side
	// rate limits.
	Config *rest.Config
	// Kubeconfig is the path of the same as a file, for kubectl.
	Kubeconfig string
	// Client reads and writes everything in Scheme, uncached.
	Client client.Client

	process   *exec.Cmd
	exited    chan struct{} // closed when the process is gone
	exitErr   error         // why; valid once exited is closed
	dir       string
	temporary bool
}

// Start starts a control plane and waits until it can be used.
func Start(ctx context.Context, options Options) (_ *Cluster, err error) {
	binary, err := sandboxBinary()
	if err != nil {
		return nil, err
	}
	c := &Cluster{dir: options.Dir, exited: make(chan struct{})}
	if c.dir == "" {
		c.temporary = true
		if c.dir, err = os.MkdirTemp("", "karpenter-e2e-"); err != nil {
			return nil, fmt.Errorf("make a data folder: %w", err)
		}
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, c.Stop())
		}
	}()
	timeout := options.StartTimeout
	if timeout == 0 {
		timeout = 3 * time.Minute
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	if err := c.launch(ctx, binary, options); err != nil {
		return nil, err
	}
	if err := c.connect(); err != nil {
		return nil, err
	}
	if !options.WithoutCRDs {
		if err := c.InstallCRDs(ctx); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// launch starts the process and waits for its ready line.
func (c *Cluster) launch(ctx context.Context, binary string, options Options) error {
	args := append([]string{"control-plane", "--data", c.dir, fmt.Sprintf("--kubelets=%t", options.Kubelets)}, options.Args...)
	c.process = exec.Command(binary, args...)
	c.process.SysProcAttr = dieWithParent()
	var stderr bytes.Buffer
	c.process.Stderr = &stderr
	stdout, err := c.process.StdoutPipe()
	if err != nil {
		return fmt.Errorf("start %s: %w", binary, err)
	}
	started := make(chan error)
	ready := make(chan string, 1)
	go func() {
		// The kernel ends the process with the thread that started it, so
		// that thread must live as long as this goroutine.
		runtime.LockOSThread()
		err := c.process.Start()
		started <- err
		if err != nil {
			return
		}
		readKubeconfig(stdout, ready)
		c.exitErr = c.process.Wait()
		close(c.exited)
	}()
	if err := <-started; err != nil {
		c.process = nil
		return fmt.Errorf("start %s: %w", binary, err)
	}
	select {
	case c.Kubeconfig = <-ready:
		return nil
	case <-c.exited:
		return fmt.Errorf("%s ended before it was ready: %w\n%s", binary, c.exitErr, tail(stderr.String(), 20))
	case <-ctx.Done():
		return fmt.Errorf("%s was not ready in time: %w; see %s/logs", binary, ctx.Err(), c.dir)
	}
}

// readKubeconfig sends the path in the ready line, then drains the output.
func readKubeconfig(stdout io.Reader, ready chan<- string) {
	lines := bufio.NewScanner(stdout)
	for lines.Scan() {
		if path, ok := strings.CutPrefix(lines.Text(), "ready kubeconfig="); ok {
			ready <- path
			break
		}
	}
	// What follows is of no interest, but must not block the process.
	_, _ = io.Copy(io.Discard, stdout)
}

// connect fills in Config and Client.
func (c *Cluster) connect() error {
	config, err := clientcmd.BuildConfigFromFlags("", c.Kubeconfig)
	if err != nil {
		return fmt.Errorf("read kubeconfig %s: %w", c.Kubeconfig, err)
	}
	config.QPS = -1
	c.Config = config
	scheme, err := Scheme()
	if err != nil {
		return err
	}
	if c.Client, err = client.New(config, client.Options{Scheme: scheme}); err != nil {
		return fmt.Errorf("connect to the control plane: %w", err)
	}
	return nil
}

// Stop ends the control plane and removes its data if it is temporary. It may
// be called once.
func (c *Cluster) Stop() error {
	var errs []error
	if c.process != nil {
		errs = append(errs, c.terminate())
	}
	if c.temporary {
		errs = append(errs, os.RemoveAll(c.dir))
	}
	return errors.Join(errs...)
}

// terminate asks the process to end, and makes it after a minute.
func (c *Cluster) terminate() error {
	if err := c.process.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("stop the control plane: %w", err)
	}
	select {
	case <-c.exited:
		return nil
	case <-time.After(time.Minute):
		_ = c.process.Process.Kill()
		<-c.exited
		return errors.New("the control plane ignored SIGTERM for a minute and was killed")
	}
}

// sandboxBinary returns the program: $SANDBOX_BIN, or bin/sandbox in the
// folder of the module.
func sandboxBinary() (string, error) {
	path := os.Getenv("SANDBOX_BIN")
	if path == "" {
		root, err := moduleRoot()
		if err != nil {
			return "", err
		}
		path = filepath.Join(root, "bin", "sandbox")
	}
	if _, err := os.Stat(path); err != nil {
		return "", fmt.Errorf("the control plane's program is missing: run `make test`, which builds it, or set SANDBOX_BIN: %w", err)
	}
	return path, nil
}

// moduleRoot returns the nearest folder above with a go.mod.
func moduleRoot() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("find the module: %w", err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir, nil
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return "", errors.New("find the module: no go.mod above the working folder")
		}
		dir = parent
	}
}

// tail returns the last n lines.
func tail(text string, n int) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}

// Shared is a cluster that the tests of a package have in common.
type Shared struct {
	options Options
	once    sync.Once
	cluster *Cluster
	err     error
}

// NewShared returns a cluster that is started on first use.
func NewShared(options Options) *Shared { return &Shared{options: options} }

// Cluster returns the cluster, starting it if need be. The test fails if it
// cannot be started.
func (s *Shared) Cluster(t testing.TB) *Cluster {
	t.Helper()
	s.once.Do(func() { s.cluster, s.err = Start(context.Background(), s.options) })
	if s.err != nil {
		t.Fatalf("start the control plane: %v", s.err)
	}
	return s.cluster
}

// Run runs the tests of the package, stops the cluster and returns the exit
// code for TestMain.
func (s *Shared) Run(m *testing.M) int {
	code := m.Run()
	if s.cluster == nil {
		return code
	}
	if err := s.cluster.Stop(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return max(code, 1)
	}
	return code
}
