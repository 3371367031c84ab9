// SPDX-License-Identifier: Apache-2.0

package devices

import (
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/dynamic-resource-allocation/cel"
	"k8s.io/dynamic-resource-allocation/structured"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	v1 "karpenter/api/v1"
	"karpenter/kube/devices"
	"karpenter/kube/selectors"
	"karpenter/model"
	solve "karpenter/solve/devices"
)

var (
	seeds = flag.Int("seeds", 1, "multiply the number of seeds by this")
	first = flag.Uint64("first", rand.Uint64N(1<<40), "the first of the seeds")
	only  = flag.Uint64("seed", 0, "run this seed alone")
)

// features are those of kube-scheduler 1.37 by default.
var features = structured.Features{
	AdminAccess: true, ConsumableCapacity: true, DeviceBindingAndStatus: true, DeviceTaints: true, FractionalCapacityRange: true,
	PartitionableDevices: true, PrioritizedList: true,
}

// TestAllocator: pod after pod, the allocator and we agree on whether the node has
// devices for its claims. What the allocator allocates, the next pod finds taken.
// spec 20/158, 20/161, 45/41, 45/42, 45/43, 45/49, 45/50, 45/52, 45/53, 46/20, 46/22, 46/23, 46/24, 46/25.
// spec 46/26, 46/27, 46/33, 46/34, 46/35, 46/37, 46/41, 46/43, 46/44, 46/45, 46/46, 46/47, 46/56, 46/57.
func TestAllocator(t *testing.T) {
	n := 3000 * *seeds
	from, to := *first, *first+uint64(n)
	if *only != 0 {
		from, to = *only, *only+1
	}
	t.Logf("seeds %d to %d", from, to-1)
	judge, cache := selectors.NewJudge(), cel.NewCache(1000, cel.Features{EnableConsumableCapacity: true})
	count, failures := map[string]int{}, 0
	for seed := from; seed < to; seed++ {
		s := draw(seed)
		if why := disagreement(t, s, judge, cache, count); why != "" {
			small := shrunk(s, func(s *situation) bool { return disagreement(t, s, judge, cache, map[string]int{}) != "" })
			t.Errorf("-seed=%d: %s\n%s", seed, disagreement(t, small, judge, cache, map[string]int{}), text(small))
			if failures++; failures == 5 {
				t.Fatal("enough")
			}
		}
	}
	t.Logf("pods: %v", count)
	if *only == 0 && !t.Failed() && min(count["found"], count["none"], count["error"]) < n/20 {
		t.Error("the draw is too lopsided to show anything")
	}
	if count["long"] > 1+n/1000 {
		t.Errorf("%d of our searches were too long", count["long"])
	}
}

// disagreement carries the situation out and returns the first disagreement.
func disagreement(t *testing.T, s *situation, judge *selectors.Judge, cache *cel.Cache, count map[string]int) string {
	t.Helper()
	store := devices.New(v1.DefaultLabels())
	for _, c := range s.classes {
		store.SetClass(c)
	}
	for _, slice := range s.slices {
		store.SetSlice(slice)
	}
	var taken []*resourcev1.ResourceClaim
	for i, claims := range s.pods {
		results, err := allocate(t, s, node(), taken, claims, cache)
		theirs := "none"
		switch {
		case err != nil && !errors.Is(err, structured.ErrFailedAllocationOnNode):
			theirs = "error"
		case err == nil && results != nil:
			theirs = "found"
		}
		count[theirs]++
		ours, why := verdict(store, judge, i, claims)
		if theirs == "found" && !ours && strings.Contains(why, solve.TooLong) {
			count["long"]++
			return ""
		}
		if (theirs == "found") != ours {
			return fmt.Sprintf("pod %d: the allocator says %s (%v), we say %v (%s)", i, theirs, err, ours, why)
		}
		if theirs != "found" {
			continue
		}
		for j, c := range claims {
			c = c.DeepCopy()
			c.Status.Allocation = &results[j]
			taken = append(taken, c)
			store.SetClaim(c)
		}
	}
	return ""
}

