// SPDX-License-Identifier: Apache-2.0

package provisioning

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	coschedulingv1alpha1 "karpenter/api/coscheduling/v1alpha1"
)

// TestGroups takes PodGroups and their pods from the informers to NodeClaims and
// events. Every pod takes a port of its host.
func TestGroups(t *testing.T) {
	const incomplete = "PodGroup default/train is incomplete: 2 of the 3 pods that must start together exist"
	for _, c := range []struct {
		name string
		do   func(*storage)
		want int    // NodeClaims
		says string // about a pod
	}{
		{"spec 46/89: a pod is missing", func(x *storage) {
			x.tell(gang("train", 3))
			x.train(2, scheduled)
		}, 0, incomplete},
		{"spec 46/89: all pods exist", func(x *storage) {
			x.tell(gang("train", 3))
			x.train(3, scheduled)
		}, 3, ""},
		{"spec 46/88: the limit is too low for all of them", func(x *storage) {
			x.tell(gang("train", 4))
			x.train(4, scheduled)
		}, 0, "PodGroup default/train: 3 of the 4 pods that must start together find a place, and train-4 does not: nodepool p: "},
		{"spec 46/90: the PodGroup does not exist", func(x *storage) {
			x.train(3, scheduled)
		}, 0, "PodGroup default/train: it does not exist"},
		{"spec 46/93: minCount becomes lower", func(x *storage) {
			x.tell(gang("train", 3))
			x.train(2, scheduled)
			x.mustPass()
			x.wantClaims(0)
			x.tell(gang("train", 2))
		}, 2, ""},
		{"spec 46/97: a basic group", func(x *storage) {
			g := gang("train", 3)
			g.Spec.SchedulingPolicy = schedulingv1beta1.PodGroupSchedulingPolicy{Basic: &schedulingv1beta1.BasicSchedulingPolicy{}}
			x.tell(g)
			x.train(2, scheduled)
		}, 2, ""},
		{"spec 46/97: a policy that is not known", func(x *storage) {
			g := gang("train", 3)
			g.Spec.SchedulingPolicy = schedulingv1beta1.PodGroupSchedulingPolicy{}
			x.tell(g)
			x.train(3, scheduled)
		}, 0, "PodGroup default/train: its schedulingPolicy is neither basic nor gang"},
		{"a topology constraint", func(x *storage) {
			g := gang("train", 3)
			g.Spec.SchedulingConstraints = &schedulingv1beta1.PodGroupSchedulingConstraints{Topology: []schedulingv1beta1.TopologyConstraint{{Key: "rack"}}}
			x.tell(g)
			x.train(3, scheduled)
		}, 0, "PodGroup default/train: no node has the label rack, and no NodePool tells its value before a node is launched"},
		{"spec 46/112: one zone for all", func(x *storage) {
			g := gang("train", 3)
			g.Spec.SchedulingConstraints = &schedulingv1beta1.PodGroupSchedulingConstraints{Topology: []schedulingv1beta1.TopologyConstraint{{Key: corev1.LabelTopologyZone}}}
			x.tell(g)
			x.train(3, scheduled)
		}, 3, ""},
		{"part of a CompositePodGroup", func(x *storage) {
			g := gang("train", 3)
			g.Spec.ParentCompositePodGroupName = ptr.To("all")
			x.tell(g)
			x.train(3, scheduled)
		}, 0, "PodGroup default/train: it is part of a CompositePodGroup (not supported yet)"},
		{"spec 46/121: too few pods of the coscheduling plugin", func(x *storage) {
			x.tell(plugged("train", 3))
			x.train(2, labelled)
		}, 0, strings.Replace(incomplete, "/train", "/podgroups.scheduling.x-k8s.io/train", 1)},
		{"spec 46/121: enough pods of the coscheduling plugin", func(x *storage) {
			x.tell(plugged("train", 3))
			x.train(2, labelled)
			x.mustPass()
			x.wantClaims(0)
			x.train(3, labelled)
		}, 3, ""},
		{"groups of both APIs with one name", func(x *storage) {
			x.tell(plugged("train", 2))
			x.tell(gang("train", 3))
			x.train(2, labelled)
		}, 2, ""},
		{"spec 46/99: pods that the scheduler cannot try", func(x *storage) {
			x.tell(gang("train", 3))
			x.train(3, func(p *corev1.Pod) {
				scheduled(p)
				p.Status.Conditions[0].Reason = corev1.PodReasonSchedulerError
			})
		}, 0, ""},
		{"spec 46/100: the group has started before, and all its pods were evicted", func(x *storage) {
			g := gang("train", 4) // the limit is three
			g.Status.Conditions = []metav1.Condition{{Type: schedulingv1beta1.PodGroupInitiallyScheduled, Status: metav1.ConditionTrue, Reason: "Scheduled"}}
			x.tell(g)
			x.train(4, scheduled)
		}, 0, "PodGroup default/train: 3 of the 4 pods that must start together find a place"},
		{"spec 46/122: pods that Kueue holds back are no demand", func(x *storage) {
			x.tell(gang("train", 3))
			x.train(3, func(p *corev1.Pod) {
				scheduled(p)
				p.Status.Conditions[0].Reason = corev1.PodReasonSchedulingGated
			})
		}, 0, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			x := newStorage(t)
			x.pool("p", limited("nodes", "3"))
			c.do(x)
			x.events.Reset()
			x.mustPass()
			x.wantClaims(c.want)
			told := strings.Join(slices.DeleteFunc(x.said(), func(text string) bool { return !strings.HasPrefix(text, "FailedScheduling pod/train-") }), "\n")
			if c.says == "" && told != "" || !strings.Contains(told, "Failed to schedule pod, "+c.says) && c.says != "" {
				t.Errorf("said %q, want %q", told, c.says)
			}
		})
	}
}

