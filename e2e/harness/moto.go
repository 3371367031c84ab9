// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"
)

// Moto is a running moto, a third-party emulator of AWS, for one test.
type Moto struct{ *Server }

// StartMoto runs bin/moto, as the Makefile makes it, on a free loopback
// port until the test ends. What it emulates is empty but for a default VPC
// with subnets and the AMIs it ships.
func StartMoto(t testing.TB) Moto {
	t.Helper()
	process := exec.Command(program(t, filepath.Join("moto", "bin", "moto_server")), "-H", "127.0.0.1", "-p", "0")
	process.Env = append(os.Environ(), "PYTHONUNBUFFERED=1", "NO_COLOR=1")
	output, err := process.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	return Moto{startServer(t, process, output, regexp.MustCompile(`Running on (http://127\.0\.0\.1:\d+)`))}
}

// Reset makes it forget everything that it was told.
func (m Moto) Reset(t testing.TB) {
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

// program returns the path of one that is built or installed beneath bin.
func program(t testing.TB, path string) string {
	t.Helper()
	root, err := moduleRoot()
	if err != nil {
		t.Fatal(err)
	}
	path = filepath.Join(root, "bin", path)
	if _, err := os.Stat(path); err != nil {
		t.Fatalf("%v: `make test` puts it there", err)
	}
	return path
}
