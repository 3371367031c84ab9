#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Records a real run of the sandbox: docs/recorded/record.sh FILE [busy]
#
# Starts a cluster with a simulated AWS in a folder of its own, scales workloads up
# and down while karpenter top watches, and stops. With KUBECONFIG set, that cluster
# is used instead. What the documents show is drawn from the recordings (make
# recordings). A busy run has ten times the pods for some minutes, a baseline and the record.
set -eu
out=${1:?usage: docs/recorded/record.sh FILE [busy]}
busy=${2:-}
cd "$(dirname "$0")/../.."
if [ -z "${KUBECONFIG:-}" ]; then
	data=$(mktemp -d)
	bin/sandbox run --plain --data "$data/cluster" --controller bin/karpenter --crds api/crds --manifests examples/aws/default >"$data/log" 2>&1 &
	sandbox=$!
	trap 'kill -INT $sandbox; wait $sandbox || true; rm -rf "$data"' EXIT
	KUBECONFIG=$data/cluster/kubeconfig
	export KUBECONFIG
	until bin/kubectl get configmap -A 2>/dev/null | grep -q karpenter-offerings; do sleep 1; done
fi

# Each wait ends when the cluster has got there, so that a slow machine records the same.
until_true() {
	tries=0
	until eval "$1" >/dev/null 2>&1; do
		tries=$((tries + 1))
		[ $tries -lt 300 ] || { echo "record.sh: gave up waiting for: $1" >&2; exit 1; }
		sleep 1
	done
}
running() { [ "$(bin/kubectl get pods -l "app=$1" --field-selector status.phase=Running --no-headers 2>/dev/null | wc -l)" -eq "$2" ]; }
explained() { bin/kubectl get events --field-selector reason=FailedScheduling,source=karpenter --no-headers 2>/dev/null | grep -q report; }
ready() { bin/kubectl get nodes --no-headers 2>/dev/null | grep -cw Ready; }
freeze() { bin/karpenter record --freeze | bin/kubectl apply -f -; }
removing() { bin/kubectl get nodes -o 'jsonpath={.items[*].spec.taints[*].key}' | grep -q karpenter.sh/disrupted; }

bin/karpenter top --record "$out" >/dev/null &
top=$!
bin/kubectl apply -f docs/recorded/shop.yaml
until_true 'running web 12 && running api 6'
until_true explained
until_true 'running report 2'
bin/kubectl scale deployment batch --replicas 8
until_true 'running batch 8'
bin/kubectl scale deployment batch --replicas 0
until_true removing
if [ "$busy" = busy ]; then
	bin/kubectl scale deployment web --replicas 120
	bin/kubectl scale deployment api --replicas 48
	bin/kubectl scale deployment batch --replicas 40
	until_true 'running web 120 && running api 48 && running batch 40'
	until_true freeze
	many=$(ready)
	bin/kubectl scale deployment batch --replicas 0
	bin/kubectl scale deployment web --replicas 70
	until_true '[ "$(ready)" -lt "$((many * 2 / 3))" ]'
	bin/kubectl scale deployment batch --replicas 30
	until_true 'running batch 30'
	bin/kubectl scale deployment web --replicas 90
	until_true 'running web 90'
	bin/kubectl scale deployment batch --replicas 24
	until_true 'running batch 24'
fi
kill -INT $top
wait $top || true