// allocate asks the allocator of Kubernetes, as kube-scheduler does.
func allocate(t *testing.T, s *situation, on *corev1.Node, taken, claims []*resourcev1.ResourceClaim, cache *cel.Cache) ([]resourcev1.AllocationResult, error) {
	t.Helper()
	state := structured.AllocatedState{
		AllocatedDevices: sets.New[structured.DeviceID](), AllocatedSharedDeviceIDs: sets.New[structured.SharedDeviceID](),
		AggregatedCapacity: structured.NewConsumedCapacityCollection(),
	}
	for _, c := range taken {
		for _, r := range c.Status.Allocation.Devices.Results {
			id := structured.MakeDeviceID(r.Driver, r.Pool, r.Device)
			switch {
			case ptr.Deref(r.AdminAccess, false):
			case r.ShareID != nil:
				state.AllocatedSharedDeviceIDs.Insert(structured.MakeSharedDeviceID(id, r.ShareID))
				state.AggregatedCapacity.Insert(structured.NewDeviceConsumedCapacity(id, r.ConsumedCapacity))
			default:
				state.AllocatedDevices.Insert(id)
			}
		}
	}
	allocator, err := structured.NewAllocator(t.Context(), features, state, lister(s.classes), s.slices, cache)
	if err != nil {
		t.Fatal(err)
	}
	return allocator.Allocate(t.Context(), on, claims)
}

type lister []*resourcev1.DeviceClass

func (l lister) List() ([]*resourcev1.DeviceClass, error) { return l, nil }

func (l lister) Get(name string) (*resourcev1.DeviceClass, error) {
	for _, c := range l {
		if c.Name == name {
			return c, nil
		}
	}
	return nil, errors.New("no class " + name)
}

// verdict returns whether we find devices for the claims of a pod, and if not, what we
// refuse.
func verdict(store *devices.Store, judge *selectors.Judge, number int, claims []*resourcev1.ResourceClaim) (bool, string) {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: fmt.Sprint("pod-", number), UID: types.UID(fmt.Sprint(number))}}
	for _, c := range claims {
		store.SetClaim(c)
		pod.Spec.ResourceClaims = append(pod.Spec.ResourceClaims, corev1.PodResourceClaim{Name: c.Name, ResourceClaimName: &c.Name})
	}
	a := store.Of(pod)
	if a.Waits || len(a.Refused) > 0 {
		return false, fmt.Sprint(a.Refused)
	}
	pools := slices.Concat(store.Pools(nodeName), visible(store.Pools("")))
	answered := judge.Fill(&model.Snapshot{
		Pending: []model.Pending{{Shape: &model.Shape{Claims: a.Claims}, Pods: []model.Pod{{Name: "a"}}}}, Nodes: []model.Node{{Name: nodeName, Devices: pools}},
	})
	book := solve.NewBook(answered.Selectors)
	if book.Load(pools).Room(a.Claims, 1) == 1 {
		return true, ""
	}
	return false, book.Why([][]model.DevicePool{pools}, a.Claims)
}

// visible returns the pools of the cluster with the devices that the node can use. A
// pool of which it can use none is not there.
func visible(pools []model.DevicePool) []model.DevicePool {
	here := model.LabelRequirements(node().Labels).And(model.NewRequirement(model.FieldName, model.In, nodeName))
	var out []model.DevicePool
	for _, p := range pools {
		p.Devices = slices.DeleteFunc(slices.Clone(p.Devices), func(d model.Device) bool {
			return d.On != nil && !slices.ContainsFunc(d.On, func(r model.Requirements) bool { _, ok := here.Intersects(r); return ok })
		})
		if len(p.Devices) > 0 {
			out = append(out, p)
		}
	}
	return out
}

// shrunk returns the situation without all that can be left out so that it still fails.
func shrunk(s *situation, fails func(*situation) bool) *situation {
	for again := true; again; {
		again = false
		for _, next := range smaller(s) {
			if fails(next) {
				s, again = next, true
				break
			}
		}
	}
	return s
}

