#!/bin/sh
# Builds the sandbox binary to the path given and shows how far it is: the
# first build compiles all of Kubernetes and takes minutes.
set -eu
out=$(cd "$(dirname "$1")" 2>/dev/null && pwd || (mkdir -p "$(dirname "$1")" && cd "$(dirname "$1")" && pwd))/$(basename "$1")
cd "$(dirname "$0")"
[ -x "$out" ] && fresh=1 || fresh=
[ -n "$fresh" ] || echo "building the control plane: Kubernetes' own code, the first time takes some minutes" >&2
go mod download
total=$(go list -deps . | wc -l | tr -d ' ')
errors=$(mktemp)
trap 'rm -f "$errors"' EXIT
if [ -t 2 ]; then step=1; end='\r'; else step=200; end='\n'; fi
# -v names each package as it is compiled; packages in the build cache are not named.
{ go build -v -trimpath -ldflags '-s -w' -o "$out" . 2>&1 || echo "failed $?" ; } |
	awk -v total="$total" -v step="$step" -v end="$end" -v errors="$errors" '
		/^failed [0-9]+$/ { bad = 1; next }
		/^[A-Za-z0-9_.~\/-]+$/ && !/^#/ { n++; if (n % step == 0) { printf "  compiled %4d of at most %d packages  %-60.60s" end, n, total, $0 > "/dev/stderr"; fflush() } ; next }
		{ print > errors; bad = bad }
		END { if (n >= step) printf "\n" > "/dev/stderr"; exit bad }
	' || { cat "$errors" >&2; echo "the sandbox did not build; the errors are above" >&2; exit 1; }
