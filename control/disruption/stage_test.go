// SPDX-License-Identifier: Apache-2.0

package disruption

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"karpenter/api/conditions"
	v1 "karpenter/api/v1"
	"karpenter/kube/events/eventstest"
	"karpenter/kube/join"
	"karpenter/kube/meter"
	"karpenter/kube/pods"
	"karpenter/model"
	"karpenter/solve"
	"karpenter/world"
)

var _ World = (*world.World)(nil)

// stage is a cluster in memory with the loop on it. It is its own World.
type stage struct {
	t        *testing.T
	clock    *clocktesting.FakeClock
	client   client.Client
	events   *eventstest.Recorder
	metrics  *prometheus.Registry
	loop     *Loop
	broken   bool              // deletions fail
	stale    atomic.Bool       // the next patch meets another
	staled   string            // of this object only; "" = of any
	writes   atomic.Int64      // how many more succeed; negative = all
	refused  atomic.Bool       // a write did not
	creating sync.Mutex        // guards what Placer does
	creates  int               // claims that Placer made
	marks    map[string]bool   // claims marked for deletion
	awaited  map[string]bool   // nodes and claims that a pending pod is planned on
	moved    []string          // arguments of Move
	script   *model.Plan       // what Decide returns; nil = what the solver does
	asked    []model.Intent    // of the last Decide
	decided  []time.Time       // when Decide was called
	takes    time.Duration     // how long Decide takes
	blocked  map[string]string // why nodes are blocked, by node
	held     string            // what the pods of n1 hold it with
	buffered string            // node that a buffer keeps capacity on
	unready  bool
	over     bool   // the context ends while the next pass decides
	end      func() // ends it
	logs     []string
	told     int
	ages     map[string]int // of claims that have not joined
}

func newStage(t *testing.T) *stage {
	s := &stage{t: t, clock: clocktesting.NewFakeClock(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)), blocked: map[string]string{}, ages: map[string]int{}}
	s.writes.Store(-1)
	scheme := runtime.NewScheme()
	s.must(errors.Join(clientgoscheme.AddToScheme(scheme), v1.AddToScheme(scheme)))
	s.client = fake.NewClientBuilder().WithScheme(scheme).WithStatusSubresource(&v1.NodeClaim{}).
		WithIndex(&corev1.Pod{}, join.PodNodeName, func(o client.Object) []string {
			return []string{o.(*corev1.Pod).Spec.NodeName}
		}).
		WithInterceptorFuncs(interceptor.Funcs{
			Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
				if err := s.written(); err != nil {
					return err
				}
				if (s.staled == "" || s.staled == o.GetName()) && s.stale.CompareAndSwap(true, false) {
					return apierrors.NewConflict(schema.GroupResource{Resource: "nodes"}, o.GetName(), errors.New("changed"))
				}
				return c.Patch(ctx, o, p, opts...)
			},
			Delete: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.DeleteOption) error {
				if s.broken {
					return errors.New("no connection")
				}
				if err := s.written(); err != nil {
					return err
				}
				return c.Delete(ctx, o, opts...)
			},
			Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
				if err := s.written(); err != nil {
					return err
				}
				return c.Create(ctx, o, opts...)
			},
			SubResourcePatch: func(ctx context.Context, c client.Client, sub string, o client.Object, p client.Patch, opts ...client.SubResourcePatchOption) error {
				if err := s.written(); err != nil {
					return err
				}
				return c.SubResource(sub).Patch(ctx, o, p, opts...)
			},
		}).Build()
	s.restart()
	return s
}

// written fails when the process is to have crashed before this write.
func (s *stage) written() error {
	if s.writes.Load() < 0 {
		return nil
	}
	if s.writes.Add(-1) < 0 {
		s.writes.Store(0)
		s.refused.Store(true)
		return errors.New("crashed")
	}
	return nil
}

// restart begins with a new process: nothing is remembered but what the API
// server knows.
func (s *stage) restart() {
	s.metrics, s.events, s.marks, s.told = prometheus.NewRegistry(), &eventstest.Recorder{}, map[string]bool{}, 0
	s.awaited, s.moved = map[string]bool{}, nil
	s.writes.Store(-1)
	ids := 0
	s.loop = &Loop{
		Client: s.client, World: s, Placer: s, Catalogue: s, Ready: func() bool { return !s.unready },
		Decide: s.decide,
		Events: s.events, Clock: s.clock, Metrics: NewMetrics(s.metrics),
		Disruptions: meter.NewDisruptions(s.metrics, s.client),
		NewID: func() string {
			ids++
			return fmt.Sprintf("id-%d", ids)
		},
	}
}

