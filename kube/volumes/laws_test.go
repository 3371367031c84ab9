// SPDX-License-Identifier: Apache-2.0

package volumes_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	v1 "karpenter/api/v1"
	"karpenter/kube/volumes"
)

// facts is a small cluster that keeps changing, and a Store that gets all
// changes.
type facts struct {
	*rand.Rand
	store   *volumes.Store
	pods    map[string]*corev1.Pod
	claims  map[string]*corev1.PersistentVolumeClaim
	volumes map[string]*corev1.PersistentVolume
	classes map[string]*storagev1.StorageClass
}

func (f *facts) name(kind string, of int) string { return fmt.Sprint(kind, f.IntN(of)) }

// step changes something and returns the pod that was changed, if any, and the
// pods the Store names.
func (f *facts) step() (pod string, told []*corev1.Pod) {
	gone := f.IntN(4) == 0
	switch f.IntN(5) {
	case 0, 1:
		p := f.pod()
		if gone {
			delete(f.pods, p.Name)
			return p.Name, f.store.DeletePod(p)
		}
		f.pods[p.Name] = p
		return p.Name, f.store.SetPod(p)
	case 2:
		c := f.claim()
		if gone {
			delete(f.claims, c.Name)
			return "", f.store.DeleteClaim(c)
		}
		f.claims[c.Name] = c
		return "", f.store.SetClaim(c)
	case 3:
		v := f.volume()
		if gone {
			delete(f.volumes, v.Name)
			return "", f.store.DeleteVolume(v)
		}
		f.volumes[v.Name] = v
		return "", f.store.SetVolume(v)
	default:
		c := f.class()
		if gone {
			delete(f.classes, c.Name)
			return "", f.store.DeleteClass(c)
		}
		f.classes[c.Name] = c
		return "", f.store.SetClass(c)
	}
}

func (f *facts) pod() *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: f.name("p", 4), UID: types.UID(f.name("u", 2))}}
	for i := range f.IntN(3) {
		v := corev1.Volume{Name: fmt.Sprint("v", i)}
		if f.IntN(5) == 0 {
			v.Ephemeral = &corev1.EphemeralVolumeSource{VolumeClaimTemplate: &corev1.PersistentVolumeClaimTemplate{}}
		} else {
			v.PersistentVolumeClaim = &corev1.PersistentVolumeClaimVolumeSource{ClaimName: f.name("c", 4)}
		}
		p.Spec.Volumes = append(p.Spec.Volumes, v)
	}
	if f.IntN(3) == 0 {
		p.Spec.NodeName = "node"
	}
	if f.IntN(6) == 0 {
		p.Status.Phase = corev1.PodSucceeded
	}
	return p
}

func (f *facts) claim() *corev1.PersistentVolumeClaim {
	c := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: f.name("c", 4)}}
	if f.IntN(5) == 0 { // that of an ephemeral volume
		c.Name = f.name("p", 4) + "-v0"
		c.OwnerReferences = []metav1.OwnerReference{{UID: types.UID(f.name("u", 2)), Controller: ptr.To(true)}}
	}
	switch f.IntN(4) {
	case 0:
		c.Spec.StorageClassName = ptr.To(f.name("s", 3))
	case 1, 2:
		c.Spec.VolumeName = f.name("v", 3)
		c.Annotations = map[string]string{"pv.kubernetes.io/bind-completed": "yes"}
	}
	if f.IntN(3) == 0 {
		c.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOncePod}
	}
	return c
}

func (f *facts) volume() *corev1.PersistentVolume {
	v := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: f.name("v", 3), Labels: map[string]string{corev1.LabelTopologyZone: f.name("z", 3)}}}
	v.Spec.CSI = &corev1.CSIPersistentVolumeSource{Driver: f.name("d", 2)}
	return v
}

func (f *facts) class() *storagev1.StorageClass {
	c := &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: f.name("s", 3)}, Provisioner: f.name("d", 2)}
	if f.IntN(4) > 0 {
		c.VolumeBindingMode = ptr.To(storagev1.VolumeBindingWaitForFirstConsumer)
	}
	if f.IntN(2) == 0 {
		c.Annotations = map[string]string{"storageclass.kubernetes.io/is-default-class": "true"}
	}
	return c
}

func (f *facts) answers(s *volumes.Store) map[string]volumes.Answer {
	out := map[string]volumes.Answer{}
	for name, p := range f.pods {
		if p.Status.Phase == "" {
			out[name] = s.Of(p)
		}
	}
	return out
}

// fresh returns a new Store with the present objects.
func (f *facts) fresh() *volumes.Store {
	s := volumes.New(v1.DefaultLabels(), volumes.Rules{})
	for _, p := range f.pods {
		s.SetPod(p)
	}
	for _, c := range f.classes {
		s.SetClass(c)
	}
	for _, c := range f.claims {
		s.SetClaim(c)
	}
	for _, v := range f.volumes {
		s.SetVolume(v)
	}
	return s
}

// Every pod whose answer changes is returned, and the answers are those of a
// Store that knows nothing of the past.
func TestVolumeAnswersDoNotDependOnHistory(t *testing.T) {
	changed := 0
	for seed := range uint64(300) {
		f := &facts{
			Rand: rand.New(rand.NewPCG(seed, 0)), store: volumes.New(v1.DefaultLabels(), volumes.Rules{}),
			pods: map[string]*corev1.Pod{}, claims: map[string]*corev1.PersistentVolumeClaim{},
			volumes: map[string]*corev1.PersistentVolume{}, classes: map[string]*storagev1.StorageClass{},
		}
		for n := range 60 {
			before := f.answers(f.store)
			pod, told := f.step()
			after := f.answers(f.store)
			for name, a := range after {
				was, known := before[name]
				if name == pod || !known || cmp.Equal(was, a) {
					continue
				}
				changed++
				if !slices.Contains(told, f.pods[name]) {
					t.Fatalf("seed %d step %d: nobody is told that %s has changed:\n%s", seed, n, name, cmp.Diff(was, a))
				}
			}
			if diff := cmp.Diff(f.answers(f.fresh()), after); diff != "" {
				t.Fatalf("seed %d step %d: the Store remembers (-fresh +store):\n%s", seed, n, diff)
			}
		}
	}
	if changed < 1000 {
		t.Errorf("only %d answers of other pods changed", changed)
	}
}
