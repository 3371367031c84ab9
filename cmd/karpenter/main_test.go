// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"os"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// TestMain makes the program a command of the scripts.
func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){
		"karpenter": func() {
			os.Exit(run(context.Background(), surroundings{os.Args[1:], os.LookupEnv, os.Stdin, os.Stdout, os.Stderr, "karpenter", nil}))
		},
		"kubectl-karpenter": func() {
			os.Exit(run(context.Background(), surroundings{os.Args[1:], os.LookupEnv, os.Stdin, os.Stdout, os.Stderr, "kubectl-karpenter", nil}))
		},
	})
}

func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{Dir: "testdata/script", RequireExplicitExec: true})
}
