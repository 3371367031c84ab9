// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"os/exec"
	"regexp"
	"testing"
)

// StartAWS runs bin/awssim, an AWS account in memory, until the test ends. Its
// instances join the cluster. The arguments are flags of awssim.
func (c *Cluster) StartAWS(t testing.TB, args ...string) *Server {
	t.Helper()
	return c.awssim(t, args)
}

// BootInstances has what another emulator runs join the cluster, until the test
// ends.
func (c *Cluster) BootInstances(t testing.TB, emulator *Server, args ...string) {
	t.Helper()
	c.awssim(t, append([]string{"--endpoint", emulator.URL}, args...))
}

func (c *Cluster) awssim(t testing.TB, args []string) *Server {
	t.Helper()
	process := exec.Command(program(t, "awssim"), append([]string{"--kubeconfig", c.Kubeconfig}, args...)...)
	output, err := process.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	return startServer(t, process, output, regexp.MustCompile(`^ready url=(\S+)`))
}
