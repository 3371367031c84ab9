// SPDX-License-Identifier: Apache-2.0

package feed_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache/informertest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	coschedulingv1alpha1 "karpenter/api/coscheduling/v1alpha1"
	v1 "karpenter/api/v1"
	"karpenter/kube/convert"
	"karpenter/kube/feed"
	"karpenter/kube/volumes"
	"karpenter/model"
	"karpenter/world"
)

// lacking is the informers of a server that answers for PodGroups with an error.
type lacking struct {
	*informertest.FakeInformers
	err error
}

// GetInformer implements cache.Informers.
func (l lacking) GetInformer(ctx context.Context, o client.Object, options ...cache.InformerGetOption) (cache.Informer, error) {
	switch o.(type) {
	case *schedulingv1beta1.PodGroup, *coschedulingv1alpha1.CoschedulingPodGroup:
		return nil, l.err
	}
	return l.FakeInformers.GetInformer(ctx, o, options...)
}

// TestGroupsThatAreNotServed feeds the world from an API server without PodGroups: the
// rest works, and the label of the coscheduling plugin means nothing. A server that
// fails to answer is another thing.
func TestGroupsThatAreNotServed(t *testing.T) {
	start := func(err error) (*fixture, error) {
		axis := model.NewAxis()
		x := &fixture{t: t, informers: &informertest.FakeInformers{Scheme: newScheme(t)}, world: world.New(axis, nil)}
		c := convert.Converter{Axis: axis, Labels: v1.DefaultLabels()}
		_, err = feed.Start(t.Context(), lacking{x.informers, err}, x.world, c, feed.Sources{Volumes: volumes.New(c.Labels, volumes.Rules{})})
		return x, err
	}
	broken := errors.New("broken")
	if _, err := start(broken); !errors.Is(err, broken) {
		t.Errorf("a broken server: %v", err)
	}
	x, err := start(&meta.NoKindMatchError{})
	if err != nil {
		t.Fatal(err)
	}
	x.join()
	want := "[default/g it does not exist] default/p0 in  default/p1 in default/g"
	if got := x.groups(); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// TestGroupsThatCannotBeRead has the API server refuse PodGroups at first, and serve them
// later: pods are planned as pods without a group until then.
func TestGroupsThatCannotBeRead(t *testing.T) {
	axis := model.NewAxis()
	x := &fixture{t: t, informers: &informertest.FakeInformers{Scheme: newScheme(t)}, world: world.New(axis, nil)}
	c := convert.Converter{Axis: axis, Labels: v1.DefaultLabels()}
	refused := apierrors.NewForbidden(schema.GroupResource{Resource: "podgroups"}, "", errors.New("an older role"))
	var why error = refused
	f, err := feed.Start(t.Context(), x.informers, x.world, c, feed.Sources{
		Volumes: volumes.New(c.Labels, volumes.Rules{}), Unread: func(client.Object) error { return why },
	})
	if err != nil {
		t.Fatal(err)
	}
	x.join()
	f.Look(t.Context())
	if got, want := x.groups(), "[] default/p0 in  default/p1 in "; got != want {
		t.Errorf("refused: got %s, want %s", got, want)
	}
	why = nil
	f.Look(t.Context())
	const coscheduled = "default/podgroups.scheduling.x-k8s.io/g"
	want := "[default/g it does not exist " + coscheduled + " it does not exist] default/p0 in " + coscheduled + " default/p1 in default/g"
	if got := x.groups(); got != want {
		t.Errorf("allowed: got %s, want %s", got, want)
	}
	why = refused
	f.Look(t.Context())
	if got, want := x.groups(), "[] default/p0 in  default/p1 in "; got != want {
		t.Errorf("refused again: got %s, want %s", got, want)
	}
}

// join has one pod name a PodGroup as the coscheduling plugin has it, and one as
// Kubernetes has it.
func (x *fixture) join() {
	x.t.Helper()
	for i, member := range []func(*corev1.Pod){
		func(p *corev1.Pod) { p.Labels = map[string]string{coschedulingv1alpha1.PodGroupLabel: "g"} },
		func(p *corev1.Pod) { p.Spec.SchedulingGroup = &corev1.PodSchedulingGroup{PodGroupName: ptr.To("g")} },
	} {
		p := &corev1.Pod{}
		p.Namespace, p.Name, p.UID = "default", fmt.Sprint("p", i), "u"
		p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable}}
		member(p)
		x.tell("add", p)
	}
}

// groups returns the PodGroups, and which pod is in which.
func (x *fixture) groups() string {
	s := x.world.Snapshot(now())
	var pods []string
	for _, pending := range s.Pending {
		for _, p := range pending.Pods {
			pods = append(pods, fmt.Sprintf("%s in %s", p.Key(), p.Group))
		}
	}
	slices.Sort(pods)
	var groups []string
	for _, g := range s.Groups {
		groups = append(groups, g.Name+" "+g.Refused)
	}
	return fmt.Sprint(groups, " ", strings.Join(pods, " "))
}
