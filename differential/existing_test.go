// SPDX-License-Identifier: Apache-2.0

package differential

import (
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
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
	first = flag.Int("first", rand.IntN(1<<40), "the first of the seeds")
	only  = flag.Int("seed", -1, "run this seed alone and show its situation")
)

func nodeClass() v1.NodeClassReference {
	return v1.NodeClassReference{Group: kwokv1alpha1.Group, Kind: kwokv1alpha1.Kind, Name: "default"}
}

func converter(labels v1.Labels) convert.Converter {
	return convert.Converter{Axis: model.NewAxis(), Labels: labels, Manages: func(*v1.NodeClassReference) bool { return true }}
}

// mayForget is the share of plans that may leave a pod that could run; see
// docs/differences.md for what is measured.
const mayForget = 0.001

// findings are what is wrong with a plan.
type findings struct {
	wrong     []string // what the scheduler would not do
	forgotten []string // pods it would place that the plan leaves
}

// each runs the check on the seeds that must show a difference and on n others, as
// subtests only where they fail. In a share of the others a pod may be forgotten;
// more are by chance, at most four standard deviations.
func each(t *testing.T, n int, share float64, used *excuses, check func(seed int) (*situation, *model.Snapshot, findings)) {
	from, to := *first, *first+n**seeds
	if *only >= 0 {
		from, to = *only, *only+1
	} else {
		used.prove(t, func(seed int) { check(seed) })
	}
	t.Logf("%d situations, seeds %d to %d", to-from, from, to-1)
	failed, expected := 0, share*float64(to-from)
	pass := int(expected + 4*math.Sqrt(expected))
	for seed := from; seed < to && failed < *stop; seed++ {
		used.seed = seed
		s, snapshot, found := check(seed)
		wrong := found.wrong
		if len(wrong) == 0 && len(found.forgotten) > 0 && pass > 0 {
			pass--
			t.Logf("seed %d, which is let pass: %s", seed, found.forgotten[0])
			continue
		}
		wrong = append(wrong, found.forgotten...)
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
	testExisting(t, 12000, func(g dice) *situation { return g.situation(1, 1) },
		except(perNode()).rarely(naturalNumbers(), 759004971700).also(leavingDrawsNobody()))
}

// Several pods, several nodes: the scheduler accepts the placements in turn,
// and accepts none of the pods we leave once that is done.
func TestPodsAndNodes(t *testing.T) {
	testExisting(t, 4000, func(g dice) *situation { return g.situation(2+g.IntN(4), 2+g.IntN(6)) },
		except(perNode(), naturalNumbers()).also(leavingDrawsNobody()))
}

// One pod among others it may have to keep to or away from: we place it if and
// only if the scheduler would.
func TestOnePodAmongPeers(t *testing.T) {
	testExisting(t, 4000, func(g dice) *situation { return g.neighbourhood() }, except().rarely(leavingDrawsNobody(), 759004964935))
}

func testExisting(t *testing.T, n int, draw func(dice) *situation, used *excuses, defaults ...corev1.TopologySpreadConstraint) {
	t.Helper()
	scheduler, total := newScheduler(t, defaults...), tally{}
	each(t, n, 0, used, func(seed int) (*situation, *model.Snapshot, findings) {
		s := draw(newDice(seed, labelKeys()))
		snapshot := s.world(converter(v1.DefaultLabels())).Snapshot(now())
		j := judge{scheduler: scheduler, situation: s, snapshot: snapshot, used: used, tally: total}
		made, err := attempt(snapshot)
		if err != nil {
			return s, nil, findings{wrong: []string{err.Error()}}
		}
		j.existing(made)
		return s, snapshot, j.findings
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
