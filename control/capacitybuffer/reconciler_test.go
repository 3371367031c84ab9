// SPDX-License-Identifier: Apache-2.0

package capacitybuffer

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"karpenter/api/autoscaling/v1beta1"
	"karpenter/api/unreadable"
	"karpenter/kube/convert"
	"karpenter/kube/standins"
	"karpenter/model"
)

type queueOfRequests = workqueue.TypedRateLimitingInterface[reconcile.Request]

const (
	ready        = v1beta1.ReadyForProvisioningCondition
	provisioning = v1beta1.ProvisioningCondition
)

// spec 45/28, spec 10/54: a buffer of a PodTemplate.
func TestPodTemplate(t *testing.T) {
	s := newStage(t)
	s.buffer("b", nil)
	s.must("default/b")
	s.wants("default/b", ready, "False PodTemplateNotFound: there is no PodTemplate small in namespace default")
	s.wants("default/b", provisioning, "False NotReadyForProvisioning: ")
	s.wantStandIns(0)
	if len(s.news) > 0 {
		t.Errorf("a pass was triggered: %v", s.news)
	}
	template := s.template("small")
	s.must("default/b")
	s.wants("default/b", ready, "True Resolved: keeping capacity for 3 pods")
	s.wantStandIns(3)
	if !slices.Equal(s.news, []string{"default/b"}) { // spec 45/33
		t.Errorf("triggers %v", s.news)
	}
	status := s.get("default/b").Status
	if *status.Replicas != 3 || status.PodTemplateRef.Name != "small" || *status.PodTemplateGeneration != 1 ||
		*status.ProvisioningStrategy != v1beta1.ActiveProvisioningStrategy {
		t.Errorf("status %+v", status)
	}
	if err := s.Client.Delete(t.Context(), template); err != nil {
		t.Fatal(err)
	}
	s.must("default/b")
	s.wants("default/b", ready, "False PodTemplateNotFound: ")
	s.wantStandIns(0)
	if status := s.get("default/b").Status; status.PodTemplateRef != nil || status.PodTemplateGeneration != nil || status.Replicas != nil {
		t.Errorf("status %+v says what is not there", status)
	}
	if len(s.news) != 1 {
		t.Errorf("triggers %v", s.news)
	}
}

// spec 45/29, spec 10/56: a buffer of a workload.
func TestWorkload(t *testing.T) {
	s := newStage(t)
	s.deployment("d", ptr.To(int32(10)))
	s.deployment("one", nil)
	s.create(&appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Name: "s"}, Spec: appsv1.StatefulSetSpec{Replicas: ptr.To(int32(4)), Template: pods()}})
	s.create(&appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Name: "r"}, Spec: appsv1.ReplicaSetSpec{Replicas: ptr.To(int32(5)), Template: pods()}})
	for i, c := range []struct {
		group, kind, name string
		want              int32
	}{
		{"apps", "Deployment", "d", 2}, {"", "Deployment", "d", 2}, {"apps", "StatefulSet", "s", 1}, {"", "ReplicaSet", "r", 1}, {"apps", "Deployment", "one", 1},
	} {
		name := fmt.Sprint("b", i)
		s.buffer(name, scalable(c.group, c.kind, c.name, 20))
		s.must("default/" + name)
		s.wants("default/"+name, ready, "True Resolved: ")
		if status := s.get("default/" + name).Status; *status.Replicas != c.want || status.PodTemplateRef != nil {
			t.Errorf("%v: status %+v, want %d replicas", c, status, c.want)
		}
	}
	s.wantStandIns(7)
	s.buffer("missing", scalable("apps", "Deployment", "missing", 20))
	s.must("default/missing")
	s.wants("default/missing", ready, "False ScalableRefNotFound: there is no Deployment missing in namespace default")
}

// spec 10/55: what cannot be scaled is an error, which trying again does not
// mend.
func TestUnsupportedWorkload(t *testing.T) {
	for _, c := range []struct{ group, kind string }{{"apps", "DaemonSet"}, {"batch", "Deployment"}, {"", "Job"}} {
		s := newStage(t)
		s.buffer("b", scalable(c.group, c.kind, "x", 20))
		after, err := s.reconcile("default/b")
		if !errors.Is(err, reconcile.TerminalError(nil)) || after != 0 {
			t.Errorf("%v: come back after %v, %v", c, after, err)
		}
		s.wants("default/b", ready, "False ResolutionFailed: scalableRef names a "+c.kind)
		s.wants("default/b", provisioning, "False NotReadyForProvisioning: ")
	}
}

