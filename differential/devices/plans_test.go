// SPDX-License-Identifier: Apache-2.0

package devices

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/dynamic-resource-allocation/cel"

	v1 "karpenter/api/v1"
	"karpenter/kube/devices"
	"karpenter/kube/selectors"
	"karpenter/model"
	"karpenter/scenario"
	"karpenter/solve"
)

// TestPlans: pods on two nodes, with devices of either and devices that are of no single
// node. Where we plan a pod, the allocator finds devices for it, when all pods come in
// their order. Of the pods that we leave, few could have some: most requests that are drawn
// can be met in both ways, of which the planner chooses one before it knows the nodes.
// spec 45/46, 45/50, 46/14, 46/15, 46/16, 46/36, 46/42.
func TestPlans(t *testing.T) {
	n := 1500 * *seeds
	from, to := *first, *first+uint64(n)
	if *only != 0 {
		from, to = *only, *only+1
	}
	t.Logf("seeds %d to %d", from, to-1)
	judge, cache := selectors.NewJudge(), cel.NewCache(1000, cel.Features{EnableConsumableCapacity: true})
	count, failures := map[string]int{}, 0
	for seed := from; seed < to; seed++ {
		s := drawApart(seed)
		if why := unplanned(t, s, judge, cache, count); why != "" {
			small := shrunk(s, func(s *situation) bool { return unplanned(t, s, judge, cache, map[string]int{}) != "" })
			t.Errorf("-seed=%d: %s\n%s", seed, unplanned(t, small, judge, cache, map[string]int{}), text(small))
			if failures++; failures == 5 {
				t.Fatal("enough")
			}
		}
	}
	t.Logf("pods: %v", count)
	if *only == 0 && !t.Failed() && (min(count["planned"], count["left"], count["common"]) < n/20 || count["missed"] > count["planned"]/8) {
		t.Error("the draw is too lopsided to show anything, or too many pods are left that could have devices")
	}
}

// unplanned carries the plan out and returns the first pod that does not find its devices.
func unplanned(t *testing.T, s *situation, judge *selectors.Judge, cache *cel.Cache, count map[string]int) string {
	t.Helper()
	of := snapshotOf(s, judge)
	plan := solve.Decide(of, model.DefaultPolicy())
	on, why := map[string]string{}, map[string]string{}
	for _, p := range plan.Placements {
		on[p.Pod.Name] = p.Node
	}
	for i := range plan.Verdicts {
		for _, p := range plan.Verdicts[i].Pods {
			why[p.Name] = plan.Verdicts[i].String()
		}
	}
	var taken []*resourcev1.ResourceClaim
	for i, claims := range s.pods {
		at := slices.IndexFunc(nodes(), func(n *corev1.Node) bool { return n.Name == on[podName(i)] })
		if at < 0 {
			continue
		}
		results, err := allocate(t, s, nodes()[at], taken, claims, cache)
		if err != nil || results == nil {
			return fmt.Sprintf("pod %d is planned on %s, where the allocator finds nothing (%v)", i, nodes()[at].Name, err)
		}
		count["planned"]++
		for j, c := range claims {
			c = c.DeepCopy()
			c.Status.Allocation = &results[j]
			taken = append(taken, c)
			if slices.ContainsFunc(results[j].Devices.Results, func(r resourcev1.DeviceRequestAllocationResult) bool {
				return slices.ContainsFunc(of.Devices, func(p model.DevicePool) bool { return p.Driver == r.Driver && p.Name == r.Pool })
			}) {
				count["common"]++
			}
		}
	}
	for i, claims := range s.pods {
		if on[podName(i)] != "" {
			continue
		}
		count["left"]++
		for _, n := range nodes() {
			if results, err := allocate(t, s, n, taken, claims, cache); err == nil && results != nil {
				switch reason := why[podName(i)]; {
				case strings.Contains(reason, "not planned"), strings.Contains(reason, "fails on device"):
					count["refused"]++
				default:
					count["missed"]++
					if *only != 0 {
						t.Logf("pod %d could have devices of %s: %s\n%s\n%s", i, n.Name, reason, scenario.Text(of, plan), text(s))
					}
				}
				break
			}
		}
	}
	return ""
}

func podName(i int) string { return fmt.Sprint("pod-", i) }

// snapshotOf returns what the planner sees of the situation.
func snapshotOf(s *situation, judge *selectors.Judge) *model.Snapshot {
	store := devices.New(v1.DefaultLabels())
	for _, c := range s.classes {
		store.SetClass(c)
	}
	for _, slice := range s.slices {
		store.SetSlice(slice)
	}
	out := &model.Snapshot{Now: time.Unix(0, 0), Resources: model.NewAxis().Names()}
	room := model.Resources{}.With(model.Pods, 100)
	for i, claims := range s.pods {
		created := time.Unix(int64(i), 0)
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: podName(i), UID: types.UID(fmt.Sprint(i))}}
		for _, c := range claims {
			store.SetClaim(c)
			pod.Spec.ResourceClaims = append(pod.Spec.ResourceClaims, corev1.PodResourceClaim{Name: c.Name, ResourceClaimName: &c.Name})
		}
		a := store.Of(pod)
		shape := &model.Shape{Key: podName(i), Requests: model.Resources{}.With(model.Pods, 1), Claims: a.Claims, DeviceTerms: a.Terms, Refused: a.Refused}
		out.Pending = append(out.Pending, model.Pending{Shape: shape, Pods: []model.Pod{{Namespace: "default", Name: podName(i), UID: fmt.Sprint(i), Created: created}}})
	}
	for _, n := range nodes() {
		out.Nodes = append(out.Nodes, model.Node{
			Name: n.Name, Registered: true, Initialized: true, Capacity: room, Allocatable: room, Devices: store.Pools(n.Name),
			Labels: model.LabelRequirements(n.Labels).And(model.NewRequirement(model.FieldName, model.In, n.Name)),
		})
	}
	out.Devices = store.Pools("")
	return judge.Fill(out)
}
