// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"os/exec"
	"regexp"
	"testing"
)

// StartUI runs karpenter ui with the arguments until the test ends.
func StartUI(t testing.TB, args ...string) *Server {
	t.Helper()
	process := exec.Command(program(t, "karpenter"), append([]string{"ui"}, args...)...)
	out, err := process.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	return startServer(t, process, out, regexp.MustCompile(`^The page is at (http://\S+)`))
}