// A buffer with a field that could not be read keeps no capacity, and its
// status names the field.
func TestUnreadable(t *testing.T) {
	s := newStage(t)
	s.buffer("b", func(b *v1beta1.CapacityBuffer) {
		b.Annotations = map[string]string{unreadable.AnnotationKey: `spec.limits[cpu]: number "1e-999999999" is too long`}
	})
	if after, err := s.reconcile("default/b"); !errors.Is(err, reconcile.TerminalError(nil)) || after != 0 {
		t.Errorf("come back after %v, %v", after, err)
	}
	s.wants("default/b", ready, `False ResolutionFailed: spec.limits[cpu]: number "1e-999999999" is too long`)
	s.wants("default/b", provisioning, "False NotReadyForProvisioning: ")
}

// spec 45/33: a buffer that names nothing keeps no capacity, and neither does
// one that is gone or going. One that cannot be read keeps what it had.
func TestBuffersThatKeepNothing(t *testing.T) {
	s := newStage(t)
	s.template("small")
	b := s.buffer("b", nil)
	s.must("default/b")
	s.wantStandIns(3)
	b = s.get("default/b")
	b.Spec.PodTemplateRef = nil
	if err := s.Client.Update(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	s.must("default/b")
	s.wants("default/b", ready, "False ResolutionFailed: neither podTemplateRef nor scalableRef is set")
	s.wantStandIns(0)

	c := s.buffer("c", func(b *v1beta1.CapacityBuffer) { b.Finalizers = []string{"test.sh/kept"} })
	s.must("default/c")
	s.wantStandIns(3)
	if err := s.Client.Delete(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	if after, err := s.reconcile("default/c"); err != nil || after != 0 {
		t.Errorf("come back after %v, %v", after, err)
	}
	s.wantStandIns(0)
	if after, err := s.reconcile("default/never"); err != nil || after != 0 {
		t.Errorf("come back after %v, %v", after, err)
	}
}

// spec 45/32: a template or workload that changes has the buffers looked at
// again that name it.
func TestTemplateChangeReconcilesBuffers(t *testing.T) {
	s := newStage(t)
	template := s.template("small")
	s.buffer("b", nil)
	s.buffer("other", func(b *v1beta1.CapacityBuffer) { b.Spec.PodTemplateRef.Name = "large" })
	s.buffer("elsewhere", func(b *v1beta1.CapacityBuffer) { b.Namespace = "elsewhere" })
	s.buffer("d", scalable("apps", "Deployment", "small", 10))
	s.buffer("s", scalable("apps", "StatefulSet", "small", 10))
	if got := fmt.Sprint(s.ofTemplate(t.Context(), template)); got != "[default/b]" {
		t.Errorf("a template concerns %s", got)
	}
	deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "small"}}
	if got := fmt.Sprint(s.ofWorkload("Deployment")(t.Context(), deployment)); got != "[default/d]" {
		t.Errorf("a deployment concerns %s", got)
	}

	s.must("default/b")
	template.Generation, template.Template.Spec.Containers[0].Resources.Requests["cpu"] = 2, resource.MustParse("2")
	if err := s.Client.Update(t.Context(), template); err != nil {
		t.Fatal(err)
	}
	s.must("default/b")
	if got := s.get("default/b").Status.PodTemplateGeneration; *got != 2 {
		t.Errorf("generation %d", *got)
	}
	pending := s.world.Snapshot(s.clock.Now()).Pending
	if len(pending) != 1 || pending[0].Shape.Requests.At(model.CPU) != 2000 || len(pending[0].Pods) != 3 {
		t.Errorf("pending %+v", pending)
	}
}

// spec 48/79: the node that only a buffer needs is empty once the buffer is gone,
// or cannot be resolved any more.
func TestSpareNodeBecomesEmpty(t *testing.T) {
	for name, end := range map[string]func(*stage){
		"deleted": func(s *stage) {
			if err := s.Client.Delete(t.Context(), s.get("default/b")); err != nil {
				t.Fatal(err)
			}
			if _, err := s.reconcile("default/b"); err != nil {
				t.Fatal(err)
			}
		},
		"unresolvable": func(s *stage) {
			if err := s.Client.Delete(t.Context(), &corev1.PodTemplate{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "small"}}); err != nil {
				t.Fatal(err)
			}
			s.must("default/b")
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStage(t)
			s.template("small")
			s.pool()
			s.node("n", 4, true)
			s.buffer("b", nil)
			s.must("default/b")
			if plan, _ := s.pass(); len(plan.Commands) > 0 || len(plan.Placements) != 3 {
				t.Fatalf("with the buffer: %d placements, commands %+v", len(plan.Placements), plan.Commands)
			}
			end(s)
			plan, _ := s.pass()
			if len(plan.Commands) != 1 || plan.Commands[0].Reason != model.Empty || plan.Commands[0].Nodes[0].Node != "n" {
				t.Errorf("without the buffer: commands %+v, %+v", plan.Commands, plan.Stays)
			}
		})
	}
}

