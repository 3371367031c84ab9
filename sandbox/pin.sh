#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Pins this module to one Kubernetes release: ./pin.sh 1.37.1
#
# k8s.io/kubernetes names its staging modules at v0.0.0, which do not exist. Each is excluded here and required at
# the release's real version instead; etcd is taken at the version Kubernetes itself was tested with. go.mod then
# states every version once, and an upgrade is this one command followed by the tests.
set -eu
cd "$(dirname "$0")"

release=${1:?usage: ./pin.sh 1.MINOR.PATCH}
staging=v0.${release#1.}

theirs=$(cd "${TMPDIR:-/tmp}" && GOFLAGS=-mod=mod go mod download -json "k8s.io/kubernetes@v$release" |
	sed -n 's/^[[:space:]]*"GoMod": "\(.*\)",*$/\1/p')
[ -n "$theirs" ] || { echo "pin.sh: no module k8s.io/kubernetes@v$release; is the release published?" >&2; exit 1; }

printf 'module karpenter/sandbox\n\ngo 1.26.0\n' >go.mod
set -- -require="k8s.io/kubernetes@v$release"
for module in $(sed -n 's/^[[:space:]]*\(k8s\.io\/[a-z-]*\) v0\.0\.0$/\1/p' "$theirs"); do
	set -- "$@" -exclude="$module@v0.0.0" -require="$module@$staging"
done
etcd=$(sed -n 's/^[[:space:]]*go\.etcd\.io\/etcd\/client\/v3 \(v[0-9.]*\).*/\1/p' "$theirs")
go mod edit "$@" -require="go.etcd.io/etcd/server/v3@$etcd"
go mod tidy
