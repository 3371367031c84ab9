// SPDX-License-Identifier: Apache-2.0

package feed_test

import (
	"fmt"
	"math/rand"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "karpenter/api/v1"
	"karpenter/kube/feed"
	"karpenter/kube/volumes"
	"karpenter/scenario"
)

// mounting returns a pod with the claims.
func mounting(name, node string, claims ...string) *corev1.Pod {
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: types.UID(name)},
		Spec:       corev1.PodSpec{NodeName: node},
		Status:     corev1.PodStatus{Conditions: []corev1.PodCondition{{Type: corev1.PodScheduled, Reason: corev1.PodReasonUnschedulable}}},
	}
	for _, c := range claims {
		p.Spec.Volumes = append(p.Spec.Volumes, corev1.Volume{Name: c, VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: c},
		}})
	}
	return p
}

// storage is claim data, bound to a volume in zone a, claim new, of a class
// that waits and knows zone b, and a node that may attach five volumes. They
// have much that does not matter.
func storage() []client.Object {
	meta := func(namespace, name string) metav1.ObjectMeta {
		return metav1.ObjectMeta{
			Namespace: namespace, Name: name, Finalizers: []string{"f"}, ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "m"}},
		}
	}
	data := &corev1.PersistentVolumeClaim{ObjectMeta: meta("default", "data")}
	data.Annotations = map[string]string{"pv.kubernetes.io/bind-completed": "yes"}
	data.Spec.VolumeName = "pv"
	data.Spec.Resources.Requests = corev1.ResourceList{"storage": resource.MustParse("1Gi")}
	data.Status.Phase = corev1.ClaimBound
	data.Status.Capacity = data.Spec.Resources.Requests
	fresh := &corev1.PersistentVolumeClaim{ObjectMeta: meta("default", "new")}
	fresh.Spec.StorageClassName = ptr.To("wait")
	pv := &corev1.PersistentVolume{ObjectMeta: meta("", "pv")}
	pv.Labels = map[string]string{corev1.LabelTopologyZone: "a"}
	pv.Spec.Capacity = data.Spec.Resources.Requests
	pv.Spec.CSI = &corev1.CSIPersistentVolumeSource{Driver: "ebs", VolumeHandle: "v", VolumeAttributes: map[string]string{"a": "b"}}
	class := &storagev1.StorageClass{ObjectMeta: meta("", "wait"), Provisioner: "ebs", Parameters: map[string]string{"a": "b"}}
	class.VolumeBindingMode = ptr.To(storagev1.VolumeBindingWaitForFirstConsumer)
	class.AllowedTopologies = []corev1.TopologySelectorTerm{{MatchLabelExpressions: []corev1.TopologySelectorLabelRequirement{{Key: corev1.LabelTopologyZone, Values: []string{"b"}}}}}
	node := &storagev1.CSINode{ObjectMeta: meta("", "n")}
	node.Spec.Drivers = []storagev1.CSINodeDriver{{Name: "ebs", NodeID: "i", TopologyKeys: []string{"k"}, Allocatable: &storagev1.VolumeNodeResources{Count: ptr.To(int32(5))}}}
	return []client.Object{data, fresh, pv, class, node}
}

// situation prints what decisions see of pods and nodes, in a way that can be
// read back.
func (x *fixture) situation() string {
	x.t.Helper()
	var out strings.Builder
	if err := scenario.Print(&out, x.world.Snapshot(now())); err != nil {
		x.t.Fatal(err)
	}
	var again strings.Builder
	s, err := scenario.Parse(strings.NewReader(out.String()))
	if err == nil {
		err = scenario.Print(&again, s)
	}
	if err != nil || again.String() != out.String() {
		x.t.Fatalf("what is printed reads as something else (%v):\n%s", err, out.String())
	}
	return out.String()
}

