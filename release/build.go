// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
)

// charts are the Helm charts of a release.
var charts = [...]string{"karpenter", "karpenter-crd"}

// build compiles the program for each platform and writes binaries, charts, the
// image and checksums to a folder.
func build(ctx context.Context, source, folder string, platforms []string, out io.Writer) error {
	version, err := versionOf(source)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	binaries := map[string]string{} // by platform
	var names []string
	for _, platform := range platforms {
		name := "karpenter-" + strings.ReplaceAll(platform, "/", "-")
		if err := compile(ctx, source, platform, filepath.Join(folder, name)); err != nil {
			return err
		}
		binaries[platform] = filepath.Join(folder, name)
		names = append(names, name)
		fmt.Fprintln(out, "built", name)
	}
	for _, chart := range charts {
		name := fmt.Sprintf("%s-%s.tgz", chart, version)
		if err := packageChart(filepath.Join(source, "charts", chart), filepath.Join(folder, name)); err != nil {
			return err
		}
		names = append(names, name)
	}
	index, err := imageOf(version, binaries)
	if err != nil {
		return err
	}
	digest, err := writeLayout(filepath.Join(folder, "image"), index)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "built the image of version %s, %s\n", version, digest)
	if err := os.WriteFile(filepath.Join(folder, "image.digest"), []byte(digest+"\n"), 0o644); err != nil {
		return err
	}
	return checksums(folder, append(names, "image.digest"))
}

// versionOf returns the version of the chart. A test in charts/ keeps it equal to
// the version of the program.
func versionOf(source string) (string, error) {
	text, err := os.ReadFile(filepath.Join(source, "charts", "karpenter", "Chart.yaml"))
	if err != nil {
		return "", err
	}
	var chart struct{ AppVersion string }
	if err := yaml.Unmarshal(text, &chart); err != nil || chart.AppVersion == "" {
		return "", fmt.Errorf("charts/karpenter/Chart.yaml has no appVersion: %w", err)
	}
	return chart.AppVersion, nil
}

// compile builds the program so that neither the folder nor the machine leaves a
// trace in it. The commit is in it if the source is a Git repository.
func compile(ctx context.Context, source, platform, to string) error {
	system, arch, ok := strings.Cut(platform, "/")
	if !ok {
		return fmt.Errorf("platform %q is not of the form linux/amd64", platform)
	}
	to, err := filepath.Abs(to)
	if err != nil {
		return err
	}
	c := exec.CommandContext(ctx, "go", "build", "-trimpath", "-ldflags", "-s -w", "-o", to, "./cmd/karpenter")
	c.Dir = source
	c.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS="+system, "GOARCH="+arch, "GOAMD64=v1", "GOARM64=v8.0")
	if text, err := c.CombinedOutput(); err != nil {
		return fmt.Errorf("build for %s: %w\n%s", platform, err, text)
	}
	return nil
}

// checksums writes SHA256SUMS, which sha256sum --check reads.
func checksums(folder string, names []string) error {
	slices.Sort(names)
	var out strings.Builder
	for _, name := range names {
		f, err := os.Open(filepath.Join(folder, name))
		if err != nil {
			return err
		}
		sum := sha256.New()
		_, err = io.Copy(sum, f)
		f.Close()
		if err != nil {
			return fmt.Errorf("checksum of %s: %w", name, err)
		}
		fmt.Fprintf(&out, "%s  %s\n", hex.EncodeToString(sum.Sum(nil)), name)
	}
	return os.WriteFile(filepath.Join(folder, "SHA256SUMS"), []byte(out.String()), 0o644)
}
