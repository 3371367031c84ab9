// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"os"
	"slices"
	"testing"
	"time"
)

// TestSBOM describes the test's own program.
func TestSBOM(t *testing.T) {
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := run(program, "../..", time.Unix(0, 1), &out); err != nil {
		t.Fatal(err)
	}
	var got document
	if err := json.Unmarshal(out.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, p := range got.Packages {
		if seen[p.SPDXID] {
			t.Errorf("%s is there twice", p.SPDXID)
		}
		seen[p.SPDXID] = true
		if p.LicenseConcluded == "NOASSERTION" {
			t.Errorf("%s %s has no licence", p.Name, p.VersionInfo)
		}
	}
	if !slices.ContainsFunc(got.Packages, func(p component) bool { return p.Name == "stdlib" && p.VersionInfo != "" }) {
		t.Errorf("the standard library is missing:\n%s", out.String())
	}
	for _, r := range got.Relationships {
		if !seen[r.Related] {
			t.Errorf("%v is about nothing", r)
		}
	}
	if err := run("main.go", "../..", time.Now(), &out); err == nil {
		t.Error("a text is taken for a program")
	}
}
