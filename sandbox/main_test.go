// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"testing"

	"karpenter/sandbox/component"
	"karpenter/sandbox/session"
)

// TestMain lets the test binary be the multi-call binary: the supervisor under test starts this executable again, with
// a subcommand as first argument, which `go test` itself never does.
func TestMain(m *testing.M) {
	if filepath.Base(os.Args[0]) == fakeControllerName {
		os.Exit(runFakeController(os.Args[1:]))
	}
	if filepath.Base(os.Args[0]) == session.SimulatorName {
		os.Exit(runFakeSimulator(os.Args[1:]))
	}
	if len(os.Args) > 1 && isSubcommand(os.Args[1]) {
		os.Exit(run(os.Args, os.Stdout, os.Stderr))
	}
	os.Exit(m.Run())
}

func isSubcommand(name string) bool {
	for _, c := range commands() {
		if c.name == name {
			return true
		}
	}
	return component.Known(name)
}
