// SPDX-License-Identifier: Apache-2.0

package sim_test

import (
	"os"
	"path/filepath"
	"testing"

	"karpenter/sim/script"
	"karpenter/sim/trial"
)

// TestFound holds trials of the scripts that fresh seeds found and that once broke a law.
func TestFound(t *testing.T) {
	server, err := trial.NewServer()
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob("testdata/found/*.script")
	if err != nil || len(files) == 0 {
		t.Fatalf("%d scripts: %v", len(files), err)
	}
	for _, path := range files {
		t.Run(filepath.Base(path), func(t *testing.T) {
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			s, err := script.Parse(string(text))
			if err != nil {
				t.Fatal(err)
			}
			if v := judge(t, server, s); v.Err != nil {
				t.Error(v.Err)
			}
		})
	}
}
