// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"io"
	"io/fs"
	"log"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

// TestReleaseIsReproducible builds the release for this machine's architecture
// from the source and from a copy of it in another folder: all checksums, that of
// the image among them, are the same. It then pushes the release to a registry
// and runs the program from the image's own file system.
func TestReleaseIsReproducible(t *testing.T) {
	t.Setenv("GOFLAGS", "-buildvcs=false") // the copy is no repository
	platform := "linux/" + runtime.GOARCH
	first, second := t.TempDir(), t.TempDir()
	var said bytes.Buffer
	if err := build(t.Context(), "..", first, []string{platform}, &said); err != nil {
		t.Fatal(err)
	}
	elsewhere := filepath.Join(t.TempDir(), "another", "place")
	copySource(t, elsewhere)
	if err := build(t.Context(), elsewhere, second, []string{platform}, &said); err != nil {
		t.Fatal(err)
	}
	if a, b := text(t, first, "SHA256SUMS"), text(t, second, "SHA256SUMS"); a != b || strings.Count(a, "\n") != 4 {
		t.Errorf("checksums differ, or are not those of a binary, two charts and the image:\n%s\n%s", a, b)
	}
	for _, file := range files(t, first) {
		if !bytes.Equal([]byte(text(t, first, file)), []byte(text(t, second, file))) {
			t.Errorf("%s differs", file)
		}
	}

	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	defer server.Close()
	at := strings.TrimPrefix(server.URL, "http://")
	if err := push(t.Context(), first, at, true, &said); err != nil {
		t.Fatal(err)
	}
	version, err := versionOf("..")
	if err != nil {
		t.Fatal(err)
	}
	image := at + "/karpenter/controller:" + version
	if pulled := digestOf(t, image); pulled != strings.TrimSpace(text(t, first, "image.digest")) {
		t.Errorf("the registry has %s, want %s", pulled, text(t, first, "image.digest"))
	}
	root := filepath.Join(t.TempDir(), "root")
	if err := unpack(t.Context(), image, true, root); err != nil {
		t.Fatal(err)
	}
	if got, want := files(t, root), []string{certs, "karpenter"}; !slices.Equal(got, want) {
		t.Errorf("the image has %v, want %v", got, want)
	}
	if n := strings.Count(text(t, root, certs), "BEGIN CERTIFICATE"); n < 100 {
		t.Errorf("the image trusts only %d authorities", n)
	}
	if got := runIn(t, root, "version"); !strings.HasPrefix(got, "karpenter "+version+" ") {
		t.Errorf("the program in the image says %q, want version %s", got, version)
	}
}

// TestImageConfig checks what runs in the image, and as whom.
func TestImageConfig(t *testing.T) {
	program := filepath.Join(t.TempDir(), "karpenter")
	if err := os.WriteFile(program, []byte("program"), 0o755); err != nil {
		t.Fatal(err)
	}
	index, err := imageOf("1.2.3", map[string]string{"linux/amd64": program, "linux/arm64": program, "darwin/arm64": program})
	if err != nil {
		t.Fatal(err)
	}
	manifest, err := index.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	var platforms []string
	for _, m := range manifest.Manifests {
		platforms = append(platforms, m.Platform.String())
		image, err := index.Image(m.Digest)
		if err != nil {
			t.Fatal(err)
		}
		config, err := image.ConfigFile()
		if err != nil {
			t.Fatal(err)
		}
		if config.Config.User != "65532:65532" || !slices.Equal(config.Config.Entrypoint, []string{"/karpenter"}) || config.Architecture != m.Platform.Architecture {
			t.Errorf("image for %s: %+v", m.Platform, config)
		}
		if !config.Created.Equal(v1.Time{}.Time) && config.Created.Unix() != 0 {
			t.Errorf("image for %s was created at %s, want the Unix epoch", m.Platform, config.Created)
		}
	}
	if want := []string{"linux/amd64", "linux/arm64"}; !slices.Equal(platforms, want) {
		t.Errorf("the image is for %v, want %v", platforms, want)
	}
}

