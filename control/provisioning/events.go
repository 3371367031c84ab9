// SPDX-License-Identifier: Apache-2.0

package provisioning

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	v1 "karpenter/api/v1"
	"karpenter/kube/events"
	"karpenter/model"
)

const (
	// failedTimeout is the least time between two events about one pod that
	// has no place.
	failedTimeout = 5 * time.Minute
	// remindAfter is when an event with an unchanged reason is repeated.
	// Clusters keep events for an hour.
	remindAfter = 30 * time.Minute
	// longest is the maximum length of an event's message.
	longest = 1024
	// failedPrefix is how events about pods without a place begin.
	failedPrefix = "Failed to schedule pod, "
)

// reference returns an object that stands for the pod in events.
func reference(p model.Pod) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: p.Namespace, Name: p.Name, UID: types.UID(p.UID)}}
}

func nominated(p model.Pod, where string) events.Event {
	return events.Event{
		Object: reference(p), Type: corev1.EventTypeNormal, Reason: "Nominated",
		Message: "Pod should run on " + where,
		Limit:   events.Limit{PerSecond: 5, Burst: 10},
	}
}

func failedScheduling(p model.Pod, verdict string) events.Event {
	return events.Event{
		Object: reference(p), Type: corev1.EventTypeWarning, Reason: "FailedScheduling",
		Message: cut(failedPrefix + verdict),
		Timeout: failedTimeout,
	}
}

func noCompatibleInstanceTypes(pool *v1.NodePool, verdict model.PoolVerdict) events.Event {
	return events.Event{
		Object: pool, Type: corev1.EventTypeWarning, Reason: "NoCompatibleInstanceTypes",
		Message: cut("The requirements of the NodePool leave no instance type, " + verdict.String()),
		Timeout: time.Minute,
	}
}

// place names a node of the Snapshot in the words of an event.
func place(n *model.Node) string {
	switch {
	case n.Claim == "":
		return "node/" + n.Name
	case !n.Registered:
		return "nodeclaim/" + n.Claim
	}
	return fmt.Sprintf("node/%s, nodeclaim/%s", n.Name, n.Claim)
}

// cut shortens what is too long for an event.
func cut(text string) string {
	if len(text) <= longest {
		return text
	}
	const mark = "…"
	end := longest - len(mark)
	for end > 0 && text[end]&0xC0 == 0x80 { // inside a character
		end--
	}
	return text[:end] + mark
}

// told remembers the events about pods without a place, so that an unchanged
// event is not repeated.
type told map[string]saying // by pod UID

type saying struct {
	text string
	at   time.Time
}

// news returns the events that are new, and forgets pods that are not in the
// verdicts.
func (t *told) news(verdicts []model.Verdict, now time.Time) []events.Event {
	next := told{}
	var out []events.Event
	for _, v := range verdicts {
		const room = longest - len(failedPrefix)
		common := v.Brief(room)
		for _, p := range v.Pods {
			if !exists(p) {
				continue
			}
			text := common
			if p.Claims != "" {
				text = v.For(p).Brief(room)
			}
			last, known := (*t)[p.UID]
			if known && now.Before(last.at.Add(failedTimeout)) || last.text == text && now.Before(last.at.Add(remindAfter)) {
				next[p.UID] = last
				continue
			}
			next[p.UID] = saying{text, now}
			out = append(out, failedScheduling(p, text))
		}
	}
	*t = next
	return out
}
