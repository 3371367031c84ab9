#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Pins this module to the Kubernetes release of the sandbox: ./pin.sh
#
# The release is stated once, in ../sandbox/go.mod, with the modules k8s.io/kubernetes names at versions that do not
# exist; they are copied from there. Run it again whenever ../go.mod has changed.
set -eu
cd "$(dirname "$0")"

printf 'module karpenter/differential\n\ngo 1.26.0\n' >go.mod
set -- -require=karpenter@v0.0.0 -replace=karpenter@v0.0.0=../
for pinned in $(sed -n 's/^[[:space:]]*\(k8s\.io\/[a-z-]*\) \(v1\.[0-9.]*\|v0\.[0-9.]*\)\( \/\/ indirect\)\{0,1\}$/\1@\2/p' ../sandbox/go.mod | sort -u); do
	case $pinned in
	*@v0.0.0) set -- "$@" "-exclude=$pinned" ;;
	*) set -- "$@" "-require=$pinned" ;;
	esac
done
go mod edit "$@"
GOFLAGS="${GOFLAGS:-} -mod=mod" go mod tidy
