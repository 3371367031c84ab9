// SPDX-License-Identifier: Apache-2.0

package feed_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	"k8s.io/apimachinery/pkg/api/meta"
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
	want := "[{default/g 0 0 it does not exist  []}] default/p0 in  default/p1 in default/g"
	s := x.world.Snapshot(now())
	got := fmt.Sprint(s.Groups)
	for _, pending := range s.Pending {
		for _, p := range pending.Pods {
			got += fmt.Sprintf(" %s in %s", p.Key(), p.Group)
		}
	}
	if got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
