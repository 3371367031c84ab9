#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Builds the kubectl plugin for each platform and writes its Krew manifest:
# deploy/krew/release.sh FOLDER URL PLATFORMS
#
# FOLDER gets an archive for each platform and karpenter.yaml, whose checksums are
# those of the archives. URL is where the archives will be found. PLATFORMS are
# those of make release, such as linux/amd64,darwin/arm64.
set -eu
out=${1:?usage: deploy/krew/release.sh FOLDER URL PLATFORMS}
url=${2:?usage: deploy/krew/release.sh FOLDER URL PLATFORMS}
platforms=$(echo "${3:?usage: deploy/krew/release.sh FOLDER URL PLATFORMS}" | tr , ' ')
cd "$(dirname "$0")/../.."
mkdir -p "$out"
manifest=$out/karpenter.yaml
version=$(sed -n 's/^  version: //p' deploy/krew/karpenter.yaml)
{ cat deploy/krew/karpenter.yaml; echo "  homepage: $url"; echo "  platforms:"; } >"$manifest"
for platform in $platforms; do
	os=${platform%/*} arch=${platform#*/}
	name=kubectl-karpenter-$os-$arch.tar.gz
	work=$(mktemp -d)
	CGO_ENABLED=0 GOOS=$os GOARCH=$arch go build -tags nocontroller -trimpath -ldflags '-s -w' -o "$work/kubectl-karpenter" ./cmd/karpenter
	cp LICENSE "$work"
	# The same sources give the same archive.
	tar -C "$work" --sort=name --mtime=@0 --owner=0 --group=0 --numeric-owner -cf - kubectl-karpenter LICENSE | gzip -n >"$out/$name"
	rm -rf "$work"
	cat >>"$manifest" <<END
    - selector: {matchLabels: {os: $os, arch: $arch}}
      uri: $url/$version/$name
      sha256: "$(sha256sum "$out/$name" | cut -d' ' -f1)"
      bin: kubectl-karpenter
END
	echo "$out/$name" >&2
done
