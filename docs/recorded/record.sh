#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Records a real run of the sandbox: docs/recorded/record.sh FILE
#
# Starts a cluster with a simulated AWS in a folder of its own, scales workloads up
# and down while karpenter top watches, and stops. With KUBECONFIG set, that cluster
# is used instead. What the documents show is drawn from the recording (make
# recordings).
set -eu
out=${1:?usage: docs/recorded/record.sh FILE}
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
kill -INT $top
wait $top || true
