package differential

import (
	"flag"
	"fmt"
	"strings"
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
	failed := 0
	for seed := from; seed < to && failed < 5; seed++ {
		s, snapshot, wrong := check(seed)
		if len(wrong) == 0 && *only < 0 {
			continue
		}
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			for _, text := range wrong {
				failed++
				t.Error(text)
			}
			s.show(t, snapshot)
		})
	}
}

// One pod, one node: we place it if and only if the scheduler would.
func TestOnePodOneNode(t *testing.T) {
	testExisting(t, 12000, func(dice) (nodes, pods int) { return 1, 1 })
}

// Several pods, several nodes: the scheduler accepts each placement in turn,
// and accepts none of the pods we leave once that is done.
func TestPodsAndNodes(t *testing.T) {
	testExisting(t, 4000, func(g dice) (nodes, pods int) { return 2 + g.IntN(4), 2 + g.IntN(6) })
}

func testExisting(t *testing.T, n int, size func(dice) (nodes, pods int)) {
	scheduler, used, total := newScheduler(t), excuses{}, tally{}
	each(t, n, func(seed int) (*situation, *model.Snapshot, []string) {
		g := newDice(seed, labelKeys())
		s := g.situation(size(g))
		snapshot := s.world(converter(v1.DefaultLabels())).Snapshot(now())
		j := judge{scheduler: scheduler, situation: s, snapshot: snapshot, used: used, tally: total}
		j.existing(plan(snapshot))
		return s, snapshot, j.wrong
	})
	total.check(t, used)
}

// tally counts pods placed and left, and why the scheduler refuses nodes to
// those that are left.
type tally map[string]int

// check reports the counts. Too few of either kind would mean that the test
// shows little.
func (c tally) check(t *testing.T, used excuses) {
	t.Helper()
	t.Logf("pods: %v", c)
	if *only >= 0 {
		return
	}
	used.report(t)
	if c["placed"] < c["left"]/10 || c["left"] < c["placed"]/10 {
		t.Error("the draw is too lopsided to show anything")
	}
}

// judge carries a plan out as the scheduler would.
type judge struct {
	scheduler *scheduler
	situation *situation
	snapshot  *model.Snapshot
	used      excuses
	tally     tally

	nodes    []*corev1.Node // as they will be
	pods     []*corev1.Pod  // with what has been bound so far
	leftover []leftover
	wrong    []string
}

// leftover is a pod that we find no place for.
type leftover struct {
	pod     *corev1.Pod
	verdict model.Verdict
}

func (j *judge) fail(format string, args ...any) {
	j.wrong = append(j.wrong, fmt.Sprintf(format, args...))
}

// existing checks a plan that launches nothing. The daemons a node will run
// are on it first: room is kept for them.
func (j *judge) existing(plan *model.Plan) {
	j.nodes, j.pods = j.situation.settled(), j.situation.pods
	for _, n := range j.nodes {
		j.bindDaemons(n)
	}
	for _, p := range plan.Placements {
		j.tally["placed"]++
		if why := j.bind(j.situation.pod(p.Pod.Key()), p.Node); why != "" && !j.used.find(j.situation, nil) {
			j.fail("we plan pod %s on node %s; the scheduler refuses: %s", p.Pod.Key(), p.Node, why)
		}
	}
	for _, v := range plan.Verdicts {
		for _, ref := range v.Pods {
			j.leave(ref, v)
		}
	}
	for _, n := range j.nodes {
		j.offer(n)
	}
}

func (j *judge) leave(ref model.Pod, verdict model.Verdict) {
	j.tally["left"]++
	j.leftover = append(j.leftover, leftover{j.situation.pod(ref.Key()), verdict})
}

// offer checks that the scheduler refuses the node to every pod that is left.
func (j *judge) offer(n *corev1.Node) {
	j.scheduler.see(j.nodes, j.pods)
	for _, l := range j.leftover {
		why := j.scheduler.refusal(l.pod, n.Name)
		if plugin, _, refused := strings.Cut(why, ":"); refused {
			j.tally["refused by "+plugin]++
			continue
		}
		if !j.used.find(j.situation, l.verdict.Shape) {
			j.fail("we find no place for pod %s/%s (%s); the scheduler accepts node %s", l.pod.Namespace, l.pod.Name, l.verdict.String(), n.Name)
		}
	}
}

// bindDaemons puts on the node the pods of its daemons that are not there.
func (j *judge) bindDaemons(n *corev1.Node) {
	for _, d := range j.situation.daemons {
		pod := daemonPod(d, n)
		if pod == nil {
			continue
		}
		name(pod, d.Namespace, d.Name+"-"+n.Name)
		if j.situation.pod(pod.Namespace+"/"+pod.Name) == nil {
			j.pods = append(j.pods, pod)
		}
	}
}

// bind binds the pod, and returns what the scheduler has against it.
func (j *judge) bind(pod *corev1.Pod, node string) string {
	j.scheduler.see(j.nodes, j.pods)
	why := j.scheduler.refusal(pod, node)
	bound := pod.DeepCopy()
	bound.Spec.NodeName = node
	j.pods = append(j.pods, bound)
	return why
}
