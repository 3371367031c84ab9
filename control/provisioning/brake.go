// SPDX-License-Identifier: Apache-2.0

package provisioning

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"karpenter/api/conditions"
	v1 "karpenter/api/v1"
	"karpenter/kube/events"
	"karpenter/model"
	"karpenter/world"
)

// held is the pods for which a plan would launch nodes although a hold says
// not to, by UID.
type held map[string]*heldPod

type heldPod struct {
	pod   model.Pod
	holds []world.Hold // all in force on the pod
}

// newHeld returns the held pods of the launches, nil if there are none.
func newHeld(launches []model.Launch, holds []world.Hold) held {
	if len(holds) == 0 {
		return nil
	}
	byPod := map[string][]world.Hold{}
	for _, h := range holds {
		byPod[h.UID] = append(byPod[h.UID], h)
	}
	var out held
	for i := range launches {
		for _, pod := range launches[i].Pods {
			holds := byPod[pod.UID]
			if !exists(pod) || !slices.ContainsFunc(holds, func(h world.Hold) bool { return h.Pool == launches[i].Pool }) {
				continue
			}
			if out == nil {
				out = held{}
			}
			out[pod.UID] = &heldPod{pod, holds}
		}
	}
	return out
}

// without returns the Snapshot in which held pods cannot use the NodePools of
// their holds. Existing nodes of these NodePools have no capacity for them, or
// the plan would not launch a node.
func (h held) without(s *model.Snapshot) *model.Snapshot {
	out := *s
	out.Pending = nil
	for _, pending := range s.Pending {
		apart := map[string][]model.Pod{} // by pools
		rest := slices.DeleteFunc(slices.Clone(pending.Pods), func(p model.Pod) bool {
			x := h[p.UID]
			if x == nil || !exists(p) {
				return false
			}
			pools := strings.Join(x.pools(), ",")
			apart[pools] = append(apart[pools], p)
			return true
		})
		if len(apart) == 0 {
			out.Pending = append(out.Pending, pending)
			continue
		}
		if len(rest) > 0 {
			out.Pending = append(out.Pending, model.Pending{Shape: pending.Shape, Peer: pending.Peer, Pods: rest})
		}
		for _, pools := range slices.Sorted(maps.Keys(apart)) {
			shape := *pending.Shape
			shape.Key += " held " + pools
			shape.Selector = shape.Selector.And(model.NewRequirement(model.LabelNodePool, model.NotIn, strings.Split(pools, ",")...))
			out.Pending = append(out.Pending, model.Pending{Shape: &shape, Peer: pending.Peer, Pods: apart[pools]})
		}
	}
	return &out
}

// pools returns the NodePools of the holds, sorted.
func (x *heldPod) pools() []string {
	var out []string
	for _, hold := range x.holds {
		out = append(out, hold.Pool)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// others returns the verdicts without held pods, because events reports those.
func (h held) others(verdicts []model.Verdict) []model.Verdict {
	if len(h) == 0 {
		return verdicts
	}
	out := slices.Clone(verdicts)
	for i := range out {
		out[i].Pods = slices.DeleteFunc(slices.Clone(out[i].Pods), func(p model.Pod) bool { return h[p.UID] != nil })
	}
	return out
}

// sorted returns the held pods by namespace and name.
func (h held) sorted() []*heldPod {
	return slices.SortedFunc(maps.Values(h), func(a, b *heldPod) int { return strings.Compare(a.pod.Key(), b.pod.Key()) })
}

// events returns an event for every hold.
func (h held) events() []events.Event {
	var out []events.Event
	for _, x := range h.sorted() {
		for _, hold := range x.holds {
			out = append(out, events.Event{
				Object: reference(x.pod), Type: corev1.EventTypeWarning, Reason: "LaunchBackoff",
				Message: fmt.Sprintf("The last %d nodes launched for this pod in NodePool %s did not keep it. The next one is launched after %s, or when the pod or the NodePool changes. Check who taints or removes new nodes",
					hold.Launches, hold.Pool, hold.Until.UTC().Format(time.RFC3339)),
				Timeout: failedTimeout, Limit: events.Limit{PerSecond: 5, Burst: 10},
			})
		}
	}
	return out
}

// mark brings the condition LaunchBackoff of every NodePool up to date. A
// NodePool that has changed meanwhile is left to the next pass.
func (p *Provisioner) mark(ctx context.Context, s *scope) error {
	for _, name := range slices.Sorted(maps.Keys(s.pools)) {
		stored := s.pools[name]
		message := s.held.message(name)
		if was := conditions.Get(stored, v1.LaunchBackoffCondition); was == nil && message == "" || was != nil && was.Message == message {
			continue
		}
		pool := stored.DeepCopy()
		set := pool.StatusConditions(s.now)
		if message != "" {
			set.Set(metav1.Condition{Type: v1.LaunchBackoffCondition, Status: metav1.ConditionTrue, Reason: v1.NodesDidNotKeepPodsReason, Message: message})
		} else if err := set.Clear(v1.LaunchBackoffCondition); err != nil {
			return err
		}
		err := p.Client.Status().Patch(ctx, pool, client.MergeFromWithOptions(stored, client.MergeFromWithOptimisticLock{}))
		if err != nil && !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) {
			return fmt.Errorf("patch status of node pool %s: %w", name, err)
		}
	}
	return nil
}

// message says for how many pods launches in the NodePool are delayed; "" =
// for none.
func (h held) message(pool string) string {
	first, n := "", 0
	for _, x := range h.sorted() {
		for _, hold := range x.holds {
			if hold.Pool != pool {
				continue
			}
			if n++; n == 1 {
				first = fmt.Sprintf("%s (%d nodes since %s)", x.pod.Key(), hold.Launches, hold.Since.UTC().Format(time.RFC3339))
			}
		}
	}
	if n == 0 {
		return ""
	}
	return fmt.Sprintf("Launches are delayed for %d pods that new nodes did not keep, such as %s", n, first)
}
