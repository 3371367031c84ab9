// SPDX-License-Identifier: Apache-2.0

package status

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	awsv1 "karpenter/api/aws/v1"
	"karpenter/api/conditions"
	v1 "karpenter/api/v1"
	"karpenter/kube/events"
)

// unready says which condition keeps an object from being ready; "" = none.
func unready(all []metav1.Condition) string {
	why := ""
	for _, c := range all {
		if c.Status == metav1.ConditionTrue || c.Type != v1.ReadyCondition && !strings.HasSuffix(c.Type, "Ready") && !strings.HasSuffix(c.Type, "Succeeded") {
			continue
		}
		text := c.Type + ": " + c.Reason
		if c.Message != "" {
			text = c.Type + ": " + c.Message
		}
		if why == "" || strings.HasPrefix(why, v1.ReadyCondition+":") {
			why = text
		}
	}
	if why == "" && !slices.ContainsFunc(all, func(c metav1.Condition) bool { return c.Type == v1.ReadyCondition }) {
		return "waiting for first reconcile"
	}
	return why
}

func poolsCheck(f *Facts) Check {
	const name = "NodePools"
	switch {
	case f.Pools.err != nil:
		return unread(name, f.Pools.err)
	case len(f.Pools.value) == 0:
		return Check{name, Warning, "there is none, so no node is launched", nil, "Apply one: docs/nodepool.md has NodePools to begin with"}
	}
	var bad []string
	for _, p := range f.Pools.value {
		if why := unready(p.Status.Conditions); why != "" {
			bad = append(bad, p.Name+": "+why)
		}
	}
	if len(bad) > 0 {
		return Check{name, Failure, fmt.Sprintf("%d of %d not ready", len(bad), len(f.Pools.value)), bad, "kubectl describe nodepool NAME; a pool that is not ready launches nothing"}
	}
	return ok(name, "%d ready", len(f.Pools.value))
}

// nearly is the share of a limit from which on it is worth a warning.
const nearly = 0.95

func limitsCheck(f *Facts) Check {
	const name = "Limits"
	if f.Pools.err != nil {
		return unread(name, f.Pools.err)
	}
	var full []string
	limited := 0
	for _, p := range f.Pools.value {
		if len(p.Spec.Limits) > 0 {
			limited++
		}
		for _, resource := range slices.Sorted(maps.Keys(p.Spec.Limits)) {
			limit, used := p.Spec.Limits[resource], p.Status.Resources[resource]
			if limit.AsApproximateFloat64() > 0 && used.AsApproximateFloat64() >= nearly*limit.AsApproximateFloat64() {
				full = append(full, fmt.Sprintf("%s: %s of %s %s in use", p.Name, used.String(), limit.String(), resource))
			}
		}
	}
	switch {
	case len(full) > 0:
		return Check{name, Warning, "nearly reached", full, "Raise spec.limits of the NodePool, or expect pods to stay pending"}
	case limited < len(f.Pools.value):
		return Check{name, Warning, fmt.Sprintf("%d of %d NodePools have no limits", len(f.Pools.value)-limited, len(f.Pools.value)), nil,
			"Set spec.limits, so that a runaway workload cannot launch any number of nodes"}
	}
	return ok(name, "all NodePools have some, and none is nearly reached")
}

// nodeClass is what the check needs of any kind of them.
type nodeClass interface {
	client.Object
	GetConditions() []metav1.Condition
}

func classesOf[T nodeClass](in read[[]T]) read[[]nodeClass] {
	out := read[[]nodeClass]{err: in.err}
	for _, c := range in.value {
		out.value = append(out.value, c)
	}
	return out
}

func classesCheck(f *Facts) Check {
	const name = "Node classes"
	var bad []string
	n := 0
	for _, classes := range []struct {
		kind string
		all  read[[]nodeClass]
	}{{"EC2NodeClass", classesOf(f.AWSClasses)}, {"AKSNodeClass", classesOf(f.AzureClasses)}, {"KWOKNodeClass", classesOf(f.KWOKClasses)}} {
		if classes.all.err != nil {
			return unread(name, classes.all.err)
		}
		n += len(classes.all.value)
		for _, c := range classes.all.value {
			if why := unready(c.GetConditions()); why != "" {
				bad = append(bad, classes.kind+" "+c.GetName()+": "+why)
			}
		}
	}
	switch {
	case len(bad) > 0:
		return Check{name, Failure, fmt.Sprintf("%d of %d not ready", len(bad), n), bad, "kubectl describe the node class; its conditions name the subnets, images, roles or permissions that are missing"}
	case n == 0:
		return Check{name, Warning, "there is none, so no node is launched", nil, "Apply one, as in examples/aws/default or examples/azure/default"}
	}
	return ok(name, "%d ready", n)
}

// slow is how long a NodeClaim may take to become a node.
const slow = 5 * time.Minute

func claimsCheck(f *Facts) Check {
	const name = "Launches"
	if f.Claims.err != nil {
		return unread(name, f.Claims.err)
	}
	var late []string
	coming := 0
	for _, c := range f.Claims.value {
		if c.DeletionTimestamp != nil || conditions.IsTrue(c, v1.InitializedCondition) {
			continue
		}
		coming++
		if age := f.Now.Sub(c.CreationTimestamp.Time); age > slow {
			late = append(late, fmt.Sprintf("%s, %s old: %s", c.Name, age.Round(time.Minute), stage(c)))
		}
	}
	if len(late) > 0 {
		return Check{name, Warning, fmt.Sprintf("%s not a node after %s", counted(len(late), "NodeClaim"), slow), late,
			"kubectl describe nodeclaim NAME; docs/troubleshooting.md lists why instances do not join"}
	}
	return ok(name, "%s, %d on their way", counted(len(f.Claims.value), "NodeClaim"), coming)
}