// decide returns what the script says, less what is being removed, or what the
// solver does without a script.
func (s *stage) decide(snapshot *model.Snapshot) *model.Plan {
	s.asked, s.decided = snapshot.Intents, append(s.decided, s.clock.Now())
	s.clock.Step(s.takes)
	s.end()
	if s.script == nil {
		return solve.Decide(snapshot, model.DefaultPolicy())
	}
	lives := map[string]bool{}
	for _, n := range snapshot.Nodes {
		lives[n.Claim] = !n.Deleting
	}
	plan := *s.script
	plan.Commands = slices.DeleteFunc(slices.Clone(plan.Commands), func(c model.Command) bool {
		return slices.ContainsFunc(c.Nodes, func(n model.Target) bool { return !lives[n.Claim] })
	})
	return &plan
}

// Refresh is Catalogue's.
func (s *stage) Refresh(context.Context) error { return nil }

// Replace is Placer's: the claims are named as the test says, or r1, r2 and so on.
func (s *stage) Replace(ctx context.Context, reason model.Reason, launches []model.Launch, pools map[string]*v1.NodePool) ([]string, error) {
	s.creating.Lock()
	defer s.creating.Unlock()
	var names []string
	for _, l := range launches {
		if pools[l.Pool] == nil {
			return names, fmt.Errorf("no pool %s", l.Pool)
		}
		s.creates++
		name := l.Type
		if name == "" {
			name = fmt.Sprintf("r%d", s.creates)
		}
		c := &v1.NodeClaim{ObjectMeta: metav1.ObjectMeta{
			Name: name, UID: types.UID(name), Finalizers: []string{v1.TerminationFinalizer},
			Labels: map[string]string{v1.NodePoolLabelKey: l.Pool, v1.CapacityTypeLabelKey: "spot"},
		}}
		if err := s.client.Create(ctx, c); err != nil {
			return names, err
		}
		names = append(names, c.Name)
	}
	return names, nil
}

// Move is Placer's.
func (s *stage) Move(_ *model.Snapshot, placements []model.Placement) {
	s.creating.Lock()
	defer s.creating.Unlock()
	for _, p := range placements {
		s.moved = append(s.moved, p.Pod.Name+" to "+p.Node)
	}
}

