// SPDX-License-Identifier: Apache-2.0

package top

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "karpenter/api/v1"
	"karpenter/kube/pods"
)

// Events and labels that say why nodes come and go.
const (
	nominated           = "Nominated"
	disruptionLaunching = "DisruptionLaunching"
	spotInterrupted     = "SpotInterrupted"

	launchedTo = "launched to "

	mostNamed = 3 // workloads that a reason names
)

// reasons knows why nodes were launched and are removed.
type reasons struct {
	claims    map[string]*v1.NodeClaim
	static    map[string]bool            // NodePools with replicas
	wanted    map[string]map[string]bool // workloads that were planned onto a node, by name of the claim or the node
	runs      map[string]map[string]bool // workloads whose pods run on a node, by name of the node
	replaces  map[string]string          // reason for which a claim replaces others, by its name
	published map[string]string          // the latest event that explains the end of a claim, by its name
}

func newReasons(o *Objects) *reasons {
	r := &reasons{
		claims: map[string]*v1.NodeClaim{}, static: map[string]bool{}, wanted: map[string]map[string]bool{},
		runs: map[string]map[string]bool{}, replaces: map[string]string{}, published: map[string]string{},
	}
	for _, c := range o.Claims {
		r.claims[c.Name] = c
	}
	for _, p := range o.Pools {
		r.static[p.Name] = p.Spec.Replicas != nil
	}
	workloads := map[string]string{}
	for _, p := range o.Pods {
		if pods.DaemonSet(p) || pods.Static(p) {
			continue
		}
		workloads[p.Namespace+"/"+p.Name] = workloadOf(p)
		if p.Spec.NodeName != "" && !finished(p) {
			note(r.runs, p.Spec.NodeName, workloadOf(p))
		}
		if at := p.Status.NominatedNodeName; at != "" {
			note(r.wanted, at, workloadOf(p))
		}
	}
	for _, e := range o.Events {
		r.take(e, workloads)
	}
	return r
}

func note(all map[string]map[string]bool, at, what string) {
	if all[at] == nil {
		all[at] = map[string]bool{}
	}
	all[at][what] = true
}

func (r *reasons) take(e *corev1.Event, workloads map[string]string) {
	about := e.InvolvedObject
	switch e.Reason {
	case nominated:
		workload, known := workloads[about.Namespace+"/"+about.Name]
		if !known {
			return
		}
		// The message ends in "node/NAME, nodeclaim/NAME" or one of them.
		for word := range strings.FieldsFuncSeq(e.Message, func(c rune) bool { return c == ' ' || c == ',' }) {
			for _, prefix := range []string{"nodeclaim/", "node/"} {
				if name, found := strings.CutPrefix(word, prefix); found {
					note(r.wanted, name, workload)
				}
			}
		}
	case disruptionLaunching:
		_, reason, _ := strings.Cut(e.Message, ": ")
		r.replaces[about.Name] = reason
	case spotInterrupted:
		r.published[about.Name] = "removed: Spot interruption"
	}
}

// of returns why the node was launched, or why it is removed.
func (r *reasons) of(n *Node) string {
	if n.State == Removing {
		return r.removed(n)
	}
	return r.launched(n)
}

// removed says why the node is removed.
func (r *reasons) removed(n *Node) string {
	if why := r.published[n.Claim]; why != "" {
		return why
	}
	c := r.claims[n.Claim]
	if c == nil {
		return "deleted by a user or another program"
	}
	if marked := conditionOf(c, v1.DisruptionReasonCondition); marked.Status == metav1.ConditionTrue {
		switch v1.DisruptionReason(marked.Reason) {
		case v1.DisruptionReasonUnderutilized:
			return "removed: its pods cost less elsewhere"
		case v1.DisruptionReasonEmpty:
			return "removed: it was empty"
		case v1.DisruptionReasonDrifted:
			return "removed: it drifted from its NodePool or node class"
		case v1.DisruptionReasonUnhealthy:
			return "removed: it was unhealthy"
		}
		return "removed: " + marked.Reason
	}
	if after := c.Spec.ExpireAfter.Duration; after != nil && c.DeletionTimestamp != nil && !c.CreationTimestamp.Add(*after).After(c.DeletionTimestamp.Time) {
		return "removed: it expired"
	}
	return "deleted by a user or another program"
}

// launched says why the node was launched.
func (r *reasons) launched(n *Node) string {
	if n.Claim == "" {
		return ""
	}
	if reason := r.replaces[n.Claim]; reason != "" {
		return launchedTo + "replace nodes that were " + strings.ToLower(reason)
	}
	if r.static[n.Pool] {
		return launchedTo + "keep the replicas of the pool"
	}
	wanted := map[string]bool{}
	maps.Copy(wanted, r.wanted[n.Claim])
	maps.Copy(wanted, r.wanted[n.Name])
	if len(wanted) > 0 {
		return "launched for " + listed(wanted)
	}
	if runs := r.runs[n.Name]; len(runs) > 0 {
		return "runs " + listed(runs)
	}
	return ""
}

// listed names the first few in the order of the alphabet.
func listed(set map[string]bool) string {
	names := slices.Sorted(maps.Keys(set))
	if len(names) <= mostNamed {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:mostNamed], ", "), len(names)-mostNamed)
}