// TestChartPackages has Helm pull the charts from a registry and read them.
func TestChartPackages(t *testing.T) {
	helm, err := filepath.Abs("../bin/helm")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(helm); err != nil {
		t.Fatalf("this test needs Helm; run `make bin/helm`: %v", err)
	}
	folder := t.TempDir()
	if err := build(t.Context(), "..", folder, nil, os.Stderr); err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	defer server.Close()
	at := strings.TrimPrefix(server.URL, "http://")
	if err := push(t.Context(), folder, at, true, os.Stderr); err != nil {
		t.Fatal(err)
	}
	version, err := versionOf("..")
	if err != nil {
		t.Fatal(err)
	}
	for chart, want := range map[string]string{"karpenter": "karpenter/controller:" + version, "karpenter-crd": "nodepools.karpenter.sh"} {
		c := exec.CommandContext(t.Context(), helm, "template", "release", "--kube-version", "1.36.0", "oci://"+at+"/charts/"+chart, "--plain-http", "--version", version, "--set", "settings.clusterName=prod")
		c.Env = append(os.Environ(), "HOME="+t.TempDir())
		out, err := c.CombinedOutput()
		if err != nil || !strings.Contains(string(out), want) {
			t.Errorf("helm template of the chart %s: %v, want %q in\n%.2000s", chart, err, want, out)
		}
		local, err := exec.CommandContext(t.Context(), helm, "template", "release", "--kube-version", "1.36.0", "../charts/"+chart, "--set", "settings.clusterName=prod").CombinedOutput()
		if i := bytes.Index(out, []byte("---\n")); err != nil || i < 0 || string(out[i:]) != string(local) {
			t.Errorf("the chart %s from the registry renders differently: %v", chart, err)
		}
	}
}

// TestExtractStaysInFolder checks that an archive cannot write outside the folder.
func TestExtractStaysInFolder(t *testing.T) {
	evil, err := archive([]file{{"../outside", 0o644, []byte("x")}})
	if err != nil {
		t.Fatal(err)
	}
	folder := filepath.Join(t.TempDir(), "inside")
	if err := os.Mkdir(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := extract(bytes.NewReader(evil), folder); err == nil {
		t.Error("an archive with ../outside was extracted")
	}
	if _, err := os.Stat(filepath.Join(folder, "../outside")); err == nil {
		t.Error("the archive wrote outside its folder")
	}
}

// runIn runs the program of an unpacked image as the image's user and, if this
// test may, with nothing but the image's file system.
func runIn(t *testing.T, root string, args ...string) string {
	t.Helper()
	c := exec.CommandContext(t.Context(), "/karpenter", args...)
	c.Dir = "/"
	if os.Getuid() == 0 {
		c.SysProcAttr = &syscall.SysProcAttr{Chroot: root, Credential: &syscall.Credential{Uid: 65532, Gid: 65532}}
	} else {
		t.Log("not root: the program runs as this user, and sees this machine's files")
		c.Path, c.Dir = filepath.Join(root, "karpenter"), root
	}
	out, err := c.CombinedOutput()
	if err != nil {
		t.Fatalf("run /karpenter of the image: %v\n%s", err, out)
	}
	return string(out)
}

func digestOf(t *testing.T, image string) string {
	t.Helper()
	at, err := name.ParseReference(image, name.Insecure)
	if err != nil {
		t.Fatal(err)
	}
	found, err := remote.Head(at)
	if err != nil {
		t.Fatal(err)
	}
	return found.Digest.String()
}

func text(t *testing.T, parts ...string) string {
	t.Helper()
	out, err := os.ReadFile(filepath.Join(parts...))
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

func files(t *testing.T, folder string) []string {
	t.Helper()
	var out []string
	err := fs.WalkDir(os.DirFS(folder), ".", func(path string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			out = append(out, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// copySource copies the source of the program to a new folder, without what was
// built and without hidden folders.
func copySource(t *testing.T, to string) {
	t.Helper()
	err := filepath.WalkDir("..", func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		relative, err := filepath.Rel("..", path)
		if err != nil {
			return err
		}
		if entry.IsDir() {
			if relative == "bin" || relative != "." && strings.HasPrefix(entry.Name(), ".") {
				return filepath.SkipDir
			}
			return os.MkdirAll(filepath.Join(to, relative), 0o755)
		}
		if !entry.Type().IsRegular() {
			return nil
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(to, relative), data, 0o644)
	})
	if err != nil {
		t.Fatal(err)
	}
}
