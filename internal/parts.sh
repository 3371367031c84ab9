#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Runs targets of the Makefile side by side: parts.sh 'e2e' 'unit sim'. Each argument is a
# lane: its targets run one after the other, beside those of the other lanes. Lanes after
# the first get the processors only when the first waits, so that tests with deadlines,
# which belong into the first lane, don't notice the others.
#
# The output of a target is shown in one piece when the target ends. Every minute, a line
# names what runs and how far it is. All targets run even if one fails, and the
# last lines list the time of each and what failed.
set -eu
logs=$(mktemp -d)
progress= lanes=
trap 'rm -rf "$logs"; [ -z "$progress" ] || kill "$progress" 2>/dev/null || true' EXIT
# Jobs in the background don't see Ctrl-C, so the whole process group gets a signal that they see.
trap 'trap "" TERM; echo "=== stopped" >&2; kill -TERM 0; exit 130' INT TERM
begin=$(date +%s)

part() { # TARGET NICENESS
	from=$(date +%s)
	echo "=== make $1: begins after $((from - begin)) s"
	status=0
	nice -n "$2" "${MAKE:-make}" --no-print-directory "$1" >"$logs/$1" 2>&1 || status=$?
	took=$(($(date +%s) - from))
	if [ "$status" = 0 ]; then line=$(printf '%-14s %5d s' "$1" "$took"); else line=$(printf '%-14s %5d s  FAILED' "$1" "$took"); fi
	# One write, so that lanes which end at the same time don't mix their lines.
	output=$(cat "$logs/$1")
	printf '%s\n' "=== make $1: output" "$output" "=== $line"
	echo "  $line" >>"$logs/=summary"
	rm "$logs/$1"
}

niceness=0
for lane in "$@"; do
	{ for target in $lane; do part "$target" $niceness; done; } &
	lanes="$lanes $!"
	niceness=10
done
{
	# The output of sleep is not ours, which a reader of it would wait for.
	for second in $(seq 86400); do
		sleep 1 >&- 2>&-
		[ $((second % 60)) = 0 ] || continue
		for log in "$logs"/*; do
			case $log in */=summary | *'*') continue ;; esac
			echo "=== after $((($(date +%s) - begin) / 60)) min: make $(basename "$log"): $(tail -n 1 "$log" 2>/dev/null | cut -c 1-120)"
		done
	done
} &
progress=$!
lost=
for lane in $lanes; do wait "$lane" || lost=1; done
echo "=== all parts ended after $(($(date +%s) - begin)) s, in this order:"
cat "$logs/=summary"
if [ -n "$lost" ]; then
	echo "=== a part did not come to its end" >&2
	exit 1
fi
if grep -q FAILED "$logs/=summary"; then
	echo "=== failed:$(sed -n 's/^ *\([^ ]*\) .*FAILED$/ \1/p' "$logs/=summary" | tr -d '\n')" >&2
	exit 1
fi
