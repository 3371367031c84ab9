#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Shows the commands on a recorded cluster and on one that is simulated now:
# docs/recorded/try.sh PROGRAM [SEED]
#
# No cluster is read, and nothing is started that stays. The answers about the
# recorded cluster come first; the simulation, which has all controllers, is compiled
# meanwhile.
set -eu
program=${1:?usage: docs/recorded/try.sh PROGRAM [SEED]}
seed=${2:-}
folder=$(dirname "$program")
recorded=docs/recorded/shop.recording
simulated=$folder/try.recording
export KUBECONFIG=/dev/null
began=$(date +%s)

say() { printf '\n%s\n' "$*"; }
ask() {
	printf '\n$ karpenter %s\n' "$*"
	"$program" "$@" || [ "$1" = status ]
}
# watch shows a recording live in a terminal, and its end elsewhere.
watch() {
	if [ -t 1 ] && [ -t 0 ]; then
		printf '\n$ karpenter top --recording %s\nPress Enter to watch it live; q quits. ' "$*"
		read -r _
		"$program" top --recording "$@"
	else
		ask top --once --recording "$1"
	fi
}
took() { [ $(($(date +%s) - began)) -lt 30 ] || say "$1 after $(($(date +%s) - began)) s" >&2; }

# Most of what is compiled are libraries. Without optimisation that takes a third less time, and
# no one waits for them when they run. See sandbox/build.sh about GOGC.
export CGO_ENABLED=0 GOGC="${GOGC:-400}"
set --
for library in k8s.io sigs.k8s.io golang.org/x google.golang.org github.com/aws github.com/google github.com/prometheus github.com/charmbracelet; do
	set -- "$@" "-gcflags=$library/...=-N -l"
done

mkdir -p "$folder"
say "Compiling the commands, the first time about a minute on 2 idle cores..." >&2
# While modules are downloaded, the standard library compiles.
go list -deps -test -tags nocontroller ./cmd/karpenter ./sim/try >/dev/null &
download=$!
go build net/http/pprof encoding/xml encoding/gob testing
wait $download
go build "$@" -tags nocontroller -ldflags '-s -w' -o "$program" ./cmd/karpenter
took "compiled"
go test "$@" -vet=off -ldflags '-s -w' -c -o "$folder/try.test" ./sim/try &
controllers=$!
trap 'kill $controllers 2>/dev/null || true' EXIT
trap 'exit 130' INT TERM

say "1. A recorded cluster: a shop runs on it, batch jobs came and went, and reports wait for
a NodePool that is too small. These are the commands on its last moment."
ask status --recording $recorded
ask top --once --recording $recorded
ask explain pods -A --recording $recorded
ask explain cluster --recording $recorded
ask plan --recording $recorded
say "2. Another cluster, that Cluster Autoscaler runs: what would Karpenter save there?"
ask savings -f docs/savings/nodegroups.json
took "this was there"
say "3. A simulation: the controllers run for 8 minutes of virtual time on an AWS account in
memory, while a shop scales up and down."
say "Compiling the controllers, the first time about 40 seconds more on 2 idle cores..." >&2
wait $controllers
"$folder/try.test" -test.run '^TestTry$' -recording "$(pwd)/$simulated" -seed "${seed:-$(od -An -N2 -tu2 /dev/urandom | tr -d ' ')}" >&2
took "the simulation was there"
watch "$simulated" --speed 4
ask explain pods -A --recording "$simulated"
ask plan --recording "$simulated"
ask savings --recording "$simulated"
say "The simulated cluster is the file $simulated; every run of make try makes another.
With a real control plane on this machine: make run"
