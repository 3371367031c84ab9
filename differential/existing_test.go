// SPDX-License-Identifier: Apache-2.0

package differential

import (
	"flag"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"

	kwokv1alpha1 "karpenter/api/kwok/v1alpha1"
	v1 "karpenter/api/v1"
	"karpenter/kube/convert"
	"karpenter/model"
)

// seeds multiplies how many situations each test draws.
var (
	seeds = flag.Int("seeds", 1, "multiply the number of seeds by this")
	stop  = flag.Int("stop", 5, "stop after so many situations that fail")
	only  = flag.Int("seed", -1, "run this seed alone and show its situation")
)

func nodeClass() v1.NodeClassReference {
	return v1.NodeClassReference{Group: kwokv1alpha1.Group, Kind: kwokv1alpha1.Kind, Name: "default"}
}

func converter(labels v1.Labels) convert.Converter {
	return convert.Converter{Axis: model.NewAxis(), Labels: labels, Manages: func(*v1.NodeClassReference) bool { return true }}
}

// each runs the check on n seeds, as subtests only where they fail.
func each(t *testing.T, n int, check func(seed int) (s *situation, snapshot *model.Snapshot, wrong []string)) {
	from, to := 0, n**seeds
	if *only >= 0 {
		from, to = *only, *only+1
	}
	t.Logf("%d situations, seeds %d to %d", to-from, from, to-1)
	failed := 0
	for seed := from; seed < to && failed < *stop; seed++ {
		s, snapshot, wrong := check(seed)
		if len(wrong) == 0 && *only < 0 {
			continue
		}
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			for _, text := range wrong {
				t.Error(text)
			}
			s.show(t, snapshot)
		})
		if len(wrong) > 0 {
			failed++
		}
	}
}

// One pod, one node: we place it if and only if the scheduler would.
func TestOnePodOneNode(t *testing.T) {
	testExisting(t, 12000, func(g dice) *situation { return g.situation(1, 1) }, except(perNode(), naturalNumbers(), comparing()).also(leavingDrawsNobody()))
}

// Several pods, several nodes: the scheduler accepts the placements in turn,
// and accepts none of the pods we leave once that is done.
func TestPodsAndNodes(t *testing.T) {
	testExisting(t, 4000, func(g dice) *situation { return g.situation(2+g.IntN(4), 2+g.IntN(6)) }, except(perNode(), naturalNumbers(), comparing()).also(leavingDrawsNobody()))
}

// One pod among others it may have to keep to or away from: we place it if and
// only if the scheduler would.
func TestOnePodAmongPeers(t *testing.T) {
	testExisting(t, 4000, func(g dice) *situation { return g.neighbourhood() }, except(misreadNamespaces(), leavingDrawsNobody()))
}

func testExisting(t *testing.T, n int, draw func(dice) *situation, used *excuses, defaults ...corev1.TopologySpreadConstraint) {
	t.Helper()
	scheduler, total := newScheduler(t, defaults...), tally{}
	each(t, n, func(seed int) (*situation, *model.Snapshot, []string) {
		s := draw(newDice(seed, labelKeys()))
		snapshot := s.world(converter(v1.DefaultLabels())).Snapshot(now())
		j := judge{scheduler: scheduler, situation: s, snapshot: snapshot, used: used, tally: total}
		made, err := attempt(snapshot)
		if err != nil {
			return s, nil, []string{err.Error()}
		}
		j.existing(made)
		return s, snapshot, j.wrong
	})
	total.check(t, used)
}

// existing checks a plan that launches nothing. The daemons a node will run
// are on it first: room is kept for them.
func (j *judge) existing(plan *model.Plan) {
	j.scheduler.know(j.situation)
	j.nodes, j.pods = j.situation.settled(), j.situation.pods
	for _, n := range j.nodes {
		j.bindDaemons(n)
	}
	j.account(plan)
	j.bind(j.placements(plan))
	if len(j.wrong) == 0 {
		j.offer(j.leftovers(plan), j.nodes...)
	}
}