// stage says how far a NodeClaim has come and what it waits for.
func stage(c *v1.NodeClaim) string {
	for _, condition := range []string{v1.LaunchedCondition, v1.RegisteredCondition, v1.InitializedCondition} {
		got := conditions.Get(c, condition)
		if got == nil || got.Status != metav1.ConditionTrue {
			text := "not " + condition
			if got != nil && got.Message != "" {
				text += ": " + got.Message
			}
			return text
		}
	}
	return "ready"
}

func nodesCheck(f *Facts) Check {
	const name = "Nodes"
	if f.Nodes.err != nil {
		return unread(name, f.Nodes.err)
	}
	var bad []string
	ours := 0
	for _, n := range f.Nodes.value {
		if n.Labels[v1.NodePoolLabelKey] == "" {
			continue
		}
		ours++
		ready := slices.ContainsFunc(n.Status.Conditions, func(c corev1.NodeCondition) bool {
			return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
		})
		if !ready && n.DeletionTimestamp == nil {
			bad = append(bad, n.Name)
		}
	}
	if len(bad) > 0 {
		return Check{name, Warning, fmt.Sprintf("%d of %d launched by Karpenter not ready", len(bad), ours), bad, "kubectl describe node NAME; the feature gate NodeRepair replaces unhealthy nodes"}
	}
	return ok(name, "%d of %d launched by Karpenter, all ready", ours, len(f.Nodes.value))
}

func driftCheck(f *Facts) Check {
	const name = "Drift"
	switch {
	case f.Claims.err != nil:
		return unread(name, f.Claims.err)
	case f.Pools.err != nil:
		return unread(name, f.Pools.err)
	}
	drifted := 0
	for _, c := range f.Claims.value {
		if conditions.IsTrue(c, v1.DriftedCondition) {
			drifted++
		}
	}
	var halted []string
	for _, p := range f.Pools.value {
		if c := conditions.Get(p, v1.RolloutHaltedCondition); c != nil && c.Status == metav1.ConditionTrue {
			halted = append(halted, p.Name+": "+c.Message)
		}
	}
	switch {
	case len(halted) > 0:
		return Check{name, Warning, "rollout halted", halted, "Fix why new instances do not become nodes; the rollout goes on by itself then"}
	case drifted > 0:
		return ok(name, "%s to be replaced, within the budgets", counted(drifted, "drifted node"))
	}
	return ok(name, "no node has drifted")
}

func drainCheck(f *Facts) Check {
	const name = "Drains"
	if f.Claims.err != nil {
		return unread(name, f.Claims.err)
	}
	var blocked []string
	for _, c := range f.Claims.value {
		if k := conditions.Get(c, v1.DrainBlockedCondition); k != nil && k.Status == metav1.ConditionTrue {
			blocked = append(blocked, c.Name+": "+k.Message)
		}
	}
	if len(blocked) > 0 {
		return Check{name, Warning, fmt.Sprintf("%s cannot be drained", counted(len(blocked), "node")), blocked, "Move or delete the pods named, or set terminationGracePeriod in the NodePool"}
	}
	return ok(name, "none is blocked")
}

// recent is how old a warning may be to count.
const recent = time.Hour

func eventsCheck(f *Facts) Check {
	const name = "Warnings"
	if f.Events.err != nil {
		return unread(name, f.Events.err)
	}
	counts, latest := map[string]int{}, map[string]*corev1.Event{}
	for _, e := range f.Events.value {
		from := e.Source.Component == events.Source || e.ReportingController == events.Source
		if !from || e.Type != corev1.EventTypeWarning || f.Now.Sub(e.LastTimestamp.Time) > recent || e.Reason == "FailedScheduling" || e.Reason == noSpotRole {
			continue
		}
		counts[e.Reason]++
		if latest[e.Reason] == nil || latest[e.Reason].LastTimestamp.Before(&e.LastTimestamp) {
			latest[e.Reason] = e
		}
	}
	if len(counts) == 0 {
		return ok(name, "no warning event from Karpenter in the last hour")
	}
	c := Check{Name: name, Verdict: Warning, Summary: "events from Karpenter in the last hour",
		Remedy: "kubectl get events -A --field-selector source=karpenter,type=Warning; docs/troubleshooting.md explains each reason"}
	for _, reason := range slices.Sorted(maps.Keys(counts)) {
		e := latest[reason]
		c.Details = append(c.Details, fmt.Sprintf("%s (%d), such as %s %s: %s", reason, counts[reason], e.InvolvedObject.Kind, e.InvolvedObject.Name, e.Message))
	}
	return c
}

// upgradeCheck finds what the next version of Kubernetes or Karpenter refuses.
func upgradeCheck(f *Facts) Check {
	const name = "Upgrade notes"
	switch {
	case f.AWSClasses.err != nil:
		return unread(name, f.AWSClasses.err)
	case f.Pools.err != nil:
		return unread(name, f.Pools.err)
	}
	var notes []string
	for _, c := range f.AWSClasses.value {
		if c.AMIFamily() == awsv1.AMIFamilyAL2 {
			notes = append(notes, "EC2NodeClass "+c.Name+": Amazon Linux 2 has no images for Kubernetes 1.33 and later; change to al2023")
		}
	}
	for _, p := range f.Pools.value {
		for key := range p.Spec.Template.Annotations {
			if strings.HasPrefix(key, "compatibility.karpenter") {
				notes = append(notes, "NodePool "+p.Name+": annotation "+key+" has no effect any more; remove it")
			}
		}
	}
	if len(notes) > 0 {
		slices.Sort(notes)
		return Check{name, Warning, fmt.Sprintf("%d to read", len(notes)), notes, "karpenter migrate --check finds the same in manifests"}
	}
	return ok(name, "none")
}
