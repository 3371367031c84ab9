package harness

import (
	"bufio"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"syscall"
	"testing"
	"time"
)

// Moto is a running moto, a third-party emulator of AWS, for one test.
type Moto struct {
	// URL is where it answers for all services.
	URL string

	process *exec.Cmd
	exited  chan struct{}
}

// StartMoto runs bin/moto, as e2e/moto/install.sh makes it, on a free loopback
// port until the test ends. What it emulates is empty but for a default VPC
// with subnets and the AMIs it ships.
func StartMoto(t testing.TB) *Moto {
	t.Helper()
	root, err := moduleRoot()
	if err != nil {
		t.Fatal(err)
	}
	binary := filepath.Join(root, "bin", "moto", "bin", "moto_server")
	if _, err := os.Stat(binary); err != nil {
		t.Fatalf("moto is not installed: run `make test` or e2e/moto/install.sh bin/moto: %v", err)
	}
	m := &Moto{process: exec.Command(binary, "-H", "127.0.0.1", "-p", "0"), exited: make(chan struct{})}
	m.process.SysProcAttr = dieWithParent()
	m.process.Env = append(os.Environ(), "PYTHONUNBUFFERED=1", "NO_COLOR=1")
	output, err := m.process.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	log := &lockedBuffer{}
	started, ready := make(chan error), make(chan string, 1)
	go func() {
		runtime.LockOSThread() // see launch
		err := m.process.Start()
		started <- err
		if err == nil {
			readAddress(io.TeeReader(output, log), ready)
			_ = m.process.Wait()
			close(m.exited)
		}
	}()
	if err := <-started; err != nil {
		t.Fatalf("start %s: %v", binary, err)
	}
	t.Cleanup(m.Stop)
	select {
	case m.URL = <-ready:
	case <-m.exited:
		t.Fatalf("moto ended before it answered:\n%s", tail(log.String(), 20))
	case <-time.After(2 * time.Minute):
		t.Fatalf("moto did not answer in 2 minutes:\n%s", tail(log.String(), 20))
	}
	return m
}

// Stop ends the process and waits until it is gone.
func (m *Moto) Stop() {
	_ = m.process.Process.Signal(syscall.SIGTERM)
	<-m.exited
}

// Environment is what makes the SDK's clients, those of bin/karpenter too, talk
// to it, as NAME=value.
func (m *Moto) Environment() []string {
	return []string{
		"AWS_ENDPOINT_URL=" + m.URL, "AWS_REGION=us-east-1",
		"AWS_ACCESS_KEY_ID=test", "AWS_SECRET_ACCESS_KEY=test", "AWS_EC2_METADATA_DISABLED=true",
	}
}

// Reset makes it forget everything that it was told.
func (m *Moto) Reset(t testing.TB) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, m.URL+"/moto-api/reset", nil)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatalf("reset moto: %v", err)
	}
	_ = answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		t.Fatalf("reset moto: %s", answer.Status)
	}
}

// readAddress sends the address that the output tells, then drains it.
func readAddress(output io.Reader, ready chan<- string) {
	address := regexp.MustCompile(`Running on (http://127\.0\.0\.1:\d+)`)
	lines := bufio.NewScanner(output)
	for lines.Scan() {
		if found := address.FindStringSubmatch(lines.Text()); found != nil {
			ready <- found[1]
			break
		}
	}
	_, _ = io.Copy(io.Discard, output)
}
