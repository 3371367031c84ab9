// SPDX-License-Identifier: Apache-2.0

// Package judge proves plans valid and prices them, whoever made them. It
// trusts no planner: what a node of a claim would be it works out from the
// price list, and whether a pod may run there it asks kube-scheduler's own
// helpers.
//
// A claim is an offer to the cloud to launch any of its types wherever its
// requirements allow, so it is valid only if its pods could run on every one of
// those machines. Its price is that of the cheapest of them.
package judge

import corev1 "k8s.io/api/core/v1"

// Plan is what an engine decided.
type Plan struct {
	Claims []Claim
	Placed map[string][]string // node → keys of the pods put on it
}

// Claim is one new node.
type Claim struct {
	Pool         string
	Types        []string
	Requirements []corev1.NodeSelectorRequirement // of its labels
	Pods         []string                         // keys
}

// Key returns namespace/name.
func Key(p *corev1.Pod) string { return p.Namespace + "/" + p.Name }

// Verdict is what the judge has to say of a plan.
type Verdict struct {
	Scheduled int      // pods with a place
	Nodes     int      // new
	Price     float64  // dollars per hour, of the new nodes
	Faults    []string // what is wrong with it, in no order; at most maxFaults
	Count     int      // of faults
}

// maxFaults is how many faults are spelled out.
const maxFaults = 20
