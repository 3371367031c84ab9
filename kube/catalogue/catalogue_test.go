// SPDX-License-Identifier: Apache-2.0

package catalogue_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"karpenter/api/scheme"
	v1 "karpenter/api/v1"
	"karpenter/cloud"
	"karpenter/cloud/cloudtest"
	"karpenter/cloud/overlay"
	"karpenter/cloud/wrap"
	"karpenter/kube/catalogue"
	"karpenter/model"
)

// sink keeps its latest arguments.
type sink map[string][]*model.InstanceType

func (s sink) SetFeatures(string, map[string]bool) {}

func (s sink) SetTypes(pool string, types []*model.InstanceType, _ ...model.Extra) { s[pool] = types }

func pool(name, group string) *v1.NodePool {
	p := &v1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: name}}
	p.Spec.Template.Spec.NodeClassRef = &v1.NodeClassReference{Group: group, Kind: "KWOKNodeClass", Name: "default"}
	return p
}

func setup(pools ...*v1.NodePool) (*catalogue.Catalogue, *cloudtest.Fake, sink) {
	provider := cloudtest.NewFake(clocktesting.NewFakePassiveClock(time.Time{}))
	s := runtime.NewScheme()
	if err := scheme.AddToScheme(s); err != nil {
		panic(err)
	}
	builder := fake.NewClientBuilder().WithScheme(s)
	for _, p := range pools {
		builder = builder.WithObjects(p)
	}
	told := sink{}
	return &catalogue.Catalogue{Reader: builder.Build(), Provider: provider, Axis: model.NewAxis(), World: told}, provider, told
}

func TestRefresh(t *testing.T) {
	c, provider, told := setup(pool("p", "karpenter.kwok.sh"), pool("q", "karpenter.kwok.sh"), pool("foreign", "example.com"))
	if err := c.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	types, err := provider.InstanceTypes(t.Context(), pool("p", ""))
	if err != nil {
		t.Fatal(err)
	}
	if len(types) == 0 || len(told["p"]) != len(types) || told["p"][0].Name != types[0].Name {
		t.Errorf("pool p got %d types, want the provider's %d", len(told["p"]), len(types))
	}
	if told["q"][0] != told["p"][0] {
		t.Error("a type two pools share was converted twice")
	}
	if _, ok := told["foreign"]; ok {
		t.Error("asked for a pool of another provider")
	}
}

// A type is converted again only when the provider has made a new one.
func TestTypesAreConvertedOnce(t *testing.T) {
	c, provider, told := setup(pool("p", "karpenter.kwok.sh"))
	if err := c.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	before := told["p"]
	types := cloudtest.DefaultTypes()
	old, err := provider.InstanceTypes(t.Context(), pool("p", ""))
	if err != nil {
		t.Fatal(err)
	}
	types[1] = old[1]
	provider.SetTypes(types...)
	if err := c.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	if told["p"][0] == before[0] || told["p"][1] != before[1] {
		t.Errorf("new type converted anew: %t; old one kept: %t; want both", told["p"][0] != before[0], told["p"][1] == before[1])
	}
}

// spec 55/16, spec 48/64: a pool whose types cannot be had has none, and the others are served.
func TestFailingPool(t *testing.T) {
	c, provider, told := setup(pool("p", "karpenter.kwok.sh"), pool("q", "karpenter.kwok.sh"))
	if err := c.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	provider.FailPool("p", errors.New("no such class"))
	reg := prometheus.NewPedanticRegistry()
	c.Failed = catalogue.Failures(reg)
	if err := c.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	want := `
# HELP karpenter_nodepools_cost_tracker_errors_total Number of failures to look up the instance types of a node pool, and with them the prices of its nodes.
# TYPE karpenter_nodepools_cost_tracker_errors_total counter
karpenter_nodepools_cost_tracker_errors_total{nodepool="p"} 1
`
	if err := testutil.GatherAndCompare(reg, strings.NewReader(want)); err != nil {
		t.Error(err)
	}
	if len(told["p"]) != 0 || len(told["q"]) == 0 {
		t.Errorf("p has %d types and q %d, want none and some", len(told["p"]), len(told["q"]))
	}
}

// spec 20/153, spec 45/24: a pool whose overlays are not evaluated has no
// types, until they are; the others are served.
func TestUnevaluatedPool(t *testing.T) {
	c, provider, told := setup(pool("p", "karpenter.kwok.sh"), pool("q", "karpenter.kwok.sh"))
	overlays := &overlay.Store{}
	c.Provider = wrap.Overlay(provider, overlays)
	evaluate := func(pools ...*v1.NodePool) {
		var subjects []overlay.Subject
		for _, p := range pools {
			subjects = append(subjects, overlay.Subject{Pool: p})
		}
		_, set := overlay.Evaluate(nil, subjects, v1.DefaultLabels())
		overlays.Swap(set)
	}
	for _, step := range []struct {
		evaluated []*v1.NodePool
		p, q      bool
	}{
		{nil, false, false},
		{[]*v1.NodePool{pool("q", "")}, false, true},
		{[]*v1.NodePool{pool("q", ""), pool("p", "")}, true, true},
		{[]*v1.NodePool{pool("p", "")}, true, false},
	} {
		if step.evaluated != nil {
			evaluate(step.evaluated...)
		}
		if err := c.Refresh(t.Context()); err != nil {
			t.Fatal(err)
		}
		if p, q := len(told["p"]) > 0, len(told["q"]) > 0; p != step.p || q != step.q {
			t.Errorf("with %d evaluated: p has types: %t, q: %t; want %t and %t", len(step.evaluated), p, q, step.p, step.q)
		}
	}
}