func (s *stage) must(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

// MarkForDeletion is World's.
func (s *stage) MarkForDeletion(claims ...string) {
	s.creating.Lock()
	defer s.creating.Unlock()
	for _, c := range claims {
		s.marks[c] = true
	}
}

// Unmark is World's.
func (s *stage) Unmark(claims ...string) {
	for _, c := range claims {
		delete(s.marks, c)
	}
}

// Snapshot is World's: only what emptiness needs.
func (s *stage) Snapshot(now time.Time) *model.Snapshot {
	out := &model.Snapshot{Now: now, Resources: []string{"nodes"}}
	total, consuming := map[string]int{}, map[string]int{}
	list := &v1.NodePoolList{}
	s.must(s.client.List(s.t.Context(), list))
	pools := map[string]*v1.NodePool{}
	for i := range list.Items {
		pools[list.Items[i].Name] = &list.Items[i]
	}
	for _, c := range s.claims() {
		n := s.nodeOf(&c)
		m := model.Node{
			Name: n.Name, Claim: c.Name, Pool: c.Labels[v1.NodePoolLabelKey],
			Initialized: n.Labels[v1.NodeInitializedLabelKey] == "true", Registered: n.UID != "",
			Deleting: s.marks[c.Name] || c.DeletionTimestamp != nil,
			Disruption: model.NodeDisruption{
				Empty: s.reschedulable(n.Name) == 0, Consolidatable: s.reschedulable(n.Name) == 0 && conditions.IsTrue(&c, v1.ConsolidatableCondition), Blocked: s.blocked[n.Name],
			},
		}
		if n.Name == "n1" {
			m.Disruption.Held = s.held
		}
		if pools[m.Pool] == nil {
			m.Disruption.Blocked = "there is no NodePool " + m.Pool
		}
		if m.Initialized {
			total[m.Pool]++
		}
		if m.Initialized && (m.Deleting || !ready(n)) {
			consuming[m.Pool]++
		}
		out.Nodes = append(out.Nodes, m)
	}
	if s.buffered != "" {
		out.Pending = []model.Pending{{Shape: &model.Shape{Key: "any"}, Pods: []model.Pod{
			{Namespace: "default", Name: "capacity-buffer-b-1", UID: "b-1", Planned: s.buffered, Buffer: "default/b"},
		}}}
	}
	for name := range s.awaited {
		out.Pending = append(out.Pending, model.Pending{Shape: &model.Shape{Key: "any"}, Pods: []model.Pod{
			{Namespace: "default", Name: "expected", UID: "expected-on-" + name, Planned: name},
		}})
	}
	for i := range out.Nodes {
		out.Nodes[i].Labels = model.LabelRequirements(map[string]string{model.LabelInstanceType: "t", model.LabelZone: "z", model.LabelCapacityType: "spot"})
	}
	slices.SortFunc(out.Nodes, func(a, b model.Node) int { return strings.Compare(a.Name, b.Name) })
	for _, p := range pools {
		var static *model.Static
		if p.IsStatic() {
			static = &model.Static{Replicas: int(*p.Spec.Replicas)}
		}
		allowed, _ := p.AllowedDisruptions(now, total[p.Name], v1.DisruptionReasonEmpty)
		out.Pools = append(out.Pools, model.Pool{Name: p.Name, Static: static, Disruption: model.Disruption{
			Allowed: allowedFor(max(allowed-consuming[p.Name], 0)),
		}})
	}
	return out
}

func allowedFor(n int) map[model.Reason]int {
	return map[model.Reason]int{model.Empty: n, model.Drifted: n, model.Underutilized: n, model.Unhealthy: n}
}

// nodeOf returns the Node of the claim: an empty one named like the claim when
// it has none.
func (s *stage) nodeOf(c *v1.NodeClaim) *corev1.Node {
	if c.Status.ProviderID == "" {
		return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: c.Name}}
	}
	return s.node(strings.TrimPrefix(c.Status.ProviderID, "test://"))
}

func (s *stage) claims() []v1.NodeClaim {
	list := &v1.NodeClaimList{}
	s.must(s.client.List(s.t.Context(), list))
	return list.Items
}

func (s *stage) node(name string) *corev1.Node {
	n := &corev1.Node{}
	s.must(s.client.Get(s.t.Context(), types.NamespacedName{Name: name}, n))
	return n
}

func (s *stage) reschedulable(node string) int {
	list := &corev1.PodList{}
	s.must(s.client.List(s.t.Context(), list, client.MatchingFields{join.PodNodeName: node}))
	return len(slices.DeleteFunc(list.Items, func(p corev1.Pod) bool { return !pods.Reschedulable(&p) }))
}

// pass runs the loop once and shows what came of it.
func (s *stage) pass() string {
	var out strings.Builder
	parent, end := context.WithCancel(s.t.Context())
	defer end()
	s.end = func() {}
	if s.over {
		s.end = end
	}
	ctx := log.IntoContext(parent, funcr.New(func(_, args string) { s.logs = append(s.logs, args) }, funcr.Options{}))
	switch result, err := s.loop.Reconcile(ctx, reconcile.Request{}); {
	case err != nil:
		fmt.Fprintf(&out, "error: %v\n", err)
	default:
		fmt.Fprintf(&out, "again in %s\n", result.RequeueAfter)
	}
	for _, e := range s.events.Events()[s.told:] {
		fmt.Fprintf(&out, "event on %s %s: %s\n", e.Object.GetName(), e.Reason, e.Message)
	}
	s.told = len(s.events.Events())
	return out.String()
}

// show prints the nodes that are marked in any way.
func (s *stage) show() string {
	var out strings.Builder
	for _, c := range s.claims() {
		n := s.nodeOf(&c)
		fmt.Fprint(&out, n.Name)
		for _, taint := range n.Spec.Taints {
			fmt.Fprint(&out, " ", taint.ToString())
		}
		if r := conditions.Get(&c, v1.DisruptionReasonCondition); r != nil {
			fmt.Fprintf(&out, " %s=%s", r.Type, r.Reason)
		}
		if s.marks[c.Name] {
			fmt.Fprint(&out, " marked")
		}
		if c.DeletionTimestamp != nil {
			fmt.Fprint(&out, " deleting")
		}
		fmt.Fprintln(&out)
	}
	return out.String()
}

