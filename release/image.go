// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/pem"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"golang.org/x/crypto/x509roots/fallback/bundle"
)

const (
	user     = "65532:65532" // nobody that a machine knows
	certs    = "etc/ssl/certs/ca-certificates.crt"
	licences = "Apache-2.0"
)

// imageOf returns the controller's image for the Linux platforms among the
// binaries. An image has nothing but the program and the certificate authorities
// that Mozilla trusts without conditions.
func imageOf(version string, binaries map[string]string) (v1.ImageIndex, error) {
	authorities, err := layerOf([]file{
		{"etc/", 0o755, nil}, {"etc/ssl/", 0o755, nil}, {"etc/ssl/certs/", 0o755, nil},
		{certs, 0o444, certificates()},
	})
	if err != nil {
		return nil, err
	}
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for _, platform := range slices.Sorted(maps.Keys(binaries)) {
		system, arch, _ := strings.Cut(platform, "/")
		if system != "linux" {
			continue
		}
		program, err := os.ReadFile(binaries[platform])
		if err != nil {
			return nil, err
		}
		layer, err := layerOf([]file{{"karpenter", 0o555, program}})
		if err != nil {
			return nil, err
		}
		image, err := oneImage(version, arch, authorities, layer)
		if err != nil {
			return nil, fmt.Errorf("image for %s: %w", platform, err)
		}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{
			Add:        image,
			Descriptor: v1.Descriptor{MediaType: types.OCIManifestSchema1, Platform: &v1.Platform{OS: system, Architecture: arch}},
		})
	}
	return index, nil
}

func oneImage(version, arch string, layers ...v1.Layer) (v1.Image, error) {
	image := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	image, err := mutate.AppendLayers(image, layers...)
	if err != nil {
		return nil, err
	}
	config, err := image.ConfigFile()
	if err != nil {
		return nil, err
	}
	config = config.DeepCopy()
	config.OS, config.Architecture, config.Created = "linux", arch, v1.Time{Time: time.Unix(0, 0).UTC()}
	config.Config = v1.Config{
		User: user, Entrypoint: []string{"/karpenter"}, WorkingDir: "/",
		Labels: map[string]string{
			"org.opencontainers.image.title":    "karpenter",
			"org.opencontainers.image.version":  version,
			"org.opencontainers.image.licenses": licences,
		},
	}
	return mutate.ConfigFile(image, config)
}

func layerOf(files []file) (v1.Layer, error) {
	text, err := archive(files)
	if err != nil {
		return nil, err
	}
	open := func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(text)), nil }
	return tarball.LayerFromOpener(open, tarball.WithMediaType(types.OCILayer))
}

// certificates returns the bundle in PEM, in a fixed order. Authorities that are
// trusted for some certificates only are left out: a file cannot express that.
func certificates() []byte {
	var all [][]byte
	for root := range bundle.Roots() {
		if root.Constraint == nil {
			all = append(all, root.Certificate)
		}
	}
	slices.SortFunc(all, func(a, b []byte) int {
		x, y := sha256.Sum256(a), sha256.Sum256(b)
		return bytes.Compare(x[:], y[:])
	})
	var out bytes.Buffer
	for _, der := range all {
		out.Write(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
	}
	return out.Bytes()
}

// writeLayout writes the image as an OCI layout, replacing an earlier one, and
// returns its digest.
func writeLayout(folder string, index v1.ImageIndex) (string, error) {
	if err := os.RemoveAll(folder); err != nil {
		return "", err
	}
	if err := os.MkdirAll(filepath.Join(folder, "blobs", "sha256"), 0o755); err != nil {
		return "", err
	}
	path, err := layout.Write(folder, empty.Index)
	if err != nil {
		return "", err
	}
	if err := path.AppendIndex(index); err != nil {
		return "", err
	}
	digest, err := index.Digest()
	return digest.String(), err
}
