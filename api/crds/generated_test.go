// SPDX-License-Identifier: Apache-2.0

package crds_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"karpenter/api/crds"
)

// TestGeneratedIsUpToDate generates manifests and deep copies again and
// compares them with what is checked in.
func TestGeneratedIsUpToDate(t *testing.T) {
	if testing.Short() {
		t.Skip("runs the generator")
	}
	dir := t.TempDir()
	generate(t, "crd:crdVersions=v1", "paths=../...", "output:crd:dir="+dir)
	want, err := crds.Manifests()
	if err != nil {
		t.Fatal(err)
	}
	generated, err := filepath.Glob(filepath.Join(dir, "*.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	command := exec.CommandContext(t.Context(), "go", append([]string{"run", "./bounds"}, generated...)...)
	if out, err := command.CombinedOutput(); err != nil {
		t.Fatalf("%v: %v\n%s", command.Args, err, out)
	}
	if len(generated) != len(want) {
		t.Errorf("%d manifests generated, %d checked in", len(generated), len(want))
	}
	for _, path := range generated {
		compare(t, path, filepath.Base(path))
	}
	for _, group := range []string{"v1", "v1alpha1", "autoscaling/v1beta1", "kwok/v1alpha1", "aws/v1", "azure/v1alpha2", "azure/v1beta1"} {
		generate(t, "object:headerFile=header.txt", "paths=../"+group, "output:object:dir="+dir)
		const name = "zz_generated.deepcopy.go"
		compare(t, filepath.Join(dir, name), filepath.Join("..", group, name))
	}
}

func generate(t *testing.T, args ...string) {
	t.Helper()
	command := exec.CommandContext(t.Context(), "go", append([]string{"tool", "controller-gen"}, args...)...)
	if out, err := command.CombinedOutput(); err != nil {
		t.Fatalf("%v: %v\n%s", command.Args, err, out)
	}
}

func compare(t *testing.T, generated, checkedIn string) {
	t.Helper()
	got, err := os.ReadFile(generated)
	if err != nil {
		t.Fatal(err)
	}
	want, err := os.ReadFile(checkedIn)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != string(want) {
		t.Errorf("%s is not what the markers say; run: go generate ./api/crds", checkedIn)
	}
}
