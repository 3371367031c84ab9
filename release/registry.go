// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"sigs.k8s.io/yaml"
)

// Media types by which Helm knows charts.
const (
	chartConfig  = types.MediaType("application/vnd.cncf.helm.config.v1+json")
	chartContent = types.MediaType("application/vnd.cncf.helm.chart.content.v1.tar+gzip")
)

// push copies the image to REGISTRY/karpenter/controller and the charts to
// REGISTRY/charts, each under the version of the release. Credentials are those
// of docker login.
func push(ctx context.Context, folder, to string, plain bool, out io.Writer) error {
	with := []remote.Option{remote.WithContext(ctx), remote.WithAuthFromKeychain(authn.DefaultKeychain)}
	found, err := filepath.Glob(filepath.Join(folder, "karpenter-crd-*.tgz"))
	if err != nil || len(found) != 1 {
		return fmt.Errorf("%s has %d packages of the chart karpenter-crd, want one: build into an empty folder (%w)", folder, len(found), err)
	}
	version := strings.TrimSuffix(strings.TrimPrefix(filepath.Base(found[0]), "karpenter-crd-"), ".tgz")
	index, err := imageIn(filepath.Join(folder, "image"))
	if err != nil {
		return err
	}
	at, err := reference(to+"/karpenter/controller:"+version, plain)
	if err != nil {
		return err
	}
	if err := remote.WriteIndex(at, index, with...); err != nil {
		return fmt.Errorf("push the image: %w", err)
	}
	digest, err := index.Digest()
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "%s@%s\n", at, digest)
	for _, chart := range charts {
		image, err := chartImage(filepath.Join(folder, fmt.Sprintf("%s-%s.tgz", chart, version)))
		if err != nil {
			return err
		}
		at, err := reference(to+"/charts/"+chart+":"+version, plain)
		if err != nil {
			return err
		}
		if err := remote.Write(at, image, with...); err != nil {
			return fmt.Errorf("push the chart %s: %w", chart, err)
		}
		fmt.Fprintf(out, "oci://%s/charts/%s --version %s\n", to, chart, version)
	}
	return nil
}

func reference(text string, plain bool) (name.Reference, error) {
	if plain {
		return name.ParseReference(text, name.Insecure)
	}
	return name.ParseReference(text)
}

// imageIn reads the layout that build wrote.
func imageIn(folder string) (v1.ImageIndex, error) {
	path, err := layout.FromPath(folder)
	if err != nil {
		return nil, fmt.Errorf("read the image in %s: %w", folder, err)
	}
	all, err := path.ImageIndex()
	if err != nil {
		return nil, err
	}
	manifest, err := all.IndexManifest()
	if err != nil {
		return nil, err
	}
	if len(manifest.Manifests) != 1 {
		return nil, fmt.Errorf("%s has %d images, want one", folder, len(manifest.Manifests))
	}
	return all.ImageIndex(manifest.Manifests[0].Digest)
}

// chartImage wraps the package of a chart as Helm stores it in registries.
func chartImage(archive string) (v1.Image, error) {
	text, err := os.ReadFile(archive)
	if err != nil {
		return nil, err
	}
	config, err := chartMetadata(archive)
	if err != nil {
		return nil, err
	}
	image := mutate.MediaType(empty.Image, types.OCIManifestSchema1)
	image, err = mutate.Append(image, mutate.Addendum{Layer: static.NewLayer(text, chartContent)})
	if err != nil {
		return nil, err
	}
	return &withConfig{image, config}, nil
}

// chartMetadata returns the Chart.yaml of a package as JSON.
func chartMetadata(archive string) ([]byte, error) {
	folder, err := os.MkdirTemp("", "chart-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(folder)
	if err := extractZip(archive, folder); err != nil {
		return nil, err
	}
	found, err := filepath.Glob(filepath.Join(folder, "*", "Chart.yaml"))
	if err != nil || len(found) != 1 {
		return nil, fmt.Errorf("%s has %d files Chart.yaml: %w", archive, len(found), err)
	}
	text, err := os.ReadFile(found[0])
	if err != nil {
		return nil, err
	}
	return yaml.YAMLToJSON(text)
}

// withConfig is an image whose configuration is any JSON.
type withConfig struct {
	v1.Image
	config []byte
}

func (w *withConfig) RawConfigFile() ([]byte, error) { return w.config, nil }

func (w *withConfig) ConfigName() (v1.Hash, error) {
	h, _, err := v1.SHA256(strings.NewReader(string(w.config)))
	return h, err
}

func (w *withConfig) Manifest() (*v1.Manifest, error) {
	m, err := w.Image.Manifest()
	if err != nil {
		return nil, err
	}
	m = m.DeepCopy()
	digest, err := w.ConfigName()
	m.Config = v1.Descriptor{MediaType: chartConfig, Digest: digest, Size: int64(len(w.config))}
	return m, err
}

func (w *withConfig) RawManifest() ([]byte, error) {
	m, err := w.Manifest()
	if err != nil {
		return nil, err
	}
	return json.Marshal(m)
}

func (w *withConfig) Digest() (v1.Hash, error) {
	text, err := w.RawManifest()
	if err != nil {
		return v1.Hash{}, err
	}
	h, _, err := v1.SHA256(strings.NewReader(string(text)))
	return h, err
}

func (w *withConfig) Size() (int64, error) {
	text, err := w.RawManifest()
	return int64(len(text)), err
}

// serve starts a registry on this machine, pushes the release into it, prints its
// address, and serves it until it is interrupted.
func serve(ctx context.Context, folder string, out io.Writer) error {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	server := &http.Server{Handler: registry.New(registry.Logger(log.New(io.Discard, "", 0)))}
	failed := make(chan error, 1)
	go func() { failed <- server.Serve(l) }()
	defer server.Close()
	if err := push(ctx, folder, l.Addr().String(), true, out); err != nil {
		return err
	}
	fmt.Fprintln(out, "serving", l.Addr())
	select {
	case <-ctx.Done():
		return nil
	case err := <-failed:
		return err
	}
}

// unpack writes the file system of an image for this machine to a new folder.
func unpack(ctx context.Context, image string, plain bool, folder string) error {
	at, err := reference(image, plain)
	if err != nil {
		return err
	}
	found, err := remote.Image(at, remote.WithContext(ctx), remote.WithAuthFromKeychain(authn.DefaultKeychain),
		remote.WithPlatform(v1.Platform{OS: "linux", Architecture: runtime.GOARCH}))
	if err != nil {
		return fmt.Errorf("pull %s: %w", image, err)
	}
	if err := os.Mkdir(folder, 0o755); err != nil {
		return err
	}
	files := mutate.Extract(found)
	defer files.Close()
	return extract(files, folder)
}