// counts prints the metrics whose names match.
func (s *stage) counts(pattern string) string {
	families, err := s.metrics.Gather()
	s.must(err)
	var lines []string
	for _, f := range families {
		if !regexp.MustCompile(pattern).MatchString(f.GetName()) {
			continue
		}
		for _, m := range f.Metric {
			var labels []string
			for _, l := range m.Label {
				labels = append(labels, l.GetName()+"="+l.GetValue())
			}
			value := m.GetCounter().GetValue() + m.GetGauge().GetValue()
			if f.GetType() == dto.MetricType_HISTOGRAM {
				value = float64(m.GetHistogram().GetSampleCount())
			}
			lines = append(lines, fmt.Sprintf("%s{%s} %v", f.GetName(), strings.Join(labels, ","), value))
		}
	}
	if len(lines) == 0 {
		return "none\n"
	}
	return strings.Join(lines, "\n") + "\n"
}

// declare adds the object a line describes.
func (s *stage) declare(line string) {
	words := strings.Fields(line)
	name, options := words[1], map[string]string{}
	for _, w := range words[2:] {
		key, value, _ := strings.Cut(w, "=")
		options[key] = value
	}
	switch words[0] {
	case "pool":
		s.declarePool(name, options)
	case "node":
		s.declareNode(name, options)
	case "pod":
		p := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: types.UID(name)},
			Spec:       corev1.PodSpec{NodeName: options["node"]},
		}
		if kind, ok := options["owner"]; ok {
			p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: kind, Name: "o", UID: "o"}}
		}
		s.must(s.client.Create(s.t.Context(), p))
	default:
		s.t.Fatalf("unknown object %q", line)
	}
}

func (s *stage) declarePool(name string, options map[string]string) {
	p := &v1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name)}}
	p.Spec.Disruption = v1.Disruption{ConsolidationPolicy: v1.ConsolidationPolicyWhenEmptyOrUnderutilized, ConsolidateAfter: v1.MustParseNillableDuration("0s")}
	if after, ok := options["after"]; ok {
		p.Spec.Disruption.ConsolidateAfter = v1.MustParseNillableDuration(after)
	}
	if b, ok := options["budget"]; ok {
		p.Spec.Disruption.Budgets = []v1.Budget{{Nodes: b}}
	}
	if _, ok := options["static"]; ok {
		n := int64(1)
		p.Spec.Replicas = &n
	}
	s.must(s.client.Create(s.t.Context(), p))
}

func (s *stage) declareNode(name string, options map[string]string) {
	n := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name), Labels: map[string]string{v1.NodeInitializedLabelKey: "true"}},
		Spec:       corev1.NodeSpec{ProviderID: "test://" + name},
		Status:     corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}},
	}
	c := &v1.NodeClaim{ObjectMeta: metav1.ObjectMeta{
		Name: "c-" + name, UID: types.UID("c-" + name), Finalizers: []string{v1.TerminationFinalizer},
		Labels: map[string]string{v1.NodePoolLabelKey: "general", v1.CapacityTypeLabelKey: "spot"},
	}}
	c.Status.ProviderID = n.Spec.ProviderID
	set := c.StatusConditions(s.clock.Now())
	set.SetTrue(v1.ConsolidatableCondition)
	for key, value := range options {
		switch key {
		case "pool":
			c.Labels[v1.NodePoolLabelKey] = value
		case "busy":
			s.must(set.Clear(v1.ConsolidatableCondition))
		case "drifted":
			set.SetTrue(v1.DriftedCondition)
		case "uninitialized":
			delete(n.Labels, v1.NodeInitializedLabelKey)
		case "notready":
			n.Status.Conditions[0].Status = corev1.ConditionFalse
		case "ending":
			set.SetTrue(v1.InstanceTerminatingCondition)
		case "tainted":
			n.Spec.Taints = []corev1.Taint{v1.DisruptedNoScheduleTaint(), {Key: "dedicated", Effect: corev1.TaintEffectNoSchedule}}
			set.SetTrueWithReason(v1.DisruptionReasonCondition, "Empty", "Empty")
		default:
			s.t.Fatalf("unknown option %s", key)
		}
	}
	s.must(s.client.Create(s.t.Context(), n))
	status := c.Status
	s.must(s.client.Create(s.t.Context(), c))
	c.Status = status
	s.must(s.client.Status().Update(s.t.Context(), c))
}