// Without anyone asking, it refreshes by itself and comes back.
func TestReconcile(t *testing.T) {
	c, _, told := setup(pool("p", "karpenter.kwok.sh"))
	result, err := c.Reconcile(t.Context(), reconcile.Request{})
	if err != nil || result.RequeueAfter != catalogue.Period || len(told["p"]) == 0 {
		t.Errorf("got %v, %v and %d types", result, err, len(told["p"]))
	}
}

func TestCancelled(t *testing.T) {
	c, provider, _ := setup(pool("p", "karpenter.kwok.sh"))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	provider.FailPool("p", ctx.Err())
	if err := c.Refresh(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("got error %v, want that the context was cancelled", err)
	}
}

// slow answers a call when its turn has come.
type slow struct {
	cloud.Provider
	turns chan chan struct{}
}

func (s slow) InstanceTypes(ctx context.Context, p *v1.NodePool) ([]*cloud.InstanceType, error) {
	types, err := s.Provider.InstanceTypes(ctx, p)
	turn := make(chan struct{})
	s.turns <- turn
	<-turn
	return types, err
}

// A cloud that is slow to answer one refresh holds up no other, and its answer
// does not replace a newer one.
func TestSlowRefresh(t *testing.T) {
	c, provider, told := setup(pool("p", "karpenter.kwok.sh"))
	turns := make(chan chan struct{})
	c.Provider = slow{provider, turns}
	var refreshes errgroup.Group
	refreshes.Go(func() error { return c.Refresh(t.Context()) })
	first := <-turns
	provider.SetTypes(cloudtest.DefaultTypes()[:1]...)
	finished := make(chan error)
	go func() { finished <- c.Refresh(t.Context()) }()
	close(<-turns)
	if err := <-finished; err != nil || len(told["p"]) != 1 {
		t.Errorf("%d types, error %v; want the one there is now", len(told["p"]), err)
	}
	close(first)
	if err := refreshes.Wait(); err != nil || len(told["p"]) != 1 {
		t.Errorf("%d types after an older answer, error %v; want one", len(told["p"]), err)
	}
}

// What nodes cost besides their instances is in the prices, for each pool its own;
// pools for which it is the same share types.
func TestExtras(t *testing.T) {
	c, _, told := setup(pool("p", "karpenter.kwok.sh"), pool("q", "karpenter.kwok.sh"), pool("r", "karpenter.kwok.sh"))
	refresh := func() (p, q, r *model.InstanceType) {
		t.Helper()
		if err := c.Refresh(t.Context()); err != nil {
			t.Fatal(err)
		}
		return told["p"][0], told["q"][0], told["r"][0]
	}
	plain, _, _ := refresh()
	amount := model.Dollar / 100
	c.Extras = func(_ context.Context, pool *v1.NodePool) ([]model.Extra, error) {
		if pool.Name == "p" {
			return nil, nil
		}
		return []model.Extra{{Name: "agent", Price: amount}, {Name: "licence", Price: amount, VCPU: true}}, nil
	}
	p, q, r := refresh()
	vcpus := model.Price(plain.Capacity.At(model.CPU)) / 1000
	if p != plain || q != r || q.Offerings[0].Price != plain.Offerings[0].Price+amount*(1+vcpus) {
		t.Errorf("p anew: %t, q and r shared: %t, price %d of %d and %d vCPUs", p != plain, q == r, q.Offerings[0].Price, plain.Offerings[0].Price, vcpus)
	}
	if _, again, _ := refresh(); again != q {
		t.Error("converted again although nothing changed")
	}
	amount *= 2
	if _, now, _ := refresh(); now.Offerings[0].Price != plain.Offerings[0].Price+amount*(1+vcpus) {
		t.Errorf("price %d after the amount was doubled", now.Offerings[0].Price)
	}
	failed := ""
	c.Failed = func(pool string) { failed += pool }
	c.Extras = func(_ context.Context, pool *v1.NodePool) ([]model.Extra, error) {
		if pool.Name == "q" {
			return nil, errors.New("no such class")
		}
		return nil, nil
	}
	if err := c.Refresh(t.Context()); err != nil || failed != "q" || len(told["q"]) != 0 || len(told["p"]) == 0 {
		t.Errorf("error %v, failed %q, q has %d types", err, failed, len(told["q"]))
	}
}
