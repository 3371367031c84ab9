// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"context"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

// StartPrometheus runs bin/prometheus with a configuration, YAML, until the test
// ends. What it has stored is gone then. Names of files in the configuration are absolute.
func StartPrometheus(t testing.TB, config string) *Server {
	t.Helper()
	path := filepath.Join(t.TempDir(), "prometheus.yml")
	if err := os.WriteFile(path, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	process := exec.Command(program(t, "prometheus"), "--config.file="+path, "--storage.tsdb.path="+t.TempDir(), "--web.listen-address=127.0.0.1:0")
	log, err := process.StderrPipe() // it prints nothing else
	if err != nil {
		t.Fatal(err)
	}
	s := startServer(t, process, log, regexp.MustCompile(`msg="Listening on".* address=(\S+)`))
	s.URL = "http://" + s.URL
	err = wait.PollUntilContextTimeout(t.Context(), 100*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, s.URL+"/-/ready", nil)
		if err != nil {
			return false, err
		}
		answer, err := http.DefaultClient.Do(request)
		if err != nil {
			return false, nil
		}
		return answer.StatusCode == http.StatusOK, answer.Body.Close()
	})
	if err != nil {
		t.Fatalf("Prometheus is not ready: %v", err)
	}
	return s
}