// spec 20/81 spec 20/83: a pod waits for its claim and is planned for as soon
// as that can be used; other pods have nothing to do with it.
func TestVolumes(t *testing.T) {
	x := newFixture(t)
	x.tell("add", mounting("db", "", "data"))
	x.tell("add", mounting("web", ""))
	check := func(when, want string) {
		t.Helper()
		var got string
		for _, p := range x.world.Snapshot(now()).Pending {
			for _, pod := range p.Pods {
				got += fmt.Sprintln(pod.Name+" "+pod.Claims, p.Shape.Refused, p.Shape.Volumes, p.Shape.VolumeTerms)
			}
		}
		if got != want {
			t.Errorf("%s: got\n%swant\n%s", when, got, want)
		}
	}
	check("before", "web  [] [] []\ndb  [PersistentVolumeClaim default/data, which does not exist] [] []\n")
	for _, o := range storage() {
		x.tell("add", o)
	}
	check("with the storage", "web  [] [] []\ndb default/data [] [{ebs 1 []}] [topology.kubernetes.io/zone In [a]]\n")
	x.tell("add", mounting("reader", "", "data"))
	check("with another user", "web  [] [] []\ndb default/data [] [{ebs 0 [default/data]}] [topology.kubernetes.io/zone In [a]]\nreader default/data [] [{ebs 0 [default/data]}] [topology.kubernetes.io/zone In [a]]\n")
	x.tell("delete", mounting("db", "", "data"))
	x.tell("delete", storage()[0])
	check("without the claim", "web  [] [] []\nreader  [PersistentVolumeClaim default/data, which does not exist] [] []\n")
}

// Whatever order the objects come in, the world ends up the same, and nothing
// is left of pods that came and went.
func TestVolumesInAnyOrder(t *testing.T) {
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}}
	objects := append(storage(), node, mounting("a", "n", "data"), mounting("b", "n", "data", "new"), mounting("c", "", "new"), mounting("d", "", "data"))
	passing := []client.Object{mounting("x", "n", "data"), mounting("y", "", "new")}
	var want string
	for seed := range int64(50) {
		r := rand.New(rand.NewSource(seed))
		x := newFixture(t)
		for _, o := range passing {
			x.tell("add", o)
		}
		list := append(append([]client.Object(nil), objects...), passing...)
		r.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
		for _, o := range list {
			switch {
			case o == passing[0] || o == passing[1]:
				x.tell("delete", o)
			default:
				x.tell("add", o)
			}
		}
		got := x.situation()
		if want == "" {
			want = got
			t.Log(want)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("seed %d makes a difference:\n%s", seed, diff)
		}
	}
}

// Trimmed storage says the same, and is smaller.
func TestTrimsOfStorage(t *testing.T) {
	answers := func(objects []client.Object) (volumes.Answer, map[string]int) {
		s := volumes.New(v1.DefaultLabels(), volumes.Rules{})
		var limits map[string]int
		for _, o := range objects {
			switch o := o.(type) {
			case *corev1.PersistentVolumeClaim:
				s.SetClaim(o)
			case *corev1.PersistentVolume:
				s.SetVolume(o)
			case *storagev1.StorageClass:
				s.SetClass(o)
			case *storagev1.CSINode:
				limits = volumes.Limits(o)
			}
		}
		return s.Of(mounting("p", "", "data", "new")), limits
	}
	full, trimmed := storage(), storage()
	for kind, how := range feed.Trims() {
		for i, o := range trimmed {
			if reflect.TypeOf(o) != reflect.TypeOf(kind) {
				continue
			}
			small, err := how.Transform(o)
			if err != nil {
				t.Fatal(err)
			}
			trimmed[i] = small.(client.Object)
		}
	}
	wantAnswer, wantLimits := answers(full)
	gotAnswer, gotLimits := answers(trimmed)
	if diff := cmp.Diff(wantAnswer, gotAnswer) + cmp.Diff(wantLimits, gotLimits); diff != "" || len(wantAnswer.Terms) == 0 || len(wantLimits) == 0 {
		t.Errorf("the trimmed objects say something else of %v, %v (-full +trimmed):\n%s", wantAnswer, wantLimits, diff)
	}
	for i, o := range trimmed {
		if len(o.GetManagedFields()) > 0 || cmp.Equal(full[i], o) {
			t.Errorf("%T is not trimmed", o)
		}
	}
}
