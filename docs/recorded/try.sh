#!/bin/sh
# Shows the commands on a recorded cluster: docs/recorded/try.sh PROGRAM
#
# Nothing is started and no cluster is read.
set -eu
program=${1:?usage: docs/recorded/try.sh PROGRAM}
recording=docs/recorded/shop.recording
export KUBECONFIG=/dev/null

ask() {
	printf '\n$ karpenter %s\n' "$*"
	"$program" "$@" || [ "$1" = status ]
}

cat <<'END'
A cluster was recorded while a shop ran on it, batch jobs came and went, and reports
waited for a NodePool that is too small. These are the commands on its last moment.
END
ask status --recording $recording
ask explain pods -A --recording $recording
ask explain cluster --recording $recording
ask plan --recording $recording
ask savings -f docs/savings/nodegroups.json
if [ -t 1 ] && [ -t 0 ]; then
	printf '\n$ karpenter top --recording %s\nPress Enter to watch the recording live; q quits. ' $recording
	read -r _
	exec "$program" top --recording $recording
fi
ask top --once --recording $recording
