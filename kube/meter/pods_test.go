// SPDX-License-Identifier: Apache-2.0

package meter_test

import (
	"cmp"
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
	clocktesting "k8s.io/utils/clock/testing"

	"karpenter/kube/meter"
	"karpenter/model"
)

// TestPods runs the stories in testdata/pods. Each line is one event:
//
//	lead             the process leads from now on
//	pod NAME WORDS   a pod is new or has changed: asks, bound, ready, running,
//	                 ended, claims (uses ResourceClaims), uid=UID
//	gone NAME        it is deleted
//	healthy POOL, unhealthy POOL
//	decided PLACES   a decision: POD=nowhere, POD=new:POOL, POD=NODE where the
//	                 node is named after its pool, or is none's: "other".
//	                 POD/from is bound already, POD/buffer does not exist
//	pass TIME
//	show             the metrics that say anything: gauges, and of the others
//	                 how many there were and what they add up to
func TestPods(t *testing.T) {
	datadriven.RunTest(t, "testdata/pods", func(t *testing.T, d *datadriven.TestData) string {
		s := newWaiting()
		var out strings.Builder
		for line := range strings.Lines(d.Input) {
			if fields := strings.Fields(line); len(fields) > 0 {
				out.WriteString(s.do(t, fields[0], fields[1:]))
			}
		}
		return out.String()
	})
}

// waiting is a meter.Pods and what it hears of.
type waiting struct {
	*meter.Pods
	clock    *clocktesting.FakePassiveClock
	registry *prometheus.Registry
	healthy  map[string]bool
	created  map[types.UID]time.Time
}

func start() time.Time { return time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC) }

func newWaiting() *waiting {
	s := &waiting{
		clock:    clocktesting.NewFakePassiveClock(start()),
		registry: prometheus.NewPedanticRegistry(), healthy: map[string]bool{}, created: map[types.UID]time.Time{},
	}
	s.Pods = meter.NewPods(s.registry, s.clock, func(pool string) bool { return s.healthy[pool] })
	return s
}

func (s *waiting) do(t *testing.T, command string, words []string) string {
	t.Helper()
	switch command {
	case "lead":
		if err := s.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
	case "pod":
		s.Set(s.pod(words[0], words[1:]), slices.Contains(words, "asks"))
	case "gone":
		s.Delete(s.pod(words[0], nil))
	case "healthy", "unhealthy":
		s.healthy[words[0]] = command == "healthy"
	case "decided":
		s.Decided(decision(words))
	case "pass":
		d, err := time.ParseDuration(words[0])
		if err != nil {
			t.Fatal(err)
		}
		s.clock.SetTime(s.clock.Now().Add(d))
	case "show":
		return s.show(t)
	default:
		t.Fatalf("unknown command %s", command)
	}
	return ""
}

// pod returns a pod that became now what it is.
func (s *waiting) pod(name string, words []string) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: types.UID("uid-" + name)}}
	p.Status.Phase = corev1.PodPending
	now := metav1.NewTime(s.clock.Now())
	is := func(condition corev1.PodConditionType) {
		p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{Type: condition, Status: corev1.ConditionTrue, LastTransitionTime: now})
	}
	for _, word := range words {
		key, value, _ := strings.Cut(word, "=")
		switch key {
		case "claims":
			p.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "gpu"}}
		case "uid":
			p.UID = types.UID(value)
		case "bound":
			is(corev1.PodScheduled)
		case "ready":
			is(corev1.PodReady)
			p.Status.Phase = corev1.PodRunning
		case "running":
			p.Status.Phase = corev1.PodRunning
		case "ended":
			p.Status.Phase = corev1.PodSucceeded
		}
	}
	if _, known := s.created[p.UID]; !known {
		s.created[p.UID] = now.Time
	}
	p.CreationTimestamp = metav1.NewTime(s.created[p.UID])
	return p
}

// decision reads what was decided.
func decision(words []string) (*model.Snapshot, *model.Plan) {
	s, plan := &model.Snapshot{Nodes: []model.Node{{Name: "other"}}}, &model.Plan{}
	for _, word := range words {
		name, where, _ := strings.Cut(word, "=")
		name, kind, _ := strings.Cut(name, "/")
		pod := model.Pod{Namespace: "default", Name: name, UID: "uid-" + name}
		switch kind {
		case "from":
			pod.From = "old"
		case "buffer":
			pod.Buffer = "default/b"
		}
		pool, isNew := strings.CutPrefix(where, "new:")
		switch {
		case where == "nowhere":
			plan.Verdicts = append(plan.Verdicts, model.Verdict{Shape: &model.Shape{}, Pods: []model.Pod{pod}})
		case isNew:
			plan.Launches = append(plan.Launches, model.Launch{Pool: pool, Pods: []model.Pod{pod}})
		default:
			if where != "other" {
				s.Nodes = append(s.Nodes, model.Node{Name: where, Pool: where})
			}
			plan.Placements = append(plan.Placements, model.Placement{Pod: pod, Node: where})
		}
	}
	return s, plan
}

// show returns the metrics that say anything, sorted.
func (s *waiting) show(t *testing.T) string {
	t.Helper()
	families, err := s.registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, f := range families {
		name := strings.TrimPrefix(f.GetName(), "karpenter_")
		for _, m := range f.GetMetric() {
			switch {
			case m.Gauge != nil:
				out = append(out, fmt.Sprintf("%s{%s} %g", name, labels(m), m.GetGauge().GetValue()))
			case m.GetHistogram().GetSampleCount() > 0:
				out = append(out, fmt.Sprintf("%s %d: %gs", name, m.GetHistogram().GetSampleCount(), m.GetHistogram().GetSampleSum()))
			case m.GetSummary().GetSampleCount() > 0:
				out = append(out, fmt.Sprintf("%s %d: %gs", name, m.GetSummary().GetSampleCount(), m.GetSummary().GetSampleSum()))
			}
		}
	}
	slices.Sort(out)
	return fmt.Sprintf("after %v\n  %s\n", s.clock.Since(start()), cmp.Or(strings.Join(out, "\n  "), "nothing"))
}

func labels(m *dto.Metric) string {
	var out []string
	for _, l := range m.GetLabel() {
		out = append(out, l.GetName()+"="+l.GetValue())
	}
	return strings.Join(out, ",")
}
