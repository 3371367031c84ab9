// SPDX-License-Identifier: Apache-2.0

package capacitybuffer

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"karpenter/api/autoscaling/v1beta1"
	"karpenter/model"
)

// asking has a buffer, some minutes old, ask for pods of one core.
func asking(replicas int32, minutes int) func(*v1beta1.CapacityBuffer) {
	return func(b *v1beta1.CapacityBuffer) {
		b.Spec.Replicas = ptr.To(replicas)
		b.CreationTimestamp = metav1.NewTime(time.Date(2030, 1, 1, 0, -minutes, 0, 0, time.UTC))
	}
}

// TestNamespaceLimits covers a tenant whose buffers ask for more than the
// limits of a namespace: the oldest come first, and the others say why they have less.
func TestNamespaceLimits(t *testing.T) {
	s := newStage(t)
	s.Limits = corev1.ResourceList{"cpu": resource.MustParse("10"), "memory": resource.MustParse("4Ti")}
	s.template("small")
	s.buffer("old", asking(6, 10))
	s.buffer("young", asking(math32, 5))
	s.buffer("youngest", asking(2, 1))
	for _, name := range []string{"default/youngest", "default/young", "default/old"} {
		s.must(name)
	}
	queue := &queue{}
	s.mu.Lock()
	s.Use(queue)
	s.mu.Unlock()
	for _, name := range []string{"default/young", "default/youngest"} {
		s.must(name)
	}
	s.wantStandIns(10)
	const limited = "LimitedByQuotas"
	s.wants("default/old", ready, "True Resolved: keeping capacity for 6 pods")
	s.wants("default/old", limited, "none")
	s.wants("default/young", limited, "True NamespaceLimit: capacity is kept for 4 of 10000 pods: the buffers of a namespace may request cpu=10,memory=4Ti together")
	s.wants("default/youngest", provisioning, "False BufferEmpty: capacity is kept for 0 of 2 pods")
	if n := s.get("default/young").Status.Replicas; n == nil || *n != 4 {
		t.Errorf("young keeps capacity for %v pods", n)
	}

	if err := s.Client.Delete(t.Context(), s.get("default/old")); err != nil {
		t.Fatal(err)
	}
	if _, err := s.reconcile("default/old"); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(queue.asked, []string{"default/young"}) {
		t.Errorf("%v are looked at again", queue.asked)
	}
	s.must("default/young")
	s.wantStandIns(10)

	s.Limits = nil
	s.must("default/youngest")
	s.wants("default/youngest", limited, "none")
}

// A restart gives every buffer its share at once.
func TestNamespaceLimitsHydrated(t *testing.T) {
	s := newStage(t)
	s.Limits = corev1.ResourceList{"pods": resource.MustParse("5")}
	s.template("small")
	s.buffer("a-young", asking(5, 1))
	s.buffer("b-old", asking(3, 2))
	if err := s.HydrateOnce(t.Context(), s.hydrate); err != nil {
		t.Fatal(err)
	}
	got := strings.Join(s.standIns(), " ")
	if strings.Count(got, "b-old") != 3 || strings.Count(got, "a-young") != 2 {
		t.Errorf("capacity is kept for %s", got)
	}
}

// TestSharesStayWithinLimits draws buffers that come, change and go: what is
// granted never exceeds a limit, is what granting all of them again gives, and
// every buffer that is granted something else is named.
func TestSharesStayWithinLimits(t *testing.T) {
	draw := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		limits := []model.Limit{{Resource: model.CPU, Max: draw.Int64N(50)}, {Resource: model.Memory, Max: draw.Int64N(50)}}
		s, known := shares{}, map[string]int{}
		for range 30 {
			name := fmt.Sprint(draw.IntN(6))
			var a *ask
			if draw.IntN(4) > 0 {
				each := model.Resources{}.With(model.CPU, draw.Int64N(5)).With(model.Memory, draw.Int64N(5))
				a = &ask{created: time.Unix(draw.Int64N(3), 0), each: each, wanted: draw.IntN(20)}
			}
			granted, changed := s.set("n", name, a, limits)
			known[name] = granted
			for _, other := range changed {
				known[other] = s["n"][other].granted
			}
			used := model.Resources{}
			for other, o := range s["n"] {
				if o.granted != known[other] || o.granted > o.wanted || o.granted < 0 {
					t.Fatalf("buffer %s is granted %d of %d, and was told %d", other, o.granted, o.wanted, known[other])
				}
				for range o.granted {
					used = used.Plus(o.each)
				}
			}
			for _, l := range limits {
				if used.At(l.Resource) > l.Max {
					t.Fatalf("%d of resource %d are granted, more than %d", used.At(l.Resource), l.Resource, l.Max)
				}
			}
		}
	}
}

const math32 = 1<<31 - 1