// spec 48/79: a workload that comes after the buffer that names it is found at
// once.
func TestWorkloadComesLater(t *testing.T) {
	s := newStage(t)
	s.buffer("b", scalable("", "Deployment", "d", 100))
	s.must("default/b")
	s.wants("default/b", ready, "False ScalableRefNotFound: ")
	s.deployment("d", ptr.To(int32(2)))
	deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "d"}}
	for _, r := range s.ofWorkload("Deployment")(t.Context(), deployment) {
		s.must(r.String())
	}
	s.wants("default/b", ready, "True Resolved: ")
	s.wantStandIns(2)
	if len(s.news) == 0 {
		t.Error("no pass is triggered")
	}
}

// spec 45/34: the pods that stand in for a buffer.
func TestStandIns(t *testing.T) {
	template := pods()
	spec := &template.Spec
	spec.NodeName = "chosen"
	spec.Priority = ptr.To(int32(1000))
	spec.NodeSelector = map[string]string{"team": "a"}
	spec.Tolerations = []corev1.Toleration{{Key: "gpu", Operator: corev1.TolerationOpExists}}
	spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{}}
	spec.Volumes = []corev1.Volume{
		{Name: "config", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{}}},
		{Name: "data", VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data"}}},
		{Name: "scratch", VolumeSource: corev1.VolumeSource{Ephemeral: &corev1.EphemeralVolumeSource{}}},
	}
	mounts := []corev1.VolumeMount{{Name: "data"}, {Name: "config"}, {Name: "scratch"}}
	spec.Containers[0].VolumeMounts = slices.Clone(mounts)
	spec.Containers[0].VolumeDevices = []corev1.VolumeDevice{{Name: "data"}}
	spec.InitContainers = []corev1.Container{{Name: "init", VolumeMounts: slices.Clone(mounts)}}
	before := template.DeepCopy()

	b := &v1beta1.CapacityBuffer{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "b", UID: "123"}}
	pod := convert.StandIn(&template, b.Namespace, b.CreationTimestamp)
	if diff := cmp.Diff(before, &template); diff != "" {
		t.Errorf("the template was modified: %s", diff)
	}
	if *pod.Spec.Priority != math.MinInt32 || pod.Spec.NodeName != "" || pod.Labels["app"] != "web" {
		t.Errorf("pod %+v", pod)
	}
	kept := []any{pod.Spec.NodeSelector, pod.Spec.Tolerations, pod.Spec.Affinity}
	if diff := cmp.Diff([]any{spec.NodeSelector, spec.Tolerations, spec.Affinity}, kept); diff != "" {
		t.Error(diff)
	}
	left := []corev1.VolumeMount{{Name: "config"}}
	if len(pod.Spec.Volumes) != 1 || len(pod.Spec.Containers[0].VolumeDevices) != 0 ||
		!cmp.Equal(left, pod.Spec.Containers[0].VolumeMounts) || !cmp.Equal(left, pod.Spec.InitContainers[0].VolumeMounts) {
		t.Errorf("volumes %+v", pod.Spec)
	}

	s := newStage(t)
	list := standIns(b, s.Convert.Pod(pod), 2)
	if again := standIns(b, s.Convert.Pod(convert.StandIn(&template, b.Namespace, b.CreationTimestamp)), 2); !cmp.Equal(list, again) {
		t.Errorf("recreated, the pods differ: %s", cmp.Diff(list, again))
	}
	for i, p := range list {
		if p.Name != fmt.Sprint("capacity-buffer-b-", i+1) || p.UID != fmt.Sprint("123-", i+1) || p.Namespace != "default" || !p.Pending {
			t.Errorf("pod %+v", p)
		}
	}
}

