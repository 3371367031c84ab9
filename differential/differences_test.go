// SPDX-License-Identifier: Apache-2.0

package differential

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/nodevolumelimits"
	"k8s.io/utils/ptr"
)

// difference is a case in which we and the scheduler may disagree, with the
// reason why that is right.
type difference struct {
	name    string
	why     string
	excuses func(*mismatch) bool // reports whether the mismatch is one of these
}

// perNode and naturalNumbers are pods we refuse.
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
		"a domain in which a pool can launch a node counts although no node is there (spec 20/90, 20/93), and by hostname the next node is one with no such pod; the scheduler knows only the nodes that are there",
		(*mismatch).crowds,
	}
}

// localMoves, staticWaits, oneByOne and sharedCountsOnce are about volumes.
func localMoves() difference {
	return difference{
		"the pod uses a local volume",
		"a local volume is not looked for on the node that has it, so that its pod is planned although the node is going away (spec 20/78)",
		func(m *mismatch) bool {
			return slices.ContainsFunc(m.situation.storage.claimsOf(m.pod), m.situation.storage.isLocal)
		},
	}
}

func staticWaits() difference {
	return difference{
		"the pod waits for a volume that nothing provisions",
		"what makes volumes of a class without a provisioner makes them where a node is, so a node is planned first; the scheduler waits for the volume",
		func(m *mismatch) bool {
			return m.verdict == nil && slices.ContainsFunc(m.situation.storage.claimsOf(m.pod), func(c *corev1.PersistentVolumeClaim) bool {
				return c.Spec.VolumeName == "" && ptr.Deref(c.Spec.StorageClassName, "") == "static"
			})
		},
	}
}

func oneByOne() difference {
	return difference{
		"pods that wait share a claim that one pod at a time may use",
		"each is planned for as long as none of them runs: who comes first is for the scheduler to say, and one that never comes must not keep the others waiting",
		func(m *mismatch) bool {
			return m.verdict == nil && slices.ContainsFunc(m.situation.storage.claimsOf(m.pod), func(c *corev1.PersistentVolumeClaim) bool {
				return slices.Contains(c.Spec.AccessModes, corev1.ReadWriteOncePod) && slices.ContainsFunc(m.situation.pods, func(p *corev1.Pod) bool {
					return p.UID != m.pod.UID && p.Spec.NodeName == "" && uses(p, c)
				})
			})
		},
	}
}

func sharedCountsOnce() difference {
	return difference{
		"pods on new nodes share a claim",
		"a claim counts with the first of its pods only, so that a new node may be planned with one more volume than it attaches; the pod that is left over is planned again once the node says what it has attached",
		func(m *mismatch) bool {
			return m.verdict == nil && m.situation.node(m.node.Name) == nil && strings.HasPrefix(m.refusal, nodevolumelimits.CSIName) &&
				slices.ContainsFunc(m.situation.storage.claimsOf(m.pod), func(c *corev1.PersistentVolumeClaim) bool {
					return slices.ContainsFunc(m.situation.pods, func(p *corev1.Pod) bool { return p.UID != m.pod.UID && uses(p, c) })
				})
		},
	}
}

// leavingDrawsNobody is about pod affinity.
func leavingDrawsNobody() difference {
	return difference{
		"the pod has affinity to pods that are going away",
		"affinity to pods that are terminating does not count (spec 20/94): they will be gone when a node has started; the scheduler lets the pod follow them, and nowhere else, until then",
		(*mismatch).followsLeaving,
	}
}

func leavingKeepsAway() difference {
	return difference{
		"pods that go away with their node want the pod elsewhere",
		"required anti-affinity holds until the pod that has it is gone; the plan is carried out here once it is",
		(*mismatch).waitsForLeft,
	}
}

// daemonsOfSomeZones is about new nodes.
func daemonsOfSomeZones() difference {
	return difference{
		"a DaemonSet runs in some zones only",
		"its room is kept on every type that is offered there: a launch may become a machine there; in other zones the scheduler has that room for other pods",
		(*mismatch).crampedElsewhere,
	}
}

func daemonsToCome() difference {
	return difference{
		"the pod has affinity to pods of DaemonSets, or against them",
		"of the pods that DaemonSets will run on a node only requests and ports are planned with; affinity sees those that are there",
		(*mismatch).lacksDaemons,
	}
}

// undecidedMachines is about launches and claims on their way.
func undecidedMachines() difference {
	return difference{
		"a machine on its way may become one that keeps the pod away",
		"until it is known where it starts and what it is, its pods count wherever it could be (spec 20/125), label by label, and nowhere for certain; in the plan that is carried out it has become one machine",
		(*mismatch).undecided,
	}
}

// greedyDaemons is about new nodes.
func greedyDaemons() difference {
	return difference{
		"the daemons of a new node ask for more than it has",
		"a machine too small for the daemons that will run there is not bought (spec 20/60); the scheduler leaves out a daemon that does not fit, and takes another pod",
		(*mismatch).overdrawn,
	}
}

// refused returns whether we refuse the pod for that.
func refused(text string) func(*mismatch) bool {
	return func(m *mismatch) bool {
		return m.verdict != nil && slices.ContainsFunc(m.shape().Refused, func(what string) bool { return strings.Contains(what, text) })
	}
}

// excuses are the differences that may be in a test.
type excuses struct {
	list []excuse
	seed int // of the situation that is judged
}

// excuse is a difference that may be in a test, and how often it was.
type excuse struct {
	difference
	proof int  // the seed of a situation that must show it; 0 = those that are drawn must
	luck  bool // nothing must
	used  int
	last  int // the last seed that showed it
}

// except returns the differences that a test shows often.
func except(list ...difference) *excuses {
	e := &excuses{}
	for _, d := range list {
		e.list = append(e.list, excuse{difference: d})
	}
	return e
}

// rarely allows a difference that the drawn situations may not show. That of the
// seed must.
func (e *excuses) rarely(d difference, seed int) *excuses {
	e.list = append(e.list, excuse{difference: d, proof: seed})
	return e
}

// also allows differences that it takes luck to meet in this test; another
// shows them.
func (e *excuses) also(list ...difference) *excuses {
	for _, d := range list {
		e.list = append(e.list, excuse{difference: d, luck: true})
	}
	return e
}

// find returns whether a difference covers the mismatch, and counts it.
func (e *excuses) find(m *mismatch) bool {
	i := slices.IndexFunc(e.list, func(d excuse) bool { return d.excuses(m) })
	if i < 0 {
		return false
	}
	e.list[i].used++
	e.list[i].last = e.seed
	return true
}

// prove has the situations judged that must show a difference.
func (e *excuses) prove(t *testing.T, judge func(seed int)) {
	t.Helper()
	for i := range e.list {
		d := &e.list[i]
		if d.proof == 0 {
			continue
		}
		e.seed = d.proof
		if judge(d.proof); d.last != d.proof {
			t.Errorf("seed %d no longer shows that %s; name one that does, which -v -args -seeds=10 finds, or delete the difference", d.proof, d.name)
		}
	}
}

// report prints how often each difference was met. What a test does not show
// it should not list.
func (e *excuses) report(t *testing.T) {
	t.Helper()
	for _, d := range e.list {
		if d.used == 0 && !d.luck {
			t.Errorf("nothing shows that %s", d.name)
		}
		if d.used > 0 {
			t.Logf("%5d × %s, the last at seed %d: %s", d.used, d.name, d.last, d.why)
		}
	}
}
