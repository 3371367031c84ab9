// SPDX-License-Identifier: Apache-2.0

package situation

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	kubescheme "k8s.io/client-go/kubernetes/scheme"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"karpenter/api/scheme"
	v1 "karpenter/api/v1"
	"karpenter/model"
	"karpenter/scenario"
	"karpenter/solve"
)

const offered = `
type small cpu=2 mem=8Gi zones=a,b spot=0.03,b:0.02! on-demand=0.1
type large cpu=8 mem=32Gi widgets.example.com/widget=2 zones=a on-demand=0.4
pool general usage=cpu:3 extras="license:0.01 per-vcpu"
pool other types=large
node n1 pool=general type=small zone=a ct=spot used=cpu:1
pods buffer-1..2 cpu=3 buffer=shop/spare labels=app=web
pods web anti="host of app=web" cpu=1
decide spot-to-spot=replace
`

// cluster has one NodePool and a pod that waits.
func cluster(t *testing.T) (*runtime.Scheme, *fake.ClientBuilder) {
	t.Helper()
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{kubescheme.AddToScheme, scheme.AddToScheme} {
		if err := add(s); err != nil {
			t.Fatal(err)
		}
	}
	pool := &v1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: "general"}}
	pool.Spec.Template.Spec.NodeClassRef = &v1.NodeClassReference{Group: "karpenter.test", Kind: "Class", Name: "default"}
	pool.Status.Conditions = append(pool.Status.Conditions, ready())
	foreign := pool.DeepCopy()
	foreign.Name, foreign.Spec.Template.Spec.NodeClassRef.Kind = "foreign", "OtherClass"
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "web"}}
	pod.Spec.Containers = []corev1.Container{{Name: "c", Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{"cpu": resourceOne}}}}
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable}}
	return s, fake.NewClientBuilder().WithScheme(s).WithObjects(pool, foreign, pod).
		WithIndex(&corev1.ConfigMap{}, "metadata.name", func(o client.Object) []string { return []string{o.GetName()} })
}

func publisher(t *testing.T, c client.Client, text string) *Publisher {
	t.Helper()
	s, err := scenario.Read(strings.NewReader(text), nil)
	if err != nil {
		t.Fatal(err)
	}
	return &Publisher{
		Client: c, Live: c, Namespace: "kube-system", Policy: s.Policy, Ready: func() bool { return true },
		Rules:    Rules{Version: version, NodeClasses: []schema.GroupKind{{Group: "karpenter.test", Kind: "Class"}}, Labels: v1.DefaultLabels()},
		Snapshot: func(time.Time) *model.Snapshot { return s.Snapshot }, Clock: clocktesting.NewFakePassiveClock(time.Now()),
	}
}

// TestPublishedOfferingsArePlannedWith: what the leader publishes and what the
// API server shows make one situation, whose plan launches what the leader
// offers.
func TestPublishedOfferingsArePlannedWith(t *testing.T) {
	s, builder := cluster(t)
	c := builder.Build()
	p := publisher(t, c, offered)
	if _, err := p.Reconcile(t.Context(), reconcile.Request{}); err != nil {
		t.Fatal(err)
	}
	got, pods, err := (&Reader{Client: c, Scheme: s}).Live(t.Context(), time.Now())
	if err != nil {
		t.Fatal(err)
	}
	if len(pods) != 1 || !got.Policy.SpotToSpot {
		t.Errorf("%d pods, policy %+v", len(pods), got.Policy)
	}
	plan := scenario.Text(got.Snapshot, solve.Decide(got.Snapshot, got.Policy))
	for _, want := range []string{"pod shop/web", "buffer=shop/spare", "launch general", "spot=a:0.03,b:0.02!", "extras=\"license:0.01 per-vcpu\"", "widgets.example.com/widget"} {
		if !strings.Contains(plan, want) && !strings.Contains(printed(t, got), want) {
			t.Errorf("lacks %q:\n%s\n%s", want, printed(t, got), plan)
		}
	}
	if len(got.Snapshot.Pools) != 1 || len(got.Snapshot.Pools[0].Types) != 2 {
		t.Errorf("pools %+v", got.Snapshot.Pools)
	}
}

