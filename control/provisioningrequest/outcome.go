// SPDX-License-Identifier: Apache-2.0

package provisioningrequest

import (
	"fmt"
	"hash/maphash"
	"slices"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	autoscalingv1 "karpenter/api/autoscaling/v1"
	"karpenter/kube/standins"
	"karpenter/model"
	"karpenter/world"
)

// notFound is the reason of conditions that Kueue and cluster-autoscaler know.
const notFound = "CapacityIsNotFound"

// outcome is what a pass has planned for the pods of one request.
type outcome struct {
	pods     uint64   // which pods these are, as identity has it
	there    int      // on initialized nodes
	coming   int      // on nodes that start or are launched
	unplaced int      // nowhere
	why      string   // of the first that is unplaced
	nodes    []string // that they have places on
}

func (o outcome) total() int { return o.there + o.coming + o.unplaced }

func (o outcome) same(p outcome) bool {
	return o.pods == p.pods && o.there == p.there && o.coming == p.coming && o.unplaced == p.unplaced && o.why == p.why && slices.Equal(o.nodes, p.nodes)
}

// identity returns a number for a UID. The sum of these numbers identifies a
// set of pods, in any order.
func identity(uid string) uint64 { return maphash.String(seed, uid) }

var seed = maphash.MakeSeed()

// Planned records what a pass of provisioning has decided. It does not block.
func (r *Reconciler) Planned(s *model.Snapshot, plan *model.Plan) {
	next := map[string]outcome{}
	standins.Fates(s, plan, func(p model.Pod, f standins.Fate) {
		if _, ours := keyOf(p.Buffer); !ours {
			return
		}
		o := next[p.Buffer]
		o.pods += identity(p.UID)
		switch {
		case f.Why != nil:
			if o.unplaced == 0 {
				o.why = f.Why.String()
			}
			o.unplaced++
		case f.There:
			o.there++
		default:
			o.coming++
		}
		if f.Node != "" {
			o.nodes = append(o.nodes, f.Node)
		}
		next[p.Buffer] = o
	})
	r.mu.Lock()
	defer r.mu.Unlock()
	for name, o := range next {
		slices.Sort(o.nodes)
		o.nodes = slices.Compact(o.nodes)
		next[name] = o
		if key, _ := keyOf(name); !o.same(r.outcomes[name]) {
			r.LookAt(key)
		}
	}
	r.outcomes = next
}

// outcome returns what the latest pass has planned for the request. If the pass knew no
// pods of it, the outcome is empty.
func (r *Reconciler) outcome(key client.ObjectKey) outcome {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.outcomes[nameOf(key)]
}

// outcomeOf returns what the latest pass has planned for these pods of the request, and false
// when it was for others: there was none yet, or the request, its PodTemplates or consumers
// have changed since.
func (r *Reconciler) outcomeOf(key client.ObjectKey, pods []world.Pod) (outcome, bool) {
	o, these := r.outcome(key), uint64(0)
	for i := range pods {
		these += identity(pods[i].UID)
	}
	if o.pods != these || o.total() != len(pods) {
		return outcome{}, false
	}
	return o, true
}

// describe brings the conditions up to date and returns when to look again.
func (r *Reconciler) describe(q *autoscalingv1.ProvisioningRequest, found *resolution) time.Duration {
	now := r.Clock.Now()
	o, known := r.outcomeOf(client.ObjectKeyFromObject(q), found.pods)
	set := func(condition string, status metav1.ConditionStatus, reason, message string) {
		meta.SetStatusCondition(&q.Status.Conditions, metav1.Condition{
			Type: condition, Status: status, Reason: reason, Message: message, ObservedGeneration: q.Generation, LastTransitionTime: metav1.NewTime(now),
		})
	}
	set(autoscalingv1.Accepted, metav1.ConditionTrue, "Accepted", "Karpenter has accepted the request")
	if is := meta.FindStatusCondition(q.Status.Conditions, autoscalingv1.Provisioned); is != nil && is.Status == metav1.ConditionTrue {
		left := is.LastTransitionTime.Add(Booking).Sub(now)
		if left > 0 {
			return min(left, standins.RefreshAfter)
		}
		if known && o.there < o.total() {
			set(autoscalingv1.CapacityRevoked, metav1.ConditionTrue, "CapacityLost", "Nodes of the request are gone, and others could not be had: "+o.why)
		}
		set(autoscalingv1.BookingExpired, metav1.ConditionTrue, "BookingExpired", fmt.Sprintf("The capacity was booked for %s", Booking))
		return 0
	}
	check := q.Spec.ProvisioningClassName == autoscalingv1.CheckCapacity
	switch {
	case found.reason != "":
		set(autoscalingv1.Provisioned, metav1.ConditionFalse, found.reason, found.message)
	case known && o.there == o.total():
		set(autoscalingv1.Provisioned, metav1.ConditionTrue, "CapacityIsFound", fmt.Sprintf("All %d pods have a place on nodes that are ready", o.total()))
		return Booking
	case known && o.unplaced > 0:
		set(autoscalingv1.Provisioned, metav1.ConditionFalse, notFound, o.why)
		if check && q.Spec.Parameters[autoscalingv1.NoRetry] == "true" {
			set(autoscalingv1.Failed, metav1.ConditionTrue, notFound, o.why)
			return 0
		}
	default:
		set(autoscalingv1.Provisioned, metav1.ConditionFalse, "Provisioning", fmt.Sprintf("%d of %d pods have a place on nodes that are ready", o.there, len(found.pods)))
	}
	left, ok := validity(q, now)
	if !ok {
		return standins.RefreshAfter
	}
	if left <= 0 {
		set(autoscalingv1.Failed, metav1.ConditionTrue, notFound, "The request was not provisioned within ValidUntilSeconds: "+meta.FindStatusCondition(q.Status.Conditions, autoscalingv1.Provisioned).Message)
		return 0
	}
	return min(left, standins.RefreshAfter)
}

// validity returns how long the request may still be tried, and false if it may be forever.
func validity(q *autoscalingv1.ProvisioningRequest, now time.Time) (time.Duration, bool) {
	seconds, err := strconv.ParseInt(q.Spec.Parameters[autoscalingv1.ValidUntilSeconds], 10, 32)
	if err != nil {
		return 0, false
	}
	return q.CreationTimestamp.Add(time.Duration(seconds) * time.Second).Sub(now), true
}
