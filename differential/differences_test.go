package differential

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// difference is a case in which we and the scheduler may disagree, with the
// reason why that is right.
type difference struct {
	name    string
	why     string
	excuses func(*mismatch) bool // reports whether the mismatch is one of these
}

// differences lists all that is known.
func differences() []difference {
	return []difference{
		{
			"the pod uses what is not supported yet",
			"such a pod is refused with a reason, although the scheduler may know a node for it",
			refused("(not supported yet)"),
		},
		{
			"the pod asks for a label that is decided per node",
			"a selector on kubernetes.io/hostname or in a reserved domain is refused: no node can be launched for it, and a node that is there is the scheduler's affair",
			refused("is restricted"),
		},
		{
			"the pod compares a label with no natural number",
			"Gt and Lt take natural numbers only, as in NodePools; the scheduler takes negative ones as well",
			refused("needs a non-negative integer"),
		},
		{
			"a pod that runs keeps others away",
			"required anti-affinity of running pods is not looked at yet",
			func(m *mismatch) bool {
				return slices.ContainsFunc(m.situation.pods, func(p *corev1.Pod) bool {
					return p.Spec.NodeName != "" && p.Spec.Affinity != nil && p.Spec.Affinity.PodAntiAffinity != nil
				})
			},
		},
	}
}

// refused returns whether we refuse the pod for that.
func refused(text string) func(*mismatch) bool {
	return func(m *mismatch) bool {
		return m.verdict != nil && slices.ContainsFunc(m.shape().Refused, func(what string) bool { return strings.Contains(what, text) })
	}
}

// excuses counts the differences that were needed.
type excuses map[string]int

// find returns whether a difference covers the mismatch, and counts it.
func (e excuses) find(m *mismatch) bool {
	for _, d := range differences() {
		if d.excuses(m) {
			e[d.name]++
			return true
		}
	}
	return false
}

// report prints how often each difference was needed.
func (e excuses) report(t *testing.T) {
	t.Helper()
	for _, d := range differences() {
		t.Logf("%5d × %s", e[d.name], d.name)
	}
}