func printed(t *testing.T, s scenario.Situation) string {
	t.Helper()
	var b strings.Builder
	if err := s.Print(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// TestPublisherWritesChangesOnly: usage and pods that come and go are no reason
// to write, other offerings are.
func TestPublisherWritesChangesOnly(t *testing.T) {
	writes := 0
	_, builder := cluster(t)
	c := builder.WithObjects(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: Name, Labels: map[string]string{"helm": "yes"}}}).
		WithInterceptorFuncs(interceptor.Funcs{
			Create: func(context.Context, client.WithWatch, client.Object, ...client.CreateOption) error {
				t.Error("created, but it is there")
				return nil
			},
			Update: func(ctx context.Context, c client.WithWatch, o client.Object, options ...client.UpdateOption) error {
				writes++
				return c.Update(ctx, o, options...)
			},
		}).Build()
	for i, text := range []string{
		offered,
		offered,
		strings.Replace(offered, "used=cpu:1", "used=cpu:2", 1) + "pods more cpu=1\n",
		strings.Replace(offered, "usage=cpu:3", "usage=cpu:4", 1),
		strings.Replace(offered, "b:0.02!", "b:0.02", 1),
	} {
		if _, err := publisher(t, c, text).Reconcile(t.Context(), reconcile.Request{}); err != nil {
			t.Fatal(err)
		}
		if want := []int{1, 1, 1, 1, 2}[i]; writes != want {
			t.Errorf("%d writes after situation %d, want %d", writes, i, want)
		}
	}
	m := &corev1.ConfigMap{}
	if err := c.Get(t.Context(), client.ObjectKey{Namespace: "kube-system", Name: Name}, m); err != nil || m.Labels["helm"] != "yes" {
		t.Errorf("%v, labels %v: those of the chart are to stay", err, m.Labels)
	}
}

// TestPublisherPrintsChangesOnly: what has been printed is kept until a type
// takes the place of another, and written again when someone has removed it.
func TestPublisherPrintsChangesOnly(t *testing.T) {
	_, builder := cluster(t)
	c := builder.Build()
	p := publisher(t, c, offered)
	published := func() []byte {
		t.Helper()
		p.due = time.Time{} // the time to look at everything has come
		if _, err := p.Reconcile(t.Context(), reconcile.Request{}); err != nil {
			t.Fatal(err)
		}
		m := &corev1.ConfigMap{}
		if err := c.Get(t.Context(), client.ObjectKey{Namespace: "kube-system", Name: Name}, m); err != nil {
			t.Fatal(err)
		}
		return m.BinaryData[offeringsKey]
	}
	first := published()
	printed := p.written
	if err := c.Delete(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: Name}}); err != nil {
		t.Fatal(err)
	}
	if again := published(); !bytes.Equal(first, again) || p.written != printed {
		t.Error("what was removed is not written again as it was")
	}
	s := p.Snapshot(time.Now())
	cheaper := *s.Pools[0].Types[0]
	cheaper.Offerings = slices.Clone(cheaper.Offerings)
	cheaper.Offerings[0].Price /= 2
	s.Pools[0].Types = slices.Clone(s.Pools[0].Types)
	s.Pools[0].Types[0] = &cheaper
	if bytes.Equal(published(), first) {
		t.Error("another price is not published")
	}
	p.Rules.StaticCapacity, p.Policy.SpotToSpot = true, !p.Policy.SpotToSpot
	before := p.written
	if published(); p.written == before {
		t.Error("another policy is not published")
	}
}

// TestPublisherWaits: nothing is published before everything is read.
func TestPublisherWaits(t *testing.T) {
	_, builder := cluster(t)
	c := builder.Build()
	p := publisher(t, c, offered)
	p.Ready = func() bool { return false }
	r, err := p.Reconcile(t.Context(), reconcile.Request{})
	if err != nil || r.RequeueAfter != soon {
		t.Errorf("%v, %v", r, err)
	}
	if err := c.Get(t.Context(), client.ObjectKey{Namespace: "kube-system", Name: Name}, &corev1.ConfigMap{}); !apierrors.IsNotFound(err) {
		t.Errorf("published: %v", err)
	}
}

