// SPDX-License-Identifier: Apache-2.0

package licences_test

import (
	"encoding/json"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"karpenter/charts/licences"
)

// excepted are modules with a licence that asks for more, and why they may be in
// a program all the same.
func excepted() map[string]string {
	return map[string]string{
		"sandbox github.com/cyphar/filepath-securejoin": "MPL-2.0: Kubernetes' own dependency; unchanged, and in a program for tests that is not handed on",
	}
}

// part is what is read of a package that is linked into a program.
type part struct {
	ImportPath, Dir string
	Standard        bool
	Module          *struct {
		Path, Dir string
		Main      bool
	}
}

// linked returns the packages of others in programs.
func linked(t *testing.T, dir string, programs ...string) []part {
	t.Helper()
	list := exec.CommandContext(t.Context(), "go", append([]string{"list", "-deps", "-json=ImportPath,Dir,Standard,Module"}, programs...)...)
	list.Dir, list.Stderr = dir, os.Stderr
	out, err := list.Output()
	if err != nil {
		t.Fatalf("go list in %s: %v", dir, err)
	}
	var parts []part
	for d := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p part
		if err := d.Decode(&p); err == io.EOF {
			return parts
		} else if err != nil {
			t.Fatal(err)
		}
		if !p.Standard && p.Module != nil && !p.Module.Main && !strings.HasPrefix(p.Module.Path+"/", "karpenter/") {
			parts = append(parts, p)
		}
	}
}

// TestDependencies holds everything that is linked into the programs to
// permissive licences: those of each module, and of the folders in between down
// to each package.
func TestDependencies(t *testing.T) {
	unused := excepted()
	for _, tc := range []struct {
		name, dir string
		programs  []string
		modules   int
	}{
		{"controller", "../..", []string{"./cmd/karpenter", "./cmd/awssim"}, 60},
		{"sandbox", "../../sandbox", []string{"."}, 100},
	} {
		seen := map[string]bool{}
		of := map[string][]string{}
		for _, p := range linked(t, tc.dir, tc.programs...) {
			for dir := p.Dir; len(dir) >= len(p.Module.Dir); dir = filepath.Dir(dir) {
				if seen[dir] {
					break
				}
				seen[dir] = true
				ids, err := licences.Of(dir)
				if err != nil {
					t.Errorf("%s: module %s: %v", tc.name, p.Module.Path, err)
				}
				of[p.Module.Path] = append(of[p.Module.Path], ids...)
			}
		}
		if len(of) < tc.modules {
			t.Errorf("%s: only %d modules were looked at", tc.name, len(of))
		}
		for _, module := range slices.Sorted(maps.Keys(of)) {
			delete(unused, judge(t, tc.name, module, of[module]))
		}
	}
	for name := range unused {
		t.Errorf("%s needs no exception", name)
	}
}

// judge fails unless the licences are there and permissive, or the module is
// excepted; then it returns by which name.
func judge(t *testing.T, program, module string, ids []string) string {
	t.Helper()
	if len(ids) == 0 {
		t.Errorf("%s: module %s has no licence: nobody may copy it", program, module)
	}
	for _, id := range ids {
		if slices.Contains(licences.Permissive(), id) {
			continue
		}
		name := program + " " + module
		if _, ok := excepted()[name]; ok {
			return name
		}
		t.Errorf("%s: module %s is under %s, which is not one of %v: do without it, or say in excepted why it may stay", program, module, id, licences.Permissive())
	}
	return ""
}

func TestLicensesOfText(t *testing.T) {
	const bsd = "Redistribution and use in source and binary\nforms, with or without modification, are permitted provided that the following\n * conditions are met: 1. … "
	for _, tc := range []struct {
		text string
		want []string
	}{
		{"Copyright nobody. All rights reserved.", nil},
		{"", nil},
		{bsd, []string{"BSD-2-Clause"}},
		{bsd + "Neither the name of X may be used to endorse or promote products derived from\nthis software", []string{"BSD-3-Clause"}},
		{bsd + "3. All advertising materials mentioning features", []string{"BSD-4-Clause"}},
		{"GNU GENERAL PUBLIC LICENSE\n Version 3", []string{"GPL"}},
		{"GNU LESSER GENERAL PUBLIC LICENSE", []string{"LGPL"}},
		{"Licensed under the Apache License, Version 2.0, with the Commons Clause", []string{"Apache-2.0", "Commons-Clause"}},
		{"Mozilla Public License Version 2.0", []string{"MPL-2.0"}},
		{"Business Source License 1.1", []string{"BUSL"}},
	} {
		if diff := cmp.Diff(tc.want, licences.Text(tc.text)); diff != "" {
			t.Errorf("%q: -want +got:\n%s", tc.text, diff)
		}
	}
}

// TestFolders: a text we do not know, and none at all.
func TestFolders(t *testing.T) {
	dir := t.TempDir()
	if ids, err := licences.Of(dir); len(ids) > 0 || err != nil {
		t.Errorf("%v, %v", ids, err)
	}
	if err := os.WriteFile(filepath.Join(dir, "LICENSE"), []byte("Ask me first."), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := licences.Of(dir); err == nil || !strings.Contains(err.Error(), "LICENSE is no licence that is known here") {
		t.Errorf("error is %v", err)
	}
	if got, want := licences.Module("/cache", "github.com/BurntSushi/toml", "v1.0.0"), "/cache/github.com/!burnt!sushi/toml@v1.0.0"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}
