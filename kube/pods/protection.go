// SPDX-License-Identifier: Apache-2.0

package pods

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	v1 "karpenter/api/v1"
	"karpenter/kube/events"
)

// Protection is the meaning of a pod's do-not-disrupt annotation at a point in
// time.
type Protection struct {
	Kind ProtectionKind
	// Until is the end of a protection for a time; zero while the pod has no
	// start time, from which it counts.
	Until time.Time
	// Text is the annotation's value.
	Text string
}

// ProtectionKind is the kind of a Protection.
type ProtectionKind int

// The kinds of Protection.
const (
	Unprotected       ProtectionKind = iota // no annotation
	InvalidProtection                       // a value that cannot be parsed; ignored
	ProtectedForever                        // "true"
	ProtectedUntil                          // a duration that has not passed
	ProtectionElapsed                       // a duration that has passed
)

// ProtectionOf reads the pod's do-not-disrupt annotation. It does not look at
// whether the pod is still active.
func ProtectionOf(p *corev1.Pod, now time.Time) Protection {
	text, ok := p.Annotations[v1.DoNotDisruptAnnotationKey]
	if !ok {
		return Protection{}
	}
	if text == "true" {
		return Protection{Kind: ProtectedForever, Text: text}
	}
	d, err := time.ParseDuration(text)
	if err != nil || d <= 0 {
		return Protection{Kind: InvalidProtection, Text: text}
	}
	if p.Status.StartTime == nil {
		return Protection{Kind: ProtectedUntil, Text: text}
	}
	until := p.Status.StartTime.Add(d)
	if now.Before(until) {
		return Protection{Kind: ProtectedUntil, Until: until, Text: text}
	}
	return Protection{Kind: ProtectionElapsed, Until: until, Text: text}
}

// InForce reports whether the pod may not be disrupted.
func (p Protection) InForce() bool {
	return p.Kind == ProtectedForever || p.Kind == ProtectedUntil
}

// Disruptable reports whether the pod itself permits the disruption of its
// node: it has ended, is terminating, or is not protected.
func Disruptable(p *corev1.Pod, now time.Time) bool {
	return !Active(p) || !ProtectionOf(p, now).InForce()
}

// Events returns the events for the pod's owner about its protection: at most
// one.
func (p Protection) Events(pod *corev1.Pod) []events.Event {
	e := events.Event{Object: pod, Type: corev1.EventTypeNormal}
	switch p.Kind {
	case InvalidProtection:
		e.Type, e.Reason = corev1.EventTypeWarning, "InvalidDoNotDisruptAnnotation"
		e.Message = fmt.Sprintf("Ignoring annotation %s=%q: want \"true\" or a positive duration such as 30m", v1.DoNotDisruptAnnotationKey, p.Text)
		e.Dedupe = []string{string(pod.UID), p.Text}
	case ProtectedUntil:
		if p.Until.IsZero() {
			return nil
		}
		end := p.Until.UTC().Format(time.RFC3339)
		e.Reason, e.Message = "DoNotDisruptUntil", "Not to be disrupted until "+end
		e.Dedupe = []string{string(pod.UID), end}
	case ProtectionElapsed:
		e.Reason = "DoNotDisruptGracePeriodElapsed"
		e.Message = fmt.Sprintf("May be disrupted: the %s asked for by annotation %s have passed", p.Text, v1.DoNotDisruptAnnotationKey)
	default:
		return nil
	}
	return []events.Event{e}
}