// TestReaderErrors: each says what is missing and what to do.
func TestReaderErrors(t *testing.T) {
	named := func(namespace string) *corev1.ConfigMap {
		return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: Name}}
	}
	bad := named("kube-system")
	bad.Data = map[string]string{rulesKey: `{"version":7}`}
	bomb := named("kube-system")
	bomb.Data, bomb.BinaryData = map[string]string{rulesKey: `{"version":1}`}, map[string][]byte{offeringsKey: []byte("not compressed")}
	for _, c := range []struct {
		name    string
		objects []client.Object
		denied  string
		want    []string
	}{
		{"not there", nil, "", []string{"found no ConfigMap karpenter-offerings", "karpenter status", "karpenter savings"}},
		{"empty", []client.Object{named("kube-system")}, "", []string{"kube-system/karpenter-offerings is empty", "karpenter status"}},
		{"two", []client.Object{named("kube-system"), named("shop")}, "", []string{"in the namespaces kube-system, shop", "--karpenter-namespace"}},
		{"another version", []client.Object{bad}, "", []string{"version 7", "version 1"}},
		{"not compressed", []client.Object{bomb}, "", []string{"offerings.txt.zst: "}},
		{"no right to the ConfigMap", nil, "ConfigMapList", []string{"forbidden", "--clusterrole=karpenter-viewer"}},
		{"no right to nodes", nil, "NodeList", []string{"list Nodes: ", "forbidden", "--clusterrole=karpenter-viewer"}},
	} {
		s, builder := cluster(t)
		base := builder.WithObjects(c.objects...).Build()
		if c.denied == "NodeList" {
			if _, err := publisher(t, base, offered).Reconcile(t.Context(), reconcile.Request{}); err != nil {
				t.Fatal(err)
			}
		}
		api := interceptor.NewClient(base, interceptor.Funcs{
			List: func(ctx context.Context, w client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
				if gvk, err := w.GroupVersionKindFor(list); err == nil && gvk.Kind == c.denied {
					return apierrors.NewForbidden(schema.GroupResource{Resource: "things"}, "", nil)
				}
				return w.List(ctx, list, options...)
			},
		})
		_, _, err := (&Reader{Client: api, Scheme: s}).Live(t.Context(), time.Now())
		for _, want := range c.want {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: error is %v, want %q in it", c.name, err, want)
			}
		}
	}
}

// TestDevicesThatMayNotBeRead: a user whose role does not know devices still sees all
// other pods planned.
func TestDevicesThatMayNotBeRead(t *testing.T) {
	s, builder := cluster(t)
	claims := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "gpu", UID: "gpu"}}
	claims.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "gpu", ResourceClaimName: new("one")}}
	claims.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable}}
	c := builder.WithObjects(claims).WithInterceptorFuncs(interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
			if kind := fmt.Sprintf("%T", list); strings.HasPrefix(kind, "*v1.Device") || strings.HasPrefix(kind, "*v1.Resource") {
				return apierrors.NewForbidden(schema.GroupResource{Group: "resource.k8s.io", Resource: "devices"}, "", nil)
			}
			return c.List(ctx, list, options...)
		},
	}).Build()
	p := publisher(t, c, offered)
	p.Rules.Devices = true
	if _, err := p.Reconcile(t.Context(), reconcile.Request{}); err != nil {
		t.Fatal(err)
	}
	got, _, err := (&Reader{Client: c, Scheme: s}).Live(t.Context(), time.Now())
	if err != nil {
		t.Fatal(err)
	}
	if text := printed(t, got); !strings.Contains(text, "pod shop/web") || !strings.Contains(text, "resourceClaims, which are not looked at here") {
		t.Error(text)
	}
}

// TestHugeOfferings: what unpacks to more than is sensible is rejected.
func TestHugeOfferings(t *testing.T) {
	m, err := Published{Rules: Rules{Version: version}, Offerings: scenario.Situation{Snapshot: &model.Snapshot{
		Resources: model.NewAxis().Names(), Pools: []model.Pool{{Name: strings.Repeat("x", mostText)}},
	}}}.configMap("kube-system")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Parse(m); err == nil || !strings.Contains(err.Error(), "larger than") {
		t.Errorf("error is %.200v", err)
	}
}

