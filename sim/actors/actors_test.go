// SPDX-License-Identifier: Apache-2.0

package actors_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	kubescheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"karpenter/api/scheme"
	v1 "karpenter/api/v1"
	"karpenter/sim/actors"
	"karpenter/sim/script"
	"karpenter/sim/simcloud"
	"karpenter/sim/store"
)

// stage is a cluster with its actors, and a test in Karpenter's place.
type stage struct {
	*testing.T
	store  *store.Store
	cloud  *simcloud.Cloud
	client client.Client
	actors []*actors.Actor
	steps  int
}

func newStage(t *testing.T, text string, change ...func(*actors.Config)) *stage {
	t.Helper()
	s, err := script.Parse("run 1h rest 1h\ntype m2 cpu=2 mem=8Gi price=0.1 spot=0.03 zones=a,b\npool general\n" + text)
	if err != nil {
		t.Fatal(err)
	}
	sch := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{kubescheme.AddToScheme, scheme.AddToScheme} {
		if err := add(sch); err != nil {
			t.Fatal(err)
		}
	}
	server, err := store.NewServer(sch)
	if err != nil {
		t.Fatal(err)
	}
	st := &stage{T: t, store: store.New(server, rand.New(rand.NewPCG(1, 1))), cloud: simcloud.New(actors.Types(s))}
	st.client = st.store.Client("test")
	for _, o := range actors.Objects(s) {
		st.must(st.client.Create(t.Context(), o))
	}
	source := rand.New(rand.NewPCG(2, 2))
	c := actors.Config{
		Store: st.store, Cloud: st.cloud, Rand: source, Script: s, Faults: script.NewFaults(s, source),
		Started: time.Now(), Steps: func() int { return st.steps },
	}
	for _, f := range change {
		f(&c)
	}
	st.actors = actors.New(c)
	return st
}

func (s *stage) must(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

// settle lets the actors work until no one has anything to do before then.
func (s *stage) settle(d time.Duration) {
	s.Helper()
	for end := time.Now().Add(d); ; {
		progress, wake := false, end
		for _, a := range s.actors {
			did, err := a.Step(context.Background())
			if err != nil {
				s.Fatalf("%s: %v", a.Name(), err)
			}
			s.steps++
			progress = progress || did
			if w := a.Wake(); !did && !w.IsZero() && w.Before(wake) {
				wake = w
			}
		}
		if s.steps > 100_000 {
			s.Fatal("the actors do not come to rest")
		}
		switch {
		case progress:
		case !time.Now().Before(end):
			return
		default:
			time.Sleep(time.Until(wake))
		}
	}
}

// launch starts an instance as Karpenter would.
func (s *stage) launch(name string) {
	s.Helper()
	claim := &v1.NodeClaim{}
	claim.Name, claim.UID, claim.Labels = name, types.UID(name), map[string]string{v1.NodePoolLabelKey: "general"}
	_, err := s.cloud.Create(s.Context(), claim)
	s.must(err)
}

// register lets pods on all Nodes, as Karpenter would.
func (s *stage) register() {
	for n := range store.All[*corev1.Node](s.store) {
		fresh := n.DeepCopy()
		fresh.Spec.Taints = slices.DeleteFunc(fresh.Spec.Taints, func(t corev1.Taint) bool { return t.Key == v1.UnregisteredTaintKey })
		fresh.Labels[v1.NodePoolLabelKey] = "general"
		s.must(s.client.Update(s.Context(), fresh))
	}
}

// count says how many pods of the workload wait, run, and run per node.
func (s *stage) count(app string) string {
	waiting, running, nodes := 0, 0, map[string]int{}
	for p := range store.All[*corev1.Pod](s.store) {
		switch {
		case p.Labels["app"] != app:
		case p.Spec.NodeName == "":
			waiting++
		case p.Status.Phase == corev1.PodRunning:
			running++
			nodes[p.Spec.NodeName]++
		}
	}
	return fmt.Sprintf("%d wait, %d run on %d nodes", waiting, running, len(nodes))
}

func (s *stage) want(what, got, want string) {
	s.Helper()
	if got != want {
		s.Fatalf("%s: got %q, want %q", what, got, want)
	}
}

func TestPodsGetNodesAndLoseThem(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t, "pods web count=4 cpu=500m apart=node\npods agent daemon=true cpu=100m\nat 30m scale web 1\n")
		s.settle(time.Minute)
		s.want("without nodes", s.count("web"), "4 wait, 0 run on 0 nodes")
		for p := range store.All[*corev1.Pod](s.store) {
			if len(p.Status.Conditions) != 1 || p.Status.Conditions[0].Reason != corev1.PodReasonUnschedulable {
				t.Errorf("pod %s is not called unschedulable: %v", p.Name, p.Status.Conditions)
			}
		}
		for i := range 3 {
			s.launch(fmt.Sprint("c", i))
		}
		s.settle(2 * time.Minute)
		s.want("nodes that are not registered", s.count("web"), "4 wait, 0 run on 0 nodes")
		s.register()
		s.settle(time.Minute)
		s.want("three nodes, never two on one", s.count("web"), "1 wait, 3 run on 3 nodes")
		s.want("daemons", s.count("agent"), "0 wait, 3 run on 3 nodes")
		s.cloud.Lose(s.cloud.Machines()[0].ProviderID)
		s.settle(30 * time.Second)
		s.want("at once", s.count("web"), "1 wait, 3 run on 3 nodes")
		s.settle(10 * time.Minute)
		unready := 0
		for n := range store.All[*corev1.Node](s.store) {
			if n.Status.Conditions[0].Status == corev1.ConditionUnknown && len(n.Spec.Taints) == 2 {
				unready++
				s.must(s.client.Delete(t.Context(), n.DeepCopy()))
			}
		}
		if unready != 1 {
			t.Errorf("%d nodes are unreachable, want 1", unready)
		}
		s.settle(time.Minute)
		s.want("its pod is made again", s.count("web"), "2 wait, 2 run on 2 nodes")
		s.want("its daemon is gone with it", s.count("agent"), "0 wait, 2 run on 2 nodes")
		s.settle(20 * time.Minute)
		s.want("scaled down", s.count("web"), "0 wait, 1 run on 1 nodes")
	})
}

