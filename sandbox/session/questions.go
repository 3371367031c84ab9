// SPDX-License-Identifier: Apache-2.0

package session

import (
	"bytes"
	"context"
	"fmt"
	"os/exec"
	"strings"
)

// AskArguments are what commands of the controller's program need to read the cluster.
func (s *Session) AskArguments() []string { return []string{"--kubeconfig", s.Kubeconfig()} }

// Ask runs the controller's program beside the controller, such as "snapshot" with the AskArguments, and returns what it
// prints.
func (s *Session) Ask(ctx context.Context, args ...string) ([]byte, error) {
	var said bytes.Buffer
	cmd := exec.CommandContext(ctx, s.program, args...)
	cmd.Stderr = &said
	printed, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("%s: %w\n%s", strings.Join(cmd.Args, " "), err, strings.TrimSpace(said.String()))
	}
	return printed, nil
}