// TestHugeBuffers: pods of a CapacityBuffer that do not fit into a ConfigMap are left out; the
// offerings and pods of other CapacityBuffers are published.
func TestHugeBuffers(t *testing.T) {
	s, builder := cluster(t)
	c := builder.Build()
	p := publisher(t, c, offered)
	snapshot := p.Snapshot(time.Now())
	small, huge := *snapshot, *snapshot
	shape := *snapshot.Pending[0].Shape
	random := rand.NewChaCha8([32]byte{})
	for range 50_000 {
		shape.Tolerations = append(shape.Tolerations, model.Toleration{Key: fmt.Sprintf("%016x%016x%016x%016x", random.Uint64(), random.Uint64(), random.Uint64(), random.Uint64()), Exists: true})
	}
	shape.Key = shape.Identity(small.Resources)
	spare := *snapshot.Pending[0].Shape
	spare.Requests = slices.Clone(spare.Requests)
	spare.Requests[0] = 4000
	spare.Key = spare.Identity(small.Resources)
	huge.Pending = slices.Clone(small.Pending)
	huge.Pending[0].Shape = &spare
	huge.Pending = append(huge.Pending, model.Pending{Shape: &shape, Pods: []model.Pod{{Namespace: "tenant", Name: "b", UID: "b", Buffer: "tenant/huge"}}})
	for _, now := range []struct {
		snapshot *model.Snapshot
		cpu      string
	}{{&small, "cpu=3"}, {&huge, "cpu=4"}, {&small, "cpu=3"}} {
		p.Snapshot, p.due = func(time.Time) *model.Snapshot { return now.snapshot }, time.Time{}
		if _, err := p.Reconcile(t.Context(), reconcile.Request{}); err != nil {
			t.Fatal(err)
		}
		got, _, err := (&Reader{Client: c, Scheme: s}).Live(t.Context(), time.Now())
		if err != nil || len(got.Snapshot.Pools) == 0 || !strings.Contains(printed(t, got), now.cpu+" buffer=shop/spare") {
			t.Errorf("want pods of buffers with %s; error %v, read\n%.2000s", now.cpu, err, printed(t, got))
		}
	}
}

var resourceOne = resource.MustParse("1")

func ready() metav1.Condition {
	return metav1.Condition{Type: "Ready", Status: metav1.ConditionTrue}
}

// TestManyNodeClassesFit: the instance types of node classes are nearly alike, and
// those of many fit into a ConfigMap.
func TestManyNodeClassesFit(t *testing.T) {
	const classes, types = 20, 500
	s := &model.Snapshot{Resources: model.NewAxis().Names()}
	for c := range classes {
		pool := model.Pool{Name: fmt.Sprintf("pool-%d", c)}
		for i := range types {
			pool.Types = append(pool.Types, instanceType(i, c))
		}
		s.Pools = append(s.Pools, pool)
	}
	m, err := Published{Rules: Rules{Version: version}, Offerings: scenario.Situation{Snapshot: s}}.configMap("kube-system")
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d bytes", len(m.BinaryData[offeringsKey]))
	got, err := Parse(m)
	if err != nil || len(got.Offerings.Snapshot.Pools) != classes || len(got.Offerings.Snapshot.Pools[classes-1].Types) != types {
		t.Errorf("%v, %d pools", err, len(got.Offerings.Snapshot.Pools))
	}
}

// instanceType is one of a kind, with prices that no other has and an overhead that
// depends on the class.
func instanceType(n, class int) *model.InstanceType {
	name := fmt.Sprintf("m%d.%dxlarge", n%50, n)
	out := &model.InstanceType{
		Name:         name,
		Requirements: model.Requirements{}.And(model.NewRequirement(model.LabelInstanceType, model.In, name), model.NewRequirement("example.com/memory", model.In, strconv.Itoa(n*977))),
		Capacity:     model.Resources{int64(n+1) * 1000, int64(n+1) << 30, 110, 1, 20 << 30},
		Allocatable:  model.Resources{int64(n+1)*1000 - 80, int64(n+1)<<30 - int64(class)<<20, 110, 1, 18 << 30},
	}
	for i, zone := range []string{"a", "b", "c"} {
		for j, ct := range []string{"on-demand", "spot"} {
			out.Offerings = append(out.Offerings, model.Offering{Zone: zone, CapacityType: ct, Available: true, Price: model.Price(n*7919+i*31+j*17+1) * 1e5,
				Requirements: model.Requirements{}.And(model.NewRequirement(model.LabelZone, model.In, zone), model.NewRequirement(model.LabelCapacityType, model.In, ct))})
		}
	}
	return out
}

