// SPDX-License-Identifier: Apache-2.0

package provisioningrequest

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	autoscalingv1 "karpenter/api/autoscaling/v1"
	"karpenter/api/hostile"
	"karpenter/api/unreadable"
	"karpenter/model"
	"karpenter/solve"
	"karpenter/solve/solvetest"
)

// TestHostileRequests has ProvisioningRequests, PodTemplates and pods with fields that no one would write
// come and go: nothing panics or hangs, plans break no promise, and a request beside them gets its capacity.
func TestHostileRequests(t *testing.T) {
	asked := 0
	runs := hostile.Runs(t, 20, func(t *testing.T, seed uint64) { asked += withHostileRequests(t, seed) })
	t.Logf("%d pods stood in for requests", asked)
	if runs >= 20 && asked == 0 {
		t.Error("no request asks for a pod: this is no test")
	}
}

func withHostileRequests(t *testing.T, seed uint64) (asked int) {
	h := hostile.New(seed, autoscalingv1.CheckCapacity, autoscalingv1.BestEffortAtomicScaleUp, autoscalingv1.NoRetry, autoscalingv1.ValidUntilSeconds, "template-0", "request-0")
	s := newStage(t)
	template := &corev1.PodTemplate{}
	template.Template.Spec.Containers = containers("1")
	request := &autoscalingv1.ProvisioningRequest{Spec: autoscalingv1.ProvisioningRequestSpec{
		ProvisioningClassName: autoscalingv1.BestEffortAtomicScaleUp, PodSets: []autoscalingv1.PodSet{{PodTemplateRef: autoscalingv1.Reference{Name: "template-0"}, Count: 2}},
	}}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{autoscalingv1.ConsumeAnnotation: "request-0"}}}
	pod.Spec.Containers = containers("1")
	var names []string
	for i := range 1 + h.IntN(6) {
		store(s, h, template, fmt.Sprint("template-", i), "Template")
		if q := store(s, h, request, fmt.Sprint("request-", i), "Spec", "Spec", "Status"); q != nil {
			names = append(names, q.Name)
		}
		if p := store(s, h, pod, fmt.Sprint("pod-", i), "Spec", "Status"); p != nil {
			s.world.SetPod(s.Convert.Pod(p))
		}
	}
	for range 3 {
		for _, name := range names {
			s.reconcile(name)
		}
		asked += s.asked()
		snapshot := s.world.Snapshot(s.clock.Now())
		plan := solve.Decide(snapshot, model.DefaultPolicy())
		if bad := solvetest.Check(snapshot, model.DefaultPolicy(), plan); len(bad) > 0 {
			t.Errorf("the plan breaks promises: %s", strings.Join(bad, "\n"))
		}
		s.Planned(snapshot, plan)
		s.wait(time.Minute)
	}
	s.request("good", autoscalingv1.BestEffortAtomicScaleUp, nil, "1:2")
	s.pass("good")
	if said := s.says("good"); !strings.Contains(said, "Provisioned False Provisioning") {
		t.Errorf("the request beside them says %q", said)
	}
	return asked
}

// store creates a copy of the object, changed in some of the parts or full of
// what no one would write. It returns nil if the object is none that the API
// server could send.
func store[T client.Object](s *stage, h hostile.Source, sample T, name string, parts ...string) T {
	o := reflect.ValueOf(sample.DeepCopyObject())
	for range h.IntN(3) {
		part := o.Elem().FieldByName(parts[h.IntN(len(parts))])
		if h.IntN(3) == 0 {
			h.Fill(part, 0)
		} else {
			h.Change(part, 1)
		}
	}
	out := o.Interface().(T)
	out.SetName(name)
	out.SetNamespace("default")
	out.SetUID(types.UID("uid-of-" + name))
	out.SetCreationTimestamp(metav1.NewTime(s.clock.Now()))
	if err := s.Client.Create(s.t.Context(), out); err != nil {
		var none T
		return none
	}
	return out
}

// TestUnreadableRequest: a request of which a field was dropped asks for nothing, and says why.
func TestUnreadableRequest(t *testing.T) {
	s := newStage(t)
	q := &autoscalingv1.ProvisioningRequest{ObjectMeta: metav1.ObjectMeta{
		Name: "torn", Annotations: map[string]string{unreadable.AnnotationKey: "spec.podSets[0].count: 1e30 cannot be read"},
	}}
	q.Spec.ProvisioningClassName = autoscalingv1.BestEffortAtomicScaleUp
	s.create(q)
	if launched := s.pass("torn"); launched != 0 {
		t.Errorf("%d nodes are launched", launched)
	}
	s.wants("torn", "Provisioned False Unreadable")
}