// smaller returns situations with one thing less each.
func smaller(s *situation) []*situation {
	var out []*situation
	with := func(change func(*situation)) {
		next := &situation{classes: s.classes}
		for _, slice := range s.slices {
			next.slices = append(next.slices, slice.DeepCopy())
		}
		for _, claims := range s.pods {
			var copied []*resourcev1.ResourceClaim
			for _, c := range claims {
				copied = append(copied, c.DeepCopy())
			}
			next.pods = append(next.pods, copied)
		}
		change(next)
		out = append(out, next)
	}
	for i := range s.pods {
		with(func(n *situation) { n.pods = slices.Delete(n.pods, i, i+1) })
		for j, c := range s.pods[i] {
			if len(s.pods[i]) > 1 {
				with(func(n *situation) { n.pods[i] = slices.Delete(n.pods[i], j, j+1) })
			}
			for k := range c.Spec.Devices.Requests {
				if len(c.Spec.Devices.Requests) > 1 {
					with(func(n *situation) {
						to := &n.pods[i][j].Spec.Devices
						to.Requests = slices.Delete(to.Requests, k, k+1)
					})
				}
				for w := range c.Spec.Devices.Requests[k].FirstAvailable {
					if len(c.Spec.Devices.Requests[k].FirstAvailable) > 1 {
						with(func(n *situation) {
							to := &n.pods[i][j].Spec.Devices.Requests[k]
							to.FirstAvailable = slices.Delete(to.FirstAvailable, w, w+1)
						})
					}
				}
				if e := c.Spec.Devices.Requests[k].Exactly; e != nil {
					for x := range e.Selectors {
						with(func(n *situation) {
							to := n.pods[i][j].Spec.Devices.Requests[k].Exactly
							to.Selectors = slices.Delete(to.Selectors, x, x+1)
						})
					}
					if e.Capacity != nil {
						with(func(n *situation) { n.pods[i][j].Spec.Devices.Requests[k].Exactly.Capacity = nil })
					}
					if e.Tolerations != nil {
						with(func(n *situation) { n.pods[i][j].Spec.Devices.Requests[k].Exactly.Tolerations = nil })
					}
					if e.Count > 1 {
						with(func(n *situation) { n.pods[i][j].Spec.Devices.Requests[k].Exactly.Count-- })
					}
				}
			}
			for k := range c.Spec.Devices.Constraints {
				with(func(n *situation) {
					to := &n.pods[i][j].Spec.Devices
					to.Constraints = slices.Delete(to.Constraints, k, k+1)
				})
			}
		}
	}
	for i, slice := range s.slices {
		for j := range slice.Spec.Devices {
			with(func(n *situation) { n.slices[i].Spec.Devices = slices.Delete(n.slices[i].Spec.Devices, j, j+1) })
			d := &slice.Spec.Devices[j]
			for _, part := range []struct {
				there bool
				drop  func(*resourcev1.Device)
			}{
				{d.Taints != nil, func(d *resourcev1.Device) { d.Taints = nil }}, {d.ConsumesCounters != nil, func(d *resourcev1.Device) { d.ConsumesCounters = nil }},
				{d.BindingConditions != nil, func(d *resourcev1.Device) { d.BindingConditions, d.BindingFailureConditions = nil, nil }},
				{d.Capacity != nil && d.AllowMultipleAllocations == nil, func(d *resourcev1.Device) { d.Capacity = nil }},
				{d.AllowMultipleAllocations != nil, func(d *resourcev1.Device) { d.AllowMultipleAllocations = nil }},
			} {
				if part.there {
					with(func(n *situation) { part.drop(&n.slices[i].Spec.Devices[j]) })
				}
			}
		}
	}
	return out
}

// text returns the situation as people read it, without the classes.
func text(s *situation) string {
	var out strings.Builder
	show := func(o any) {
		b, err := yaml.Marshal(o)
		if err != nil {
			b = []byte(err.Error())
		}
		out.WriteString("---\n")
		out.Write(b)
	}
	for _, slice := range s.slices {
		if len(slice.Spec.Devices)+len(slice.Spec.SharedCounters) > 0 {
			show(slice)
		}
	}
	for _, claims := range s.pods {
		for _, c := range claims {
			show(c)
		}
	}
	return out.String()
}
