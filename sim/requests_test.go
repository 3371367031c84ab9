// SPDX-License-Identifier: Apache-2.0

package sim_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	autoscalingv1 "karpenter/api/autoscaling/v1"
	v1 "karpenter/api/v1"
	"karpenter/model"
	"karpenter/sim"
	"karpenter/sim/script"
	"karpenter/sim/store"
	"karpenter/sim/trial"
)

// booked is the law that capacity of a request is there as long as it is booked, and gone
// in the end.
type booked struct {
	provisioned bool
	most        int // nodes at once
}

func (*booked) Name() string { return "booked" }

func (b *booked) Check(s *sim.Seen) error {
	nodes := 0
	for n := range store.All[*corev1.Node](s.API) {
		if n.Labels[model.LabelInitialized] == "true" && n.DeletionTimestamp == nil {
			nodes++
		}
	}
	b.most = max(b.most, nodes)
	q := store.Find[*autoscalingv1.ProvisioningRequest](s.API, "default", "train")
	is := func(c string) bool { return meta.IsStatusConditionTrue(q.Status.Conditions, c) }
	b.provisioned = b.provisioned || is(autoscalingv1.Provisioned)
	if is(autoscalingv1.Provisioned) && !is(autoscalingv1.BookingExpired) && nodes < 3 {
		return fmt.Errorf("%d nodes while capacity for 3 is booked", nodes)
	}
	return nil
}

func (b *booked) End(s *sim.Seen) error {
	left := 0
	for range store.All[*v1.NodeClaim](s.API) {
		left++
	}
	q := store.Find[*autoscalingv1.ProvisioningRequest](s.API, "default", "train")
	if !b.provisioned || b.most != 3 || left != 0 || !meta.IsStatusConditionTrue(q.Status.Conditions, autoscalingv1.BookingExpired) {
		return fmt.Errorf("provisioned %t, %d nodes at most, %d claims in the end, %v", b.provisioned, b.most, left, q.Status.Conditions)
	}
	return nil
}

// TestProvisioningRequest has Kueue ask for three nodes (spec 46/123, 125), with crashes in
// half of the runs: all come, stay for ten minutes, and go.
func TestProvisioningRequest(t *testing.T) {
	server, err := trial.NewServer()
	if err != nil {
		t.Fatal(err)
	}
	from := rand.Uint64N(1 << 40)
	for seed := from; seed < from+6; seed++ {
		t.Run(fmt.Sprintf("seed-%d", seed), func(t *testing.T) {
			text := fmt.Sprintf("seed %d\nrun 5m rest 25m\ntype m2 cpu=2 mem=8Gi price=0.10 zones=a\npool general budgets=100%%\n", seed)
			if seed%2 == 0 {
				text += "fault crash-after call=Create every=2 times=2\nfault crash call=patch every=5 times=2\n"
			}
			s, err := script.Parse(text)
			if err != nil {
				t.Fatal(err)
			}
			meta := metav1.ObjectMeta{Namespace: "default", Name: "train"}
			template := &corev1.PodTemplate{ObjectMeta: meta}
			template.Template.Spec.Containers = []corev1.Container{{Name: "main", Image: "pause", Resources: corev1.ResourceRequirements{
				Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1500m")},
			}}}
			q := &autoscalingv1.ProvisioningRequest{ObjectMeta: meta}
			q.Spec.ProvisioningClassName = autoscalingv1.BestEffortAtomicScaleUp
			q.Spec.PodSets = []autoscalingv1.PodSet{{PodTemplateRef: autoscalingv1.Reference{Name: "train"}, Count: 3}}
			v := (trial.Trial{
				Server: server, Script: s, Witness: &booked{}, Lawless: true, Objects: []client.Object{template, q}, Args: []string{"--provisioning-requests=true"},
			}).Hold(t)
			if v.Err != nil {
				t.Error(v.Err)
			}
		})
	}
}

// unnominated is the law that no one but the scheduler writes nominations.
type unnominated struct{ pods int }

func (*unnominated) Name() string { return "unnominated" }

func (u *unnominated) Check(s *sim.Seen) error {
	for _, c := range s.Changes {
		p, ok := c.New.(*corev1.Pod)
		old, _ := c.Old.(*corev1.Pod)
		if !ok || old == nil {
			continue
		}
		if p.Spec.NodeName != "" && old.Spec.NodeName == "" {
			u.pods++
		}
		if p.Status.NominatedNodeName != "" && p.Status.NominatedNodeName != old.Status.NominatedNodeName {
			return fmt.Errorf("%s nominates pod %s to node %s", c.By, p.Name, p.Status.NominatedNodeName)
		}
	}
	return nil
}

func (u *unnominated) End(*sim.Seen) error {
	if u.pods == 0 {
		return fmt.Errorf("no pod was scheduled")
	}
	return nil
}

// spec 46/127: with default settings, we write no nomination.
func TestNoNominations(t *testing.T) {
	server, err := trial.NewServer()
	if err != nil {
		t.Fatal(err)
	}
	const odd = 2*17 + 1 // even seeds have nominations on
	s, err := script.Parse(fmt.Sprintf("seed %d\nrun 10m rest 10m\ntype m2 cpu=2 mem=8Gi price=0.10 zones=a\npool general budgets=100%%\npods web count=6 cpu=500m mem=1Gi\nat 3m scale web 12\n", odd))
	if err != nil {
		t.Fatal(err)
	}
	if v := (trial.Trial{Server: server, Script: s, Witness: &unnominated{}}).Hold(t); v.Err != nil {
		t.Error(v.Err)
	}
}
