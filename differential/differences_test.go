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

// notSupported, perNode and naturalNumbers are pods we refuse.
func notSupported() difference {
	return difference{
		"the pod uses what is not supported yet",
		"such a pod is refused with a reason, although the scheduler may know a node for it",
		refused("(not supported yet)"),
	}
}

func perNode() difference {
	return difference{
		"the pod asks for a label that is decided per node",
		"a selector on kubernetes.io/hostname or in a reserved domain is refused (spec 20/6, 20/16): no node can be launched for it, and a node that is there is the scheduler's affair",
		refused("is restricted"),
	}
}

func naturalNumbers() difference {
	return difference{
		"the pod compares a label with no natural number",
		"Gt and Lt take natural numbers only, as in NodePools; the scheduler takes negative ones as well",
		refused("needs a non-negative integer"),
	}
}

// everyPlaceCounts is about spread constraints.
func everyPlaceCounts() difference {
	return difference{
		"the pod would be spread unevenly over where nodes can be launched",
		"a domain in which a pool may launch a node counts although no node is there (spec 20/90, 20/93), and by hostname the next node is one with no such pod; the scheduler knows only the nodes that are there",
		(*mismatch).crowds,
	}
}

func othersKeepAway() difference {
	return difference{
		"a pod that runs keeps others away",
		"required anti-affinity of running pods is not looked at yet",
		func(m *mismatch) bool {
			return slices.ContainsFunc(m.situation.pods, func(p *corev1.Pod) bool {
				return p.Spec.NodeName != "" && p.Spec.Affinity != nil && p.Spec.Affinity.PodAntiAffinity != nil
			})
		},
	}
}

// refused returns whether we refuse the pod for that.
func refused(text string) func(*mismatch) bool {
	return func(m *mismatch) bool {
		return m.verdict != nil && slices.ContainsFunc(m.shape().Refused, func(what string) bool { return strings.Contains(what, text) })
	}
}

// excuses are the differences that may be in a test, and how often each was.
type excuses struct {
	list []difference
	used []int
}

func except(list ...difference) *excuses { return &excuses{list, make([]int, len(list))} }

// find returns whether a difference covers the mismatch, and counts it.
func (e *excuses) find(m *mismatch) bool {
	i := slices.IndexFunc(e.list, func(d difference) bool { return d.excuses(m) })
	if i < 0 {
		return false
	}
	e.used[i]++
	return true
}

// report prints how often each difference was met. One that was not should
// not be listed.
func (e *excuses) report(t *testing.T) {
	t.Helper()
	for i, d := range e.list {
		t.Logf("%5d × %s: %s", e.used[i], d.name, d.why)
		if e.used[i] == 0 {
			t.Errorf("nothing shows that %s", d.name)
		}
	}
}
