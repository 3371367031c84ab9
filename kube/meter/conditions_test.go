// SPDX-License-Identifier: Apache-2.0

package meter_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "karpenter/api/v1"
	"karpenter/kube/events/eventstest"
	"karpenter/kube/meter"
)

// TestConditions runs the stories in testdata/conditions. Each line is one event:
//
//	lead
//	KIND NAME WORDS  a nodepool or node is new or has changed: TYPE=STATUS is a
//	                 condition, which keeps its time while its status stays;
//	                 listed, deleting, uid=UID, label KEY=VALUE as KEY:VALUE,
//	                 finalizer NAME as +NAME
//	gone KIND NAME   unseen: all that is known is how it was
//	pass TIME
//	show             as in TestPods
//	told             the events since the last time
func TestConditions(t *testing.T) {
	datadriven.RunTest(t, "testdata/conditions", func(t *testing.T, d *datadriven.TestData) string {
		s := newKinds(t)
		var out strings.Builder
		for line := range strings.Lines(d.Input) {
			if fields := strings.Fields(line); len(fields) > 0 {
				out.WriteString(s.do(t, fields[0], fields[1:]))
			}
		}
		return out.String()
	})
}

// kinds is a meter.Conditions and who tells it of objects.
type kinds struct {
	cache.Informers
	clock    *clocktesting.FakePassiveClock
	registry *prometheus.Registry
	leads    bool
	events   *eventstest.Recorder
	handlers map[string]toolscache.ResourceEventHandler
	known    map[string]client.Object
}

func newKinds(t *testing.T) *kinds {
	s := &kinds{
		clock: clocktesting.NewFakePassiveClock(start()), registry: prometheus.NewPedanticRegistry(), events: &eventstest.Recorder{},
		handlers: map[string]toolscache.ResourceEventHandler{}, known: map[string]client.Object{},
	}
	c := meter.NewConditions(s.registry, s.clock, func() bool { return s.leads }, s.events, []meter.Watched{
		{Object: &v1.NodePool{}, Of: meter.ConditionsOf, Group: v1.Group, Kind: "NodePool", Name: "nodepool", Twin: true},
		{
			Object: &corev1.Node{}, Of: meter.NodeConditions, Kind: "Node", Name: "node", Keys: []string{v1.NodePoolLabelKey},
			Tell: func(o client.Object) bool { return o.GetLabels()[v1.NodePoolLabelKey] != "" },
		},
	})
	if err := c.Watch(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	return s
}

// GetInformer implements cache.Informers.
func (s *kinds) GetInformer(_ context.Context, o client.Object, _ ...cache.InformerGetOption) (cache.Informer, error) {
	return &informer{kinds: s, kind: strings.ToLower(strings.TrimPrefix(fmt.Sprintf("%T", o), "*v1."))}, nil
}

// informer hands its handler to the story.
type informer struct {
	cache.Informer
	kinds *kinds
	kind  string
}

func (i *informer) AddEventHandler(h toolscache.ResourceEventHandler) (toolscache.ResourceEventHandlerRegistration, error) {
	i.kinds.handlers[i.kind] = h
	return nil, nil
}

func (s *kinds) do(t *testing.T, command string, words []string) string {
	t.Helper()
	switch command {
	case "lead":
		s.leads = true
	case "pass":
		d, err := time.ParseDuration(words[0])
		if err != nil {
			t.Fatal(err)
		}
		s.clock.SetTime(s.clock.Now().Add(d))
	case "gone":
		key := words[0] + "/" + words[1]
		last, _ := s.known[key].DeepCopyObject().(client.Object)
		if !slices.Contains(words, "unseen") {
			last.SetFinalizers(nil) // what deletes an object that waits for one is its removal
		}
		var obj any = last
		if slices.Contains(words, "unseen") {
			obj = toolscache.DeletedFinalStateUnknown{Key: words[1], Obj: obj}
		}
		delete(s.known, key)
		s.handlers[words[0]].OnDelete(obj)
	case "nodepool", "node":
		s.tell(command, words[0], words[1:])
	case "show":
		return s.show(t)
	case "told":
		var out strings.Builder
		for _, e := range s.events.Events() {
			fmt.Fprintf(&out, "%s %s %s: %s %q\n", e.Type, e.Reason, e.Object.GetName(), e.Message, e.Dedupe)
		}
		s.events.Reset()
		return out.String()
	default:
		t.Fatalf("unknown command %s", command)
	}
	return ""
}

func (s *kinds) tell(kind, name string, words []string) {
	key := kind + "/" + name
	was := s.known[key]
	meta := metav1.ObjectMeta{Name: name, UID: types.UID("uid-" + name), Labels: map[string]string{}}
	var before, conditions []metav1.Condition
	if was != nil {
		meta.DeletionTimestamp = was.GetDeletionTimestamp()
		before = append(meter.ConditionsOf(was), meter.NodeConditions(was)...)
	}
	listed := false
	for _, word := range words {
		left, right, isCondition := strings.Cut(word, "=")
		label, value, isLabel := strings.Cut(word, ":")
		switch {
		case word == "listed":
			listed = true
		case word == "deleting":
			meta.DeletionTimestamp = &metav1.Time{Time: s.clock.Now()}
		case strings.HasPrefix(word, "+"):
			meta.Finalizers = append(meta.Finalizers, word[1:])
		case left == "uid":
			meta.UID = types.UID(right)
		case isLabel:
			meta.Labels[label] = value
		case isCondition:
			x := metav1.Condition{Type: left, Status: metav1.ConditionStatus(right), Reason: "R", LastTransitionTime: metav1.NewTime(s.clock.Now())}
			if i := slices.IndexFunc(before, func(y metav1.Condition) bool { return y.Type == left && y.Status == x.Status }); i >= 0 {
				x = before[i]
			}
			conditions = append(conditions, x)
		}
	}
	var o client.Object = &v1.NodePool{ObjectMeta: meta, Status: v1.NodePoolStatus{Conditions: conditions}}
	if kind == "node" {
		node := &corev1.Node{ObjectMeta: meta}
		for _, x := range conditions {
			node.Status.Conditions = append(node.Status.Conditions, corev1.NodeCondition{
				Type: corev1.NodeConditionType(x.Type), Status: corev1.ConditionStatus(x.Status), Reason: x.Reason, LastTransitionTime: x.LastTransitionTime,
			})
		}
		o = node
	}
	s.known[key] = o
	if was == nil {
		s.handlers[kind].OnAdd(o, listed)
		return
	}
	s.handlers[kind].OnUpdate(was, o)
}

// show returns all series, sorted.
func (s *kinds) show(t *testing.T) string {
	t.Helper()
	families, err := s.registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, f := range families {
		name := strings.TrimPrefix(f.GetName(), "operator_")
		for _, m := range f.GetMetric() {
			out = append(out, fmt.Sprintf("  %s{%s} %s\n", name, labels(m), value(m)))
		}
	}
	slices.Sort(out)
	return fmt.Sprintf("after %v\n", s.clock.Since(start())) + strings.Join(out, "")
}

func value(m *dto.Metric) string {
	switch {
	case m.Gauge != nil:
		return fmt.Sprintf("%g", m.GetGauge().GetValue())
	case m.Counter != nil:
		return fmt.Sprintf("%g", m.GetCounter().GetValue())
	default:
		return fmt.Sprintf("%d: %gs", m.GetHistogram().GetSampleCount(), m.GetHistogram().GetSampleSum())
	}
}
