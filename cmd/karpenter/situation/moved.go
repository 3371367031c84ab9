// SPDX-License-Identifier: Apache-2.0

package situation

import (
	"cmp"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"karpenter/kube/events"
)

// succession is how long after an eviction a new pod is taken for the successor of the pod
// that was evicted.
const succession = 5 * time.Minute

// Moved returns when the pods were evicted whose successors the pods are, as the events of the
// last hour show. Who succeeds whom is not written anywhere: of the pods of one owner, the first
// that is created succeeds the first that is evicted.
func Moved(happened []*corev1.Event, pods []*corev1.Pod) map[*corev1.Pod]time.Time {
	var evictions []*corev1.Event
	for _, e := range happened {
		ours := e.Source.Component == events.Source || e.ReportingController == events.Source
		if ours && e.Reason == "Evicted" && e.InvolvedObject.Kind == "Pod" {
			evictions = append(evictions, e)
		}
	}
	if len(evictions) == 0 {
		return nil
	}
	slices.SortStableFunc(evictions, func(a, b *corev1.Event) int { return a.LastTimestamp.Compare(b.LastTimestamp.Time) })
	young := slices.SortedStableFunc(slices.Values(pods), func(a, b *corev1.Pod) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
	})
	out := map[*corev1.Pod]time.Time{}
	for _, e := range evictions {
		i := slices.IndexFunc(young, func(p *corev1.Pod) bool {
			_, taken := out[p]
			after := p.CreationTimestamp.Sub(e.LastTimestamp.Truncate(time.Second))
			return !taken && p.UID != e.InvolvedObject.UID && after >= 0 && after <= succession && alike(p, &e.InvolvedObject)
		})
		if i >= 0 {
			out[young[i]] = e.LastTimestamp.Time
		}
	}
	return out
}

// alike reports whether the pod and the one that is gone had the same owner, by their names: a
// StatefulSet gives the same name again, others add a word of their own to the owner's.
func alike(p *corev1.Pod, gone *corev1.ObjectReference) bool {
	owner := metav1.GetControllerOf(p)
	if owner == nil || p.Namespace != gone.Namespace {
		return false
	}
	at := strings.LastIndexByte(gone.Name, '-')
	return p.Name == gone.Name || owner.Kind != "StatefulSet" && at > 0 && gone.Name[:at] == owner.Name
}
