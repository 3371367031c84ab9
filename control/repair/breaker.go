// SPDX-License-Identifier: Apache-2.0

package repair

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "karpenter/api/v1"
	"karpenter/kube/events"
)

// mostUnhealthy is the share of unhealthy Nodes, in percent and rounded up to
// whole Nodes, up to which they are repaired.
const mostUnhealthy = 20

// breaker reports whether too many Nodes of the claim's pool are unhealthy at
// once, so that none of them is repaired. It publishes events about that. For a
// claim without a pool, all Nodes of the cluster count.
func (r *Reconciler) breaker(ctx context.Context, node *corev1.Node, claim *v1.NodeClaim) (open bool, err error) {
	var among []client.ListOption
	pool, pooled := claim.Labels[v1.NodePoolLabelKey]
	if pooled {
		among = append(among, client.MatchingLabels{v1.NodePoolLabelKey: pool})
	}
	nodes := &corev1.NodeList{}
	if err := r.Client.List(ctx, nodes, append(among, client.UnsafeDisableDeepCopy)...); err != nil {
		return false, fmt.Errorf("list nodes beside %s: %w", node.Name, err)
	}
	total, unhealthy := r.count(nodes)
	if unhealthy <= allowed(total) {
		return false, nil
	}
	where := "the cluster"
	if pooled {
		where = "NodePool " + pool
	}
	why := fmt.Sprintf("more than %d%% of the nodes in %s are unhealthy (%d of %d)", mostUnhealthy, where, unhealthy, total)
	r.Recorder.Publish(blocked(node, why), blocked(claim, why))
	if !pooled {
		return true, nil
	}
	object := &v1.NodePool{}
	if err := r.Client.Get(ctx, client.ObjectKey{Name: pool}, object); err == nil {
		r.Recorder.Publish(blocked(object, why))
	} else if !apierrors.IsNotFound(err) {
		return true, err
	}
	return true, nil
}

// count returns the number of Nodes, and how many of them have a bad condition,
// no matter for how long. Nodes that have not registered are left out, because
// all nodes are unready while they boot.
func (r *Reconciler) count(nodes *corev1.NodeList) (total, unhealthy int) {
	policies := r.Provider.RepairPolicies()
	unregistered := v1.UnregisteredNoExecuteTaint()
	for i := range nodes.Items {
		n := &nodes.Items[i]
		if hasTaint(n, unregistered) {
			continue
		}
		total++
		if _, sick := diagnose(n, policies); sick {
			unhealthy++
		}
	}
	return total, unhealthy
}

// allowed returns how many of so many Nodes may be unhealthy.
func allowed(total int) int { return (total*mostUnhealthy + 99) / 100 }

func hasTaint(node *corev1.Node, taint corev1.Taint) bool {
	for i := range node.Spec.Taints {
		if node.Spec.Taints[i].MatchTaint(&taint) {
			return true
		}
	}
	return false
}

func blocked(o client.Object, why string) events.Event {
	return events.Event{
		Object: o, Type: corev1.EventTypeWarning, Reason: "NodeRepairBlocked",
		Message: "Unhealthy nodes are not replaced: " + why, Timeout: 15 * time.Minute,
	}
}

func repairing(o client.Object, found diagnosis) events.Event {
	c := found.condition
	return events.Event{
		Object: o, Type: corev1.EventTypeWarning, Reason: "NodeRepairing",
		Message: fmt.Sprintf("Replacing the instance: condition %s has been %s since %s, and %s are tolerated",
			c.Type, c.Status, c.LastTransitionTime.UTC().Format(time.RFC3339), found.toleration),
	}
}