// TestGroupLosesANode has a node with two of four pods of a PodGroup go away (spec 46/119): the
// others stay, a place is planned for the two, and the group gets one event for the node.
func TestGroupLosesANode(t *testing.T) {
	x := newStorage(t)
	x.pool("default", nil)
	x.stage.node("n1", "default", nil)
	x.stage.node("n2", "default", nil)
	g := gang("train", 4)
	g.UID = "uid-group"
	x.tell(g)
	bound := 0
	x.train(4, func(p *corev1.Pod) {
		scheduled(p)
		bound++
		p.Spec.NodeName = fmt.Sprint("n", (bound+1)/2)
		p.Spec.Containers[0].Ports = nil
		p.Spec.Containers[0].Resources.Requests = corev1.ResourceList{"cpu": resource.MustParse("1900m")}
		p.Status.Conditions = nil
		p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "batch/v1", Kind: "Job", Name: "train", Controller: ptr.To(true)}}
	})
	x.mustPass()
	x.wantClaims(0)
	x.events.Reset()
	x.world.MarkForDeletion("n1-claim")
	x.mustPass()
	x.wantClaims(2)
	const want = "Disrupted *v1beta1.podgroup/train: Node n1 is being removed with 2 pods of the group; 2 pods of the group run on other nodes"
	if got := x.saidOfGroup(); len(got) != 2 || got[1] != want && got[0] != want {
		t.Errorf("said %q, want %s", got, want)
	}
}

// train has the pods train-1 and so on, each of which needs a node of its own.
func (x *storage) train(n int, join func(*corev1.Pod)) {
	for i := range n {
		p := pod(fmt.Sprint("train-", i+1), nil)
		p.Spec.Containers[0].Ports = []corev1.ContainerPort{{ContainerPort: 80, HostPort: 80}}
		p.CreationTimestamp = metav1.NewTime(x.clock.Now().Add(time.Duration(i) * time.Second))
		join(p)
		x.tell(p)
	}
}

// scheduled makes the pod a member of the PodGroup of Kubernetes, labeled of that of
// the coscheduling plugin.
func scheduled(p *corev1.Pod) {
	p.Spec.SchedulingGroup = &corev1.PodSchedulingGroup{PodGroupName: ptr.To("train")}
}

func labelled(p *corev1.Pod) { p.Labels[coschedulingv1alpha1.PodGroupLabel] = "train" }

func gang(name string, minCount int32) *schedulingv1beta1.PodGroup {
	return &schedulingv1beta1.PodGroup{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name},
		Spec: schedulingv1beta1.PodGroupSpec{SchedulingPolicy: schedulingv1beta1.PodGroupSchedulingPolicy{
			Gang: &schedulingv1beta1.GangSchedulingPolicy{MinCount: minCount},
		}},
	}
}

func plugged(name string, minMember int32) *coschedulingv1alpha1.CoschedulingPodGroup {
	return &coschedulingv1alpha1.CoschedulingPodGroup{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name},
		Spec:       coschedulingv1alpha1.CoschedulingPodGroupSpec{MinMember: minMember},
	}
}
