#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Builds the sandbox binary: build.sh OUT [RELEASE], with RELEASE such as 1.36.4
# instead of the release that go.mod names. Shows the progress and the times,
# because the first build compiles all of Kubernetes and takes minutes.
set -eu
mkdir -p "$(dirname "$1")"
out=$(cd "$(dirname "$1")" && pwd)/$(basename "$1")
cd "$(dirname "$0")"
errors=$(mktemp) copy=$(mktemp -d)
trap 'rm -rf "$errors" "$copy"' EXIT
if [ $# -gt 1 ]; then # another release has another go.mod, so it gets a copy of the source
	cp -R . "$copy" && cd "$copy"
	./pin.sh "$2"
fi
say() { echo "control plane: $*" >&2; }
release=$(sed -n 's/^[[:space:]]*k8s\.io\/kubernetes \(v[0-9.]*\).*/\1/p' go.mod)
begin=$(date +%s)
[ -x "$out" ] || say "downloading the source of Kubernetes $release, about 120 MB"
go mod download
loaded=$(date +%s)
total=$(go list -deps . | wc -l | tr -d ' ')
[ -x "$out" ] || say "compiling Kubernetes $release: at most $total packages, the first time some 5 minutes on 2 idle cores"
if [ -t 2 ]; then step=1; end='\r'; else step=200; end='\n'; fi
# The compiler collects garbage less often than by default, which takes a quarter less CPU time and 100 MB more memory.
# The linker would take gigabytes more, so linking is a step of its own.
# -v names each package as it is compiled; packages in the build cache are not named.
packages=$(go list -f '{{if ne .Name "main"}}{{.ImportPath}}{{end}}' ./...)
{ { GOGC=${GOGC:-400} go build -v -trimpath $packages && go build -v -trimpath -ldflags '-s -w' -o "$out" . ; } 2>&1 || echo "failed $?" ; } |
	awk -v total="$total" -v step="$step" -v end="$end" -v errors="$errors" '
		function now() { srand(); return srand() } # the time in seconds, as POSIX awk tells it
		BEGIN { begin = now() }
		/^failed [0-9]+$/ { bad = 1; next }
		/^[A-Za-z0-9_.~\/-]+$/ && !/^#/ {
			n++
			if (n % step) next
			spent = now() - begin
			left = n < total / 20 || spent < 5 ? "" : sprintf(", %.1f min left at most", spent * (total - n) / n / 60)
			line = sprintf("control plane: %4d of %d packages, %.1f min%s", n, total, spent / 60, left)
			printf "%-78s" end, line > "/dev/stderr"
			fflush()
			next
		}
		{ print > errors; bad = bad }
		END { if (n >= step && step == 1) printf "\n" > "/dev/stderr"; exit bad }
	' || { cat "$errors" >&2; say "the build failed; the errors are above"; exit 1; }
spent=$(($(date +%s) - begin))
[ $spent -lt 30 ] || say "built in $spent s, $((loaded - begin)) s of it for the download and $((spent - loaded + begin)) s for compiling and linking"