// TestPublisherShowsNewPoolsSoon: a NodePool that has got instance types is published
// at the next glance, and other changes after a minute.
func TestPublisherShowsNewPoolsSoon(t *testing.T) {
	_, builder := cluster(t)
	c := builder.Build()
	p := publisher(t, c, offered)
	clk := clocktesting.NewFakePassiveClock(time.Now())
	p.Clock = clk
	read := func(text string) *model.Snapshot {
		s, err := scenario.Read(strings.NewReader(text), nil)
		if err != nil {
			t.Fatal(err)
		}
		return s.Snapshot
	}
	versions := map[string]bool{}
	for i, step := range []struct {
		after    time.Duration
		text     string
		versions int
	}{
		{0, offered, 1},
		{glance, strings.Replace(offered, "b:0.02!", "b:0.02", 1), 1},
		{glance, strings.Replace(offered, "pool other", "pool fresh types=small\npool other", 1), 2},
		{glance, strings.Replace(offered, "b:0.02!", "b:0.02", 1), 3},
		{period, offered, 4},
	} {
		clk.SetTime(clk.Now().Add(step.after))
		p.Snapshot = func(time.Time) *model.Snapshot { return read(step.text) }
		if _, err := p.Reconcile(t.Context(), reconcile.Request{}); err != nil {
			t.Fatal(err)
		}
		m := &corev1.ConfigMap{}
		if err := c.Get(t.Context(), client.ObjectKey{Namespace: "kube-system", Name: Name}, m); err != nil {
			t.Fatal(err)
		}
		if versions[m.ResourceVersion] = true; len(versions) != step.versions {
			t.Errorf("step %d: %d versions were published, want %d", i, len(versions), step.versions)
		}
	}
}

// BenchmarkPublish is what the Publisher does once per minute when nothing has
// changed: 1,400 instance types in 6 offerings each, of 3 NodePools, and 1,000 nodes.
func BenchmarkPublish(b *testing.B) {
	s := &model.Snapshot{Resources: model.NewAxis().Names()}
	for class := range 3 {
		pool := model.Pool{Name: fmt.Sprintf("pool-%d", class)}
		for i := range 1400 {
			pool.Types = append(pool.Types, instanceType(i, 0))
		}
		s.Pools = append(s.Pools, pool)
	}
	for i := range 1000 {
		s.Nodes = append(s.Nodes, model.Node{Name: fmt.Sprintf("node-%d", i), Claim: fmt.Sprintf("claim-%d", i), Pool: "pool-0"})
	}
	for b.Loop() {
		if _, err := (Published{Rules: Rules{Version: version}, Offerings: offerings(s, model.Policy{})}).configMap("kube-system"); err != nil {
			b.Fatal(err)
		}
	}
}

// TestPublishedHealth: failures are published once they last, missing permissions at once, and
// nothing is written as long as the same things fail.
func TestPublishedHealth(t *testing.T) {
	_, builder := cluster(t)
	c := builder.Build()
	p := publisher(t, c, offered)
	now := p.Snapshot(time.Time{}).Now
	health := Health{
		Cloud: "aws", Queue: "spots", SpotPrices: now,
		Calls: []Failing{
			{What: "ec2:CreateFleet", Since: now, Code: "UnauthorizedOperation", Refused: true},
			{What: QueueAction, Since: now.Add(-patience + time.Second)},
		},
		Watches: []Failing{{What: "Node", Since: now.Add(-patience)}},
	}
	p.Health = func() Health { return health }
	published := func() (*Health, string) {
		t.Helper()
		p.due = time.Time{}
		if _, err := p.Reconcile(t.Context(), reconcile.Request{}); err != nil {
			t.Fatal(err)
		}
		m := &corev1.ConfigMap{}
		if err := c.Get(t.Context(), client.ObjectKey{Namespace: "kube-system", Name: Name}, m); err != nil {
			t.Fatal(err)
		}
		got, err := Parse(m)
		if err != nil {
			t.Fatal(err)
		}
		return got.Health, m.ResourceVersion
	}
	got, first := published()
	if got == nil || got.Queue != "spots" || len(got.Calls) != 1 || got.Calls[0].What != "ec2:CreateFleet" || len(got.Watches) != 1 || now.Sub(got.SpotPrices) >= time.Hour {
		t.Errorf("%+v", got)
	}
	if _, again := published(); again != first {
		t.Error("the same is written again")
	}
	health.Calls[1].Since = now.Add(-patience)
	if got, _ := published(); len(got.Calls) != 2 {
		t.Errorf("%+v", got.Calls)
	}
	p.Health = nil
	if got, _ := published(); got != nil {
		t.Errorf("%+v is left of a leader that reports nothing", got)
	}
}