// TestStrays has the scheduler say which pods it has put on the fuller of two
// nodes: none, when it goes by how empty they are.
func TestStrays(t *testing.T) {
	strayed := map[bool]int{}
	for seed := range uint64(16) {
		calm := seed%2 == 0
		synctest.Test(t, func(t *testing.T) {
			strays := map[types.UID]bool{}
			s := newStage(t, "pods web count=7 cpu=250m\n", func(c *actors.Config) {
				c.Rand, c.Calm, c.Strays = rand.New(rand.NewPCG(seed, 0)), calm, strays
			})
			s.launch("c1")
			s.launch("c2")
			s.settle(2 * time.Minute)
			s.store.Changes()
			s.register()
			s.settle(time.Minute)
			s.want("all", s.count("web"), "0 wait, 7 run on 2 nodes")
			on, bound := map[string]int{}, 0
			for _, c := range s.store.Changes() {
				p, ok := c.New.(*corev1.Pod)
				if !ok || c.Verb != "bind" {
					continue
				}
				if fuller := 2*on[p.Spec.NodeName] > bound; fuller != strays[p.UID] {
					t.Errorf("seed %d: %d of %d pods were on the node of pod %s; it is called a stray: %t", seed, on[p.Spec.NodeName], bound, p.Name, strays[p.UID])
				}
				on[p.Spec.NodeName]++
				bound++
			}
			strayed[calm] += len(strays)
		})
	}
	if strayed[true] > 0 || strayed[false] == 0 {
		t.Errorf("%d strays of a scheduler that goes by how empty nodes are, %d of others", strayed[true], strayed[false])
	}
}

func TestBudgetsFollowPods(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t, "pods web count=3 cpu=100m pdb=1\n")
		allowed := func() string {
			b := store.Find[*policyv1.PodDisruptionBudget](s.store, "default", "web")
			return fmt.Sprintf("%d of %d healthy, %d may go", b.Status.CurrentHealthy, b.Status.ExpectedPods, b.Status.DisruptionsAllowed)
		}
		s.settle(time.Minute)
		s.want("nothing runs", allowed(), "0 of 3 healthy, 0 may go")
		s.launch("c")
		s.settle(2 * time.Minute)
		s.register()
		s.settle(time.Minute)
		s.want("all run", allowed(), "3 of 3 healthy, 1 may go")
		evicted := 0
		for p := range store.All[*corev1.Pod](s.store) {
			if s.client.SubResource("eviction").Create(t.Context(), p.DeepCopy(), &policyv1.Eviction{}) == nil {
				evicted++
			}
		}
		if evicted != 1 {
			t.Errorf("%d pods were evicted, 1 may go", evicted)
		}
		s.settle(2 * time.Minute)
		s.want("it is made again", allowed(), "3 of 3 healthy, 1 may go")
	})
}

