// SPDX-License-Identifier: Apache-2.0

package differential

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/interpodaffinity"

	v1 "karpenter/api/v1"
	"karpenter/model"
)

// tally counts pods placed and left, and why the scheduler refuses nodes to
// those that are left.
type tally map[string]int

// check reports the counts. Too few of either kind would mean that the test
// shows little.
func (c tally) check(t *testing.T, used *excuses) {
	t.Helper()
	t.Logf("pods: %v", c)
	if *only >= 0 || t.Failed() {
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
	used      *excuses
	tally     tally
	places    func() []*corev1.Node // full nodes where some can be launched; nil = nowhere

	could map[string][]*corev1.Node // other machines that nodes could have become, by name

	nodes []*corev1.Node // as they will be
	pods  []*corev1.Pod  // with what has been bound so far
	findings
}

// mismatch is a verdict of the scheduler that is not ours.
type mismatch struct {
	*judge
	pod     *corev1.Pod
	node    *corev1.Node
	verdict *model.Verdict // why we leave the pod, although the scheduler accepts the node; nil = we place it there
	refusal string         // the scheduler's
}

// shape returns the mismatched pod as we see it.
func (m *mismatch) shape() *model.Shape {
	for i := range m.snapshot.Pending {
		for _, p := range m.snapshot.Pending[i].Pods {
			if p.Namespace == m.pod.Namespace && p.Name == m.pod.Name {
				return m.snapshot.Pending[i].Shape
			}
		}
	}
	return &model.Shape{}
}

// crowds reports whether the scheduler would refuse the node for a spread
// constraint if it saw a node wherever one could be launched, and one more
// like this.
func (m *mismatch) crowds() bool {
	if m.verdict == nil {
		return false
	}
	wider := *m.judge
	wider.nodes = append(slices.Clip(m.nodes), full(m.node, "one-more"))
	if m.places != nil {
		wider.nodes = append(wider.nodes, m.places()...)
	}
	wider.see(m.pods)
	defer m.see(m.pods)
	return strings.HasPrefix(m.scheduler.refusal(anywhere(m.pod), m.node.Name), "PodTopologySpread")
}

// anywhere returns the pod without what it demands of the names of nodes.
func anywhere(p *corev1.Pod) *corev1.Pod {
	if p.Spec.Affinity == nil || p.Spec.Affinity.NodeAffinity == nil || p.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution == nil {
		return p
	}
	p = p.DeepCopy()
	terms := p.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms
	for i := range terms {
		if len(terms[i].MatchFields) > 0 {
			terms[i].MatchFields = nil
			terms[i].MatchExpressions = append(terms[i].MatchExpressions, corev1.NodeSelectorRequirement{Key: corev1.LabelHostname, Operator: corev1.NodeSelectorOpExists})
		}
	}
	return p
}

// followsLeaving reports whether only pods that are going away make the
// difference to the pod's affinity.
func (m *mismatch) followsLeaving() bool {
	m.see(slices.DeleteFunc(slices.Clone(m.pods), func(p *corev1.Pod) bool { return p.DeletionTimestamp != nil }))
	defer m.see(m.pods)
	without := m.scheduler.refusal(m.pod, m.node.Name)
	if m.verdict == nil {
		return without == "" && m.refusal == notNear
	}
	return without == notNear
}

const notNear = interpodaffinity.Name + ": " + interpodaffinity.ErrReasonAffinityRulesNotMatch

// lacksDaemons reports whether only pods of DaemonSets that are not there yet
// make the difference to what the pod wants of others.
func (m *mismatch) lacksDaemons() bool {
	m.see(slices.DeleteFunc(slices.Clone(m.pods), func(p *corev1.Pod) bool {
		owner := metav1.GetControllerOf(p)
		return owner != nil && owner.Kind == "DaemonSet" && m.situation.pod(p.Namespace+"/"+p.Name) == nil
	}))
	defer m.see(m.pods)
	without := m.scheduler.refusal(m.pod, m.node.Name)
	if m.verdict == nil {
		return without == "" && strings.HasPrefix(m.refusal, interpodaffinity.Name)
	}
	return strings.HasPrefix(without, interpodaffinity.Name)
}

// undecided reports whether the scheduler would refuse the node if others had
// become other machines that they could be: some of many ways for that. Where the
// node itself was on its way, there may be one of each kind it could become, and
// what runs on it may be on another.
func (m *mismatch) undecided() bool {
	if m.verdict == nil || len(m.could) == 0 {
		return false
	}
	defer m.see(m.pods)
	g := newDice(0, nil)
	for range 500 {
		changed := *m.judge
		changed.nodes = slices.Clone(m.nodes)
		for i, n := range m.nodes {
			if others := m.could[n.Name]; len(others) > 0 && n.Name != m.node.Name {
				changed.nodes[i] = crossed(g, others)
			}
		}
		pods := m.pods
		if m.ordered() {
			other := full(crossed(g, m.could[m.node.Name]), "elsewhere")
			changed.nodes = append(changed.nodes, other)
			if g.maybe(50) {
				pods = moved(m.pods, m.node.Name, other.Name)
			}
		}
		if g.maybe(50) && m.places != nil {
			changed.nodes = append(changed.nodes, m.places()...)
		}
		changed.see(pods)
		if m.scheduler.refusal(m.pod, m.node.Name) != "" {
			return true
		}
	}
	return false
}

// moved returns the pods with those of one node on another.
func moved(pods []*corev1.Pod, from, to string) []*corev1.Pod {
	out := slices.Clone(pods)
	for i, p := range out {
		if p.Spec.NodeName == from {
			out[i] = p.DeepCopy()
			out[i].Spec.NodeName = to
		}
	}
	return out
}

// ordered reports whether the node is a machine that was on its way before the plan.
func (m *mismatch) ordered() bool {
	return slices.ContainsFunc(m.situation.claims, func(c *v1.NodeClaim) bool { return c.Name == m.node.Name })
}

// crossed returns a node with labels of any of the nodes, taken one by one:
// what a node may become is planned with label by label. A value that few of the
// nodes have is as likely as another.
func crossed(g dice, nodes []*corev1.Node) *corev1.Node {
	n := pick(g, nodes...).DeepCopy()
	for _, key := range []string{corev1.LabelTopologyZone, corev1.LabelArchStable} {
		var values []string
		for _, other := range nodes {
			if v := other.Labels[key]; !slices.Contains(values, v) {
				values = append(values, v)
			}
		}
		n.Labels[key] = pick(g, values...)
	}
	return n
}

// waitsForLeft reports whether pods that are going away with their node keep
// the pod off.
func (m *mismatch) waitsForLeft() bool {
	if m.verdict == nil {
		return false
	}
	wider := *m.judge
	for _, n := range m.situation.nodes {
		if n.DeletionTimestamp != nil {
			wider.nodes = append(slices.Clip(wider.nodes), n)
		}
	}
	gone := slices.DeleteFunc(slices.Clone(m.situation.pods), func(p *corev1.Pod) bool { return p.DeletionTimestamp == nil })
	wider.see(append(slices.Clip(m.pods), gone...))
	defer m.see(m.pods)
	return strings.HasPrefix(m.scheduler.refusal(m.pod, m.node.Name), "InterPodAffinity")
}

// crampedElsewhere reports whether the node is a new one that would have no
// room for the pod if all daemons ran there.
func (m *mismatch) crampedElsewhere() bool {
	if m.verdict == nil || m.situation.node(m.node.Name) != nil {
		return false
	}
	crowd := slices.Clone(m.pods)
	for _, d := range m.situation.daemons {
		if daemonPod(d, m.node) == nil {
			pod := &corev1.Pod{Spec: d.Spec.Template.Spec}
			name(pod, d.Namespace, d.Name)
			pod.Spec.NodeName = m.node.Name
			crowd = append(crowd, pod)
		}
	}
	m.see(crowd)
	defer m.see(m.pods)
	plugin, _, _ := strings.Cut(m.scheduler.refusal(m.pod, m.node.Name), ":")
	return plugin == "NodeResourcesFit" || plugin == "NodePorts"
}

// overdrawn reports whether the node is a new one that has no room for the
// pods of its daemons.
func (m *mismatch) overdrawn() bool {
	if m.verdict == nil || m.situation.node(m.node.Name) != nil {
		return false
	}
	defer m.see(m.pods)
	var running []*corev1.Pod
	for _, d := range m.situation.daemons {
		pod := daemonPod(d, m.node)
		if pod == nil {
			continue
		}
		pod.Spec.NodeName = ""
		m.scheduler.see([]*corev1.Node{m.node}, running)
		if strings.HasPrefix(m.scheduler.refusal(pod, m.node.Name), "NodeResourcesFit") {
			return true
		}
		pod.Spec.NodeName = m.node.Name
		running = append(running, pod)
	}
	return false
}

func (m *mismatch) String() string {
	pod := m.pod.Namespace + "/" + m.pod.Name
	if m.verdict != nil {
		return fmt.Sprintf("we find no place for pod %s (%s); the scheduler accepts node %s with labels %v, taints %v",
			pod, m.verdict, m.node.Name, m.node.Labels, m.node.Spec.Taints)
	}
	return fmt.Sprintf("we plan pod %s on node %s with labels %v, taints %v; the scheduler refuses: %s",
		pod, m.node.Name, m.node.Labels, m.node.Spec.Taints, m.refusal)
}

// differ notes a mismatch, unless it is a difference that should be.
func (j *judge) differ(m *mismatch) {
	switch {
	case j.used.find(m):
	case m.verdict != nil:
		j.forgotten = append(j.forgotten, m.String())
	default:
		j.wrong = append(j.wrong, m.String())
	}
}

func (j *judge) fail(format string, args ...any) {
	j.wrong = append(j.wrong, fmt.Sprintf(format, args...))
}

func (j *judge) node(name string) *corev1.Node {
	return j.nodes[slices.IndexFunc(j.nodes, func(n *corev1.Node) bool { return n.Name == name })]
}

// account checks that each pod is somewhere in the plan, and once.
func (j *judge) account(plan *model.Plan) {
	times := map[string]int{}
	count := func(pods []model.Pod) {
		for _, p := range pods {
			times[p.Key()]++
		}
	}
	for _, p := range plan.Placements {
		count([]model.Pod{p.Pod})
	}
	for i := range plan.Launches {
		count(plan.Launches[i].Pods)
	}
	for i := range plan.Verdicts {
		count(plan.Verdicts[i].Pods)
	}
	for i := range j.snapshot.Pending {
		for _, p := range j.snapshot.Pending[i].Pods {
			if n := times[p.Key()]; n != 1 {
				j.fail("pod %s is in the plan %d times", p.Key(), n)
			}
		}
	}
}

// placements returns what the plan puts on nodes of the situation.
func (j *judge) placements(plan *model.Plan) []binding {
	var out []binding
	for _, p := range plan.Placements {
		out = append(out, binding{j.situation.unbound(p.Pod.Key()), p.Node})
	}
	return out
}

// leftover is a pod that we find no place for.
type leftover struct {
	pod     *corev1.Pod
	verdict *model.Verdict
}

// leftovers returns the pods that stay pending, one of each kind.
func (j *judge) leftovers(plan *model.Plan) []leftover {
	var out []leftover
	seen := map[string]bool{}
	for i := range plan.Verdicts {
		for _, ref := range plan.Verdicts[i].Pods {
			j.tally["left"]++
			pod := j.situation.unbound(ref.Key())
			if kind := kind(pod); !seen[kind] {
				seen[kind] = true
				out = append(out, leftover{pod, &plan.Verdicts[i]})
			}
		}
	}
	return out
}

// kind returns a name that pods of one deployment share.
func kind(p *corev1.Pod) string {
	if p.GenerateName != "" {
		return p.Namespace + "/" + p.GenerateName
	}
	return p.Namespace + "/" + p.Name
}

// offer checks that the scheduler refuses the nodes to every pod that is left.
func (j *judge) offer(left []leftover, nodes ...*corev1.Node) {
	j.see(j.pods)
	names := make([]string, len(nodes))
	for i, n := range nodes {
		names[i] = n.Name
	}
	for _, l := range left {
		for i, why := range j.scheduler.refusals(l.pod, names...) {
			if plugin, _, refused := strings.Cut(why, ":"); refused {
				j.tally["refused by "+plugin]++
				continue
			}
			j.differ(&mismatch{judge: j, pod: l.pod, node: nodes[i], verdict: l.verdict})
		}
	}
}

// see shows the scheduler the nodes and the pods, with the volumes of those
// that are bound.
func (j *judge) see(pods []*corev1.Pod) {
	j.scheduler.see(j.nodes, pods)
	if disks := j.situation.storage; disks != nil {
		disks = disks.after(pods, j.nodes)
		disks.nodes = append(slices.Clip(disks.nodes), j.situation.attaching(j.nodes)...)
		j.scheduler.know(&situation{namespaces: j.situation.namespaces, storage: disks})
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
		pod.OwnerReferences = []metav1.OwnerReference{ownedBy(d)}
		if j.situation.pod(pod.Namespace+"/"+pod.Name) == nil {
			j.pods = append(j.pods, pod)
		}
	}
}

// binding is a pod and the node we plan it on.
type binding struct {
	pod  *corev1.Pod
	node string
}

// bind binds the pods one after the other in an order that the scheduler goes
// along with. Where it refuses every order, it has been asked about them all:
// what it has against the pods that are left once as many as can be are bound
// are mismatches. One that is a difference is bound all the same, and the others
// tried again: what they wait for may be no more than this one. Where several are, each
// is tried as the next, and then as the first of all.
func (j *judge) bind(want []binding) {
	j.tally["placed"] += len(want)
	j.wrong = append(j.wrong, j.refused(want)...)
}

// refused binds the pods as bind does, and returns the mismatches that no order avoids.
func (j *judge) refused(want []binding) []string {
	s, before := &orders{judge: j, want: want, dead: map[uint64]bool{}}, j.pods
	if s.from(0, 0) {
		j.pods = s.pods(1<<len(want) - 1)
		return nil
	}
	most := s.pods(s.best)
	var left []binding
	var wrong []string
	for i, b := range want {
		if s.best>>i&1 == 0 {
			m := &mismatch{judge: j, pod: b.pod, node: j.node(b.node), refusal: s.refusals[b.twin()]}
			left, wrong = append(left, b), append(wrong, m.String())
		}
	}
	tried := map[string]bool{}
	for i, b := range left {
		if tried[b.twin()] {
			continue
		}
		tried[b.twin()] = true
		j.pods = most
		m := &mismatch{judge: j, pod: b.pod, node: j.node(b.node), refusal: s.refusals[b.twin()]}
		if !j.used.find(m) && !j.differsAt(before, b) {
			continue
		}
		j.pods = append(slices.Clip(most), bound(b))
		if fewer := j.refused(slices.Delete(slices.Clone(left), i, i+1)); len(fewer) < len(wrong) {
			wrong = fewer
		}
		if len(wrong) > 0 && j.differsAt(before, b) { // it might have come before all others
			j.pods = append(slices.Clip(before), bound(b))
			if fewer := j.refused(slices.DeleteFunc(slices.Clone(want), func(o binding) bool { return o.pod == b.pod })); len(fewer) < len(wrong) {
				wrong = fewer
			}
		}
		if len(wrong) == 0 {
			return nil
		}
	}
	return wrong
}

// differsAt reports whether the scheduler refuses the binding for what may
// differ while these pods are all that is bound: it might have come first.
func (j *judge) differsAt(before []*corev1.Pod, b binding) bool {
	then := *j
	then.pods = before
	then.see(before)
	m := &mismatch{judge: &then, pod: b.pod, node: j.node(b.node), refusal: j.scheduler.refusal(b.pod, b.node)}
	return m.refusal != "" && j.used.find(m)
}

// twin names what bindings of equal pods to one node share.
func (b binding) twin() string { return kind(b.pod) + " " + b.node }

// bound returns the pod on its node.
func bound(b binding) *corev1.Pod {
	p := b.pod.DeepCopy()
	p.Spec.NodeName = b.node
	return p
}

// orders searches for an order to bind pods in.
type orders struct {
	*judge
	want []binding
	dead map[uint64]bool // sets of bound pods that no order leads on from

	best, most uint64            // the largest dead set, its size
	refusals   map[string]string // of those left then, by twin
}

// from reports whether all that is not done can be bound, n being done.
func (s *orders) from(done, n uint64) bool {
	if int(n) == len(s.want) {
		return true
	}
	if s.dead[done] {
		return false
	}
	refusals, dirty := map[string]string{}, true
	for i, b := range s.want {
		twin := b.twin()
		if _, tried := refusals[twin]; tried || done>>i&1 == 1 {
			continue
		}
		if dirty {
			s.see(s.pods(done))
		}
		refusals[twin] = s.scheduler.refusal(b.pod, b.node)
		dirty = refusals[twin] == ""
		if dirty && s.from(done|1<<i, n+1) {
			return true
		}
	}
	s.dead[done] = true
	if len(s.dead) == 1 || n > s.most {
		s.best, s.most, s.refusals = done, n, refusals
	}
	return false
}

// pods returns all pods once those of the set are bound.
func (s *orders) pods(set uint64) []*corev1.Pod {
	out := slices.Clip(s.judge.pods)
	for i, b := range s.want {
		if set>>i&1 == 1 {
			out = append(out, bound(b))
		}
	}
	return out
}