// spec 45/31: a template with limits only requests as much, as the pods made
// from it will.
func TestLimitsAreRequests(t *testing.T) {
	s := newStage(t)
	template := &corev1.PodTemplate{ObjectMeta: metav1.ObjectMeta{Name: "small"}, Template: pods()}
	k := &template.Template.Spec.Containers[0].Resources
	k.Requests, k.Limits = nil, corev1.ResourceList{"cpu": resource.MustParse("2")}
	s.create(template)
	s.buffer("b", func(b *v1beta1.CapacityBuffer) {
		b.Spec.Replicas, b.Spec.Limits = nil, corev1.ResourceList{"cpu": resource.MustParse("7"), "pods": resource.MustParse("1")}
	})
	s.must("default/b")
	s.wantStandIns(3)
}

// spec 10/57: buffers of one name in two namespaces have nothing in common.
func TestNamespaces(t *testing.T) {
	s := newStage(t)
	s.template("small")
	s.buffer("b", nil)
	s.buffer("b", func(b *v1beta1.CapacityBuffer) { b.Namespace = "elsewhere" })
	s.must("default/b")
	s.must("elsewhere/b")
	s.wants("elsewhere/b", ready, "False PodTemplateNotFound: ")
	s.wantStandIns(3)
	s.pool()
	s.pass()
	s.must("default/b")
	s.must("elsewhere/b")
	s.wants("default/b", provisioning, "False RequiresNewCapacity: ")
	s.wants("elsewhere/b", provisioning, "False NotReadyForProvisioning: ")
}

// A number no one can mean does not bring the process down.
func TestTooMany(t *testing.T) {
	s := newStage(t)
	s.template("small")
	s.buffer("b", func(b *v1beta1.CapacityBuffer) { b.Spec.Replicas = ptr.To(int32(math.MaxInt32)) })
	s.must("default/b")
	s.wants("default/b", ready, "True Resolved: keeping capacity for 10000 of 2147483647 pods: a buffer can have at most 10000")
	if got := *s.get("default/b").Status.Replicas; got != most {
		t.Errorf("status.replicas %d", got)
	}
	s.wantStandIns(most)
}

// spec 45/35: until all buffers that are there are known, nothing may be
// planned; the reading is repeated until it works. Buffers that cannot be
// resolved, or ask for no pods, do not hold it up.
func TestHydration(t *testing.T) {
	s := newStage(t)
	s.template("small")
	s.buffer("b", nil)
	s.buffer("none", func(b *v1beta1.CapacityBuffer) { b.Spec.Replicas = ptr.To(int32(0)) })
	s.buffer("lost", func(b *v1beta1.CapacityBuffer) { b.Spec.PodTemplateRef.Name = "lost" })
	failures := 0
	s.fail = func(client.ObjectList) error {
		if failures++; failures == 1 {
			return errors.New("no answer")
		}
		return nil
	}
	if err := s.HydrateOnce(t.Context(), s.hydrate); err == nil || s.Hydrated() {
		t.Errorf("hydrated is %t after %v", s.Hydrated(), err)
	}
	s.wantStandIns(0)
	if err := s.Start(t.Context()); err != nil || !s.Hydrated() {
		t.Errorf("hydrated is %t after %v", s.Hydrated(), err)
	}
	s.wantStandIns(3)
	if err := s.Start(t.Context()); err != nil || failures != 2 {
		t.Errorf("listed %d times, %v", failures, err)
	}
}

// A status that another client has written meanwhile is written again soon; one
// that does not change is not written.
func TestStatusWrites(t *testing.T) {
	s := newStage(t)
	s.template("small")
	s.buffer("b", nil)
	writes, result := 0, error(nil)
	s.patch = func() error { writes++; return result }
	for _, result = range []error{
		apierrors.NewConflict(schema.GroupResource{}, "b", errors.New("changed")), apierrors.NewNotFound(schema.GroupResource{}, "b"),
	} {
		if after, err := s.reconcile("default/b"); after != standins.AgainAfter || err != nil {
			t.Errorf("come back after %v, %v", after, err)
		}
	}
	result = errors.New("no answer")
	if _, err := s.reconcile("default/b"); err == nil || !strings.Contains(err.Error(), "no answer") {
		t.Errorf("error %v", err)
	}
	result, writes = nil, 0
	for range 3 {
		s.must("default/b")
		s.clock.SetTime(s.clock.Now().Add(time.Minute))
	}
	if writes != 1 {
		t.Errorf("%d writes of one status", writes)
	}
}