// TestSpread has a pod wait when running it would make zones uneven.
func TestSpread(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t, "pods web count=4 cpu=100m spread=zone\n")
		s.launch("c1") // zone a
		s.settle(2 * time.Minute)
		s.register()
		s.settle(time.Minute)
		s.want("one zone", s.count("web"), "0 wait, 4 run on 1 nodes")
		other := &v1.NodeClaim{}
		other.Name, other.UID = "c2", "c2"
		other.Spec.Requirements = []v1.NodeSelectorRequirementWithMinValues{{Key: corev1.LabelTopologyZone, Operator: corev1.NodeSelectorOpIn, Values: []string{"b"}}}
		_, err := s.cloud.Create(t.Context(), other)
		s.must(err)
		s.settle(2 * time.Minute)
		s.register()
		for p := range store.All[*corev1.Pod](s.store) {
			s.must(s.client.Delete(t.Context(), p.DeepCopy(), client.GracePeriodSeconds(0)))
			break
		}
		s.settle(time.Minute)
		s.want("two zones", s.count("web"), "0 wait, 4 run on 2 nodes")
	})
}

// TestUsersAndMarket has everything happen that a script can ask for.
func TestUsersAndMarket(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t, `
pods web count=1 cpu=100m life=5m
at 5m edit general label=v2 budgets=2:Drifted
at 6m price m2 x3 zone=a
at step:60 delete pod web 1
at 20m interrupt 5
at 25m delete pool general
fault no-join times=1
fault no-capacity zone=a capacity=spot from=10m for=5m
fault cloud-lag lag=1m from=10m for=5m
`)
		s.launch("never-joins")
		s.launch("joins")
		s.settle(4 * time.Minute)
		if n := len(slices.Collect(store.All[*corev1.Node](s.store))); n != 1 {
			t.Fatalf("%d nodes joined, want one of the two machines", n)
		}
		s.settle(4 * time.Minute)
		pool := store.Find[*v1.NodePool](s.store, "", "general")
		if pool.Spec.Template.Labels[script.VersionLabel] != "v2" || pool.Spec.Disruption.Budgets[0].Nodes != "2" || pool.Spec.Disruption.Budgets[0].Reasons[0] != "Drifted" {
			t.Errorf("the pool was not edited: %v", pool.Spec)
		}
		offering := func(zone, sold string) string {
			for _, o := range s.cloud.Types()[0].Offerings {
				if o.Zone() == zone && o.CapacityType() == sold {
					return fmt.Sprintf("%.3f", o.Price.Dollars())
				}
			}
			return "none"
		}
		s.want("dearer", offering("a", "on-demand")+" "+offering("a", "spot")+" "+offering("b", "spot"), "0.300 0.090 0.030")
		s.register()
		s.settle(4 * time.Minute)
		first := store.All[*corev1.Pod](s.store)
		var uid types.UID
		for p := range first {
			uid = p.UID
		}
		s.launch("elsewhere")
		machines := s.cloud.Machines()
		if o := machines[len(machines)-1].Offering; o.Zone != "b" {
			t.Errorf("launched %v, zone a has no capacity", o)
		}
		if list, _ := s.cloud.List(t.Context()); len(list) != 2 {
			t.Errorf("%d machines show, want 2 and not the one that was just launched", len(list))
		}
		s.settle(5 * time.Minute)
		if list, _ := s.cloud.List(t.Context()); len(list) != 3 {
			t.Errorf("%d machines show, want all 3", len(list))
		}
		s.settle(20 * time.Minute)
		for p := range store.All[*corev1.Pod](s.store) {
			if p.UID == uid && p.DeletionTimestamp == nil {
				t.Error("a pod with a life of minutes was never replaced")
			}
		}
		if store.Find[*v1.NodePool](s.store, "", "general") != nil {
			t.Error("the pool was not deleted")
		}
		if slices.ContainsFunc(s.cloud.Machines(), func(m simcloud.Machine) bool { return m.Runs() }) {
			t.Error("spot machines were not taken back")
		}
	})
}
