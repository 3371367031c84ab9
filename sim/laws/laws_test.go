// SPDX-License-Identifier: Apache-2.0

package laws_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	kubescheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	autoscalingv1beta1 "karpenter/api/autoscaling/v1beta1"
	"karpenter/api/scheme"
	v1 "karpenter/api/v1"
	"karpenter/model"
	"karpenter/sim"
	"karpenter/sim/actors"
	"karpenter/sim/laws"
	"karpenter/sim/script"
	"karpenter/sim/simcloud"
	"karpenter/sim/store"
)

// court is a cluster whose history a test writes, and the laws that watch it.
type court struct {
	*testing.T
	store     *store.Store
	cloud     *simcloud.Cloud
	us, users client.Client
	laws      []*laws.Law
	strays    map[types.UID]bool
	started   time.Time
	quiet     time.Time
	calls     []sim.Made
	broken    []string // name: error
}

const head = "run 10m rest 40m\ntype m2 cpu=2 mem=8Gi price=0.1 zones=a\ntype m4 cpu=4 mem=16Gi price=0.2 zones=a,b\n"

func newCourt(t *testing.T, text string) *court {
	t.Helper()
	s, err := script.Parse(head + text)
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
	c := &court{T: t, store: store.New(server, rand.New(rand.NewPCG(1, 1))), cloud: simcloud.New(actors.Types(s)), started: time.Now(), strays: map[types.UID]bool{}}
	c.laws = laws.All(s, c.strays)
	c.us, c.users = c.store.Client(laws.Us), c.store.Client("users")
	for _, o := range actors.Objects(s) {
		c.must(c.users.Create(t.Context(), o))
	}
	c.step()
	return c
}

func (c *court) must(err error) {
	c.Helper()
	if err != nil {
		c.Fatal(err)
	}
}

func (c *court) seen() *sim.Seen {
	out := &sim.Seen{Now: time.Now(), Started: c.started, Changes: c.store.Changes(), Calls: c.calls, API: c.store, Cloud: c.cloud, Quiet: c.quiet}
	for _, change := range out.Changes {
		if change.By == laws.Us {
			c.quiet, out.Quiet = time.Now(), time.Now()
		}
	}
	c.calls = nil
	return out
}

// step has the laws look at what has changed.
func (c *court) step() {
	s := c.seen()
	for _, l := range c.laws {
		if err := l.Check(s); err != nil {
			c.broken = append(c.broken, l.Name()+": "+err.Error())
		}
	}
}

// pass lets that much time pass, a minute at a time.
func (c *court) pass(d time.Duration) {
	for end := time.Now().Add(d); time.Now().Before(end); {
		time.Sleep(min(time.Minute, time.Until(end)))
		c.step()
	}
}

func (c *court) end() {
	s := c.seen()
	for _, l := range c.laws {
		if err := l.End(s); err != nil {
			c.broken = append(c.broken, l.Name()+": "+err.Error())
		}
	}
}

// claim is made by the process for pool general.
func (c *court) claim(name, cpu string) *v1.NodeClaim {
	c.Helper()
	claim := &v1.NodeClaim{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{v1.NodePoolLabelKey: "general"}, Finalizers: []string{v1.TerminationFinalizer}}}
	claim.Spec.Requirements = []v1.NodeSelectorRequirementWithMinValues{}
	claim.Spec.NodeClassRef = &v1.NodeClassReference{Group: "karpenter.kwok.sh", Kind: "KWOKNodeClass", Name: "default"}
	claim.Spec.Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu)}
	c.must(c.us.Create(c.Context(), claim))
	c.step()
	return claim
}

// launch gives the claim an instance.
func (c *court) launch(claim *v1.NodeClaim) {
	c.Helper()
	m, err := c.cloud.Create(c.Context(), claim)
	c.must(err)
	c.status(claim, func() {
		claim.Status.ProviderID, claim.Status.Capacity, claim.Status.Allocatable = m.ProviderID, m.Capacity, m.Allocatable
		claim.StatusConditions(time.Now()).SetTrue(v1.LaunchedCondition)
	})
	fresh := claim.DeepCopy()
	for k, v := range m.Labels {
		fresh.Labels[k] = v
	}
	c.must(c.us.Update(c.Context(), fresh))
	*claim = *fresh
	c.step()
}

func (c *court) status(claim *v1.NodeClaim, change func()) {
	c.Helper()
	c.must(c.us.Get(c.Context(), client.ObjectKeyFromObject(claim), claim))
	change()
	c.must(c.us.Status().Update(c.Context(), claim))
	c.step()
}

// join makes the claim's instance a ready Node of the same name.
func (c *court) join(claim *v1.NodeClaim) {
	c.Helper()
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: claim.Name, Labels: map[string]string{corev1.LabelTopologyZone: claim.Labels[corev1.LabelTopologyZone]}}}
	n.Spec.ProviderID = claim.Status.ProviderID
	n.Status.Allocatable = claim.Status.Allocatable
	n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	c.must(c.users.Create(c.Context(), n))
	c.status(claim, func() {
		claim.StatusConditions(time.Now()).SetTrue(v1.RegisteredCondition)
		claim.StatusConditions(time.Now()).SetTrue(v1.InitializedCondition)
	})
}

// node is a claim with its instance and Node.
func (c *court) node(name string) *v1.NodeClaim {
	c.Helper()
	claim := c.claim(name, "1")
	c.launch(claim)
	c.join(claim)
	return claim
}

// pod runs on the node, or waits if that is "".
func (c *court) pod(name, node string, change ...func(*corev1.Pod)) *corev1.Pod {
	c.Helper()
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, Labels: map[string]string{"app": "web"}}}
	p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "web", UID: "web"}}
	p.Spec.NodeName = node
	p.Spec.Containers = []corev1.Container{{Name: "main", Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")}}}}
	for _, f := range change {
		f(p)
	}
	c.must(c.store.Client("workloads").Create(c.Context(), p))
	if node != "" {
		at := metav1.Now()
		p.Status.Phase, p.Status.StartTime = corev1.PodRunning, &at
		p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionTrue, LastTransitionTime: at}}
		c.must(c.users.Status().Update(c.Context(), p))
	}
	c.step()
	return p
}

// bind puts a waiting pod on the node, as the scheduler does.
func (c *court) bind(p *corev1.Pod, node string) {
	c.Helper()
	c.must(c.store.Client("scheduler").SubResource("binding").Create(c.Context(), p.DeepCopy(), &corev1.Binding{Target: corev1.ObjectReference{Kind: "Node", Name: node}}))
	c.step()
}

// stray binds a waiting pod to the node, which is not the emptiest.
func (c *court) stray(p *corev1.Pod, node string) {
	c.Helper()
	c.strays[p.UID] = true
	c.bind(p, node)
}

// consolidate takes the node away for less and evicts its pods. Again writes what
// happens when they are made again and wait. It returns them.
func (c *court) consolidate(node string, pods []*corev1.Pod, again func(waiting []*corev1.Pod)) []*corev1.Pod {
	c.Helper()
	claim := store.Find[*v1.NodeClaim](c.store, "", node).DeepCopy()
	c.mark(claim, model.Underutilized)
	c.delete(c.us, claim)
	var waiting []*corev1.Pod
	for _, p := range pods {
		c.evict(p)
		waiting = append(waiting, c.pod(p.Name+"-again", ""))
		c.must(c.users.Delete(c.Context(), p, client.GracePeriodSeconds(0)))
	}
	again(waiting)
	c.terminate(claim)
	c.pass(time.Minute)
	c.gone(claim)
	return waiting
}

// moves is a history in which node c1 is consolidated, and then c2, which the
// process has launched meanwhile, at the price that c1 had. There is another, c0.
func moves(again func(c *court, a, b *corev1.Pod)) func(*court) {
	return func(c *court) {
		c.node("c0")
		c.node("c1")
		pods := []*corev1.Pod{c.pod("a", "c1"), c.pod("b", "c1")}
		c.pass(time.Minute)
		pods = c.consolidate("c1", pods, func(p []*corev1.Pod) { again(c, p[0], p[1]) })
		c.consolidate("c2", pods, func([]*corev1.Pod) {})
	}
}

// single is a history in which the process evicts the one pod of a Deployment that
// asks for its replacement first, so long after a restart; 0 = there was none. Before
// that it does more, and is told what makes a pod one of the Deployment.
func single(c *court, after time.Duration, before ...func(of func(*corev1.Pod))) {
	c.Helper()
	one, yes := int32(1), true
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"}}
	d.Spec.Replicas = &one
	d.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}
	d.Spec.Template.Labels = d.Spec.Selector.MatchLabels
	c.must(c.users.Create(c.Context(), d))
	of := func(p *corev1.Pod) {
		p.Annotations = map[string]string{v1.SurgeFirstAnnotationKey: "true"}
		p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "web", UID: d.UID, Controller: &yes}}
	}
	n := c.node("c1")
	p := c.ready(c.pod("p", "c1", of))
	c.pass(2 * time.Minute)
	c.mark(n, model.Drifted)
	if after > 0 {
		d.Spec.Template.Annotations = map[string]string{"kubectl.kubernetes.io/restartedAt": time.Now().Format(time.RFC3339)}
		c.must(c.us.Update(c.Context(), d))
		c.pass(after)
	}
	for _, do := range before {
		do(of)
	}
	c.evict(p)
}

// ready has the pod be ready from now on.
func (c *court) ready(p *corev1.Pod) *corev1.Pod {
	c.Helper()
	p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.Now()})
	c.must(c.users.Status().Update(c.Context(), p))
	c.step()
	return p
}

func protect(text string) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Annotations = map[string]string{v1.DoNotDisruptAnnotationKey: text} }
}

func (c *court) mark(claim *v1.NodeClaim, reason model.Reason) {
	c.Helper()
	c.status(claim, func() {
		claim.StatusConditions(time.Now()).SetTrueWithReason(v1.DisruptionReasonCondition, string(reason), string(reason))
	})
}

func (c *court) delete(by client.Client, o client.Object) {
	c.Helper()
	c.must(by.Delete(c.Context(), o.DeepCopyObject().(client.Object)))
	c.step()
}

func (c *court) terminate(claim *v1.NodeClaim) {
	c.must(c.cloud.Delete(c.Context(), claim))
	c.calls = append(c.calls, sim.Made{Call: sim.Call{Target: sim.Cloud, Verb: "Delete", Name: claim.Name}, Effect: true})
	c.step()
}

func (c *court) evict(p *corev1.Pod) {
	c.Helper()
	c.must(c.us.SubResource("eviction").Create(c.Context(), p.DeepCopy(), &policyv1.Eviction{}))
	c.step()
}

// gone takes the finalizers off a claim that is being deleted.
func (c *court) gone(claim *v1.NodeClaim) {
	c.Helper()
	c.must(c.us.Get(c.Context(), client.ObjectKeyFromObject(claim), claim))
	claim.Finalizers = nil
	c.must(c.us.Update(c.Context(), claim))
	c.step()
}

// history is one that breaks a law, and what the law says of it.
type history struct {
	script string
	law    string
	says   string
	write  func(*court)
}

const costsTheSame = "instances cost $0.2000/h when consolidation began at 1m0s and $0.2000/h"

func histories() []history {
	return []history{
		{"pool general limits=nodes:2", "limits", "uses 3 of nodes", func(c *court) {
			for i := range 3 {
				c.claim(fmt.Sprint("c", i), "1")
			}
		}},
		{"pool general limits=cpu:3", "limits", "uses 4 of cpu", func(c *court) {
			c.launch(c.claim("c1", "1"))
			c.launch(c.claim("c2", "1"))
		}},
		{"pool general limits=mem:1Gi", "limits", "uses 8Gi of memory", func(c *court) { c.launch(c.claim("c1", "1")) }},
		{"pool general budgets=1", "budgets", "2 of the 3 nodes of pool general are going; budgets allow 1", func(c *court) {
			nodes := []*v1.NodeClaim{c.node("c1"), c.node("c2"), c.node("c3")}
			c.pass(time.Minute)
			c.mark(nodes[0], model.Empty)
			c.mark(nodes[1], model.Empty)
		}},
		{"pool general budgets=1", "budgets", "2 of the 3 nodes of pool general are going; budgets allow 1", func(c *court) {
			nodes := []*v1.NodeClaim{c.node("c1"), c.node("c2"), c.node("c3")}
			c.pass(time.Minute)
			c.delete(c.users, nodes[0])
			c.pass(time.Minute)
			c.mark(nodes[1], model.Empty)
		}},
		{"pool general budgets=100%,0:Drifted", "budgets", "removed as Drifted", func(c *court) {
			n := c.node("c1")
			c.pass(time.Minute)
			c.mark(n, model.Drifted)
		}},
		{"pool general", "protected", "do-not-disrupt true", func(c *court) {
			c.node("c1")
			c.evict(c.pod("p", "c1", protect("true")))
		}},
		{"pool general", "protected", "do-not-disrupt 10m", func(c *court) {
			c.node("c1")
			p := c.pod("p", "c1", protect("10m"))
			c.pass(9 * time.Minute)
			c.evict(p)
		}},
		{"pool general", "forced", "was deleted, not evicted", func(c *court) {
			c.node("c1")
			c.delete(c.us, c.pod("p", "c1"))
		}},
		{"pool general", "drained", "while pod p runs", func(c *court) {
			n := c.node("c1")
			c.pod("p", "c1")
			c.pass(time.Minute)
			c.delete(c.users, n)
			c.terminate(n)
		}},
		{"pool general", "surged", "no other pod of its Deployment was ready", func(c *court) { single(c, 0) }},
		{"pool general", "surged", "no other pod of its Deployment was ready", func(c *court) { single(c, laws.SurgeTimeout-time.Minute) }},
		{"pool general", "owned", "which is gone", func(c *court) {
			n := c.claim("c1", "1")
			c.launch(n)
			c.must(c.us.Get(c.Context(), client.ObjectKeyFromObject(n), n))
			n.Finalizers = nil
			c.must(c.us.Update(c.Context(), n))
			c.delete(c.users, n)
			c.pass(12 * time.Minute)
		}},
		{"pool general", "once", "has claims c1 and c2", func(c *court) {
			c.launch(c.claim("c1", "1"))
			other := c.claim("c2", "1")
			c.status(other, func() { other.Status.ProviderID = c.cloud.Machines()[0].ProviderID })
		}},
		{"pool general", "joined", "still runs without Node", func(c *court) {
			c.launch(c.claim("c1", "1"))
			c.pass(27 * time.Minute)
		}},
		{"pool general after=2m", "idle", "node of claim c1 in pool general has been empty", func(c *court) {
			c.node("c1")
			c.pass(10 * time.Minute)
		}},
		{"pool general", "reasoned", "deleted without a reason", func(c *court) {
			n := c.node("c1")
			c.delete(c.us, n)
		}},
		{"pool general", "launches", "4 instances were launched in 5 minutes, when there were 1 pods at most", func(c *court) {
			c.pod("p", "")
			for i := range 4 {
				c.launch(c.claim(fmt.Sprint("c", i), "1"))
				c.pass(time.Minute)
			}
		}},
		{"pool general", "repaired", "deleted without a deadline that ends", func(c *court) {
			n := c.node("c1")
			c.calls = append(c.calls, sim.Made{Call: sim.Call{Target: sim.API, By: "node.health", Verb: "delete", Kind: "NodeClaim", Name: n.Name}, Effect: true})
			c.delete(c.us, n)
		}},
		{"pool general", "repaired", "deleted without a deadline that ends", func(c *court) {
			n := c.node("c1")
			c.mark(n, model.Unhealthy)
			c.calls = append(c.calls, sim.Made{Call: sim.Call{Target: sim.API, By: "disruption", Verb: "delete", Kind: "NodeClaim", Name: n.Name}, Effect: true})
			c.delete(c.us, n)
		}},
		{"pool general", "drift", "its type m2 is not found, but it is offered", func(c *court) {
			n := c.node("c1")
			c.status(n, func() {
				n.StatusConditions(time.Now()).SetTrueWithReason(v1.DriftedCondition, v1.InstanceTypeNotFoundReason, "")
			})
		}},
		{"pool general", "drift", "pool general was never changed", func(c *court) {
			n := c.node("c1")
			c.status(n, func() {
				n.StatusConditions(time.Now()).SetTrueWithReason(v1.DriftedCondition, v1.NodePoolDriftedReason, "")
			})
		}},
		{"pool general", "drift", "its instance has not", func(c *court) {
			n := c.node("c1")
			c.status(n, func() { n.StatusConditions(time.Now()).SetTrueWithReason(v1.DriftedCondition, "ImageDrifted", "") })
		}},
		{"pool general", "rolled", "node of claim c1 in pool general is drifted and may go", func(c *court) {
			n := c.node("c1")
			c.pod("p", "c1")
			c.status(n, func() {
				n.StatusConditions(time.Now()).SetTrueWithReason(v1.DriftedCondition, v1.NodePoolDriftedReason, "")
			})
			c.pass(42 * time.Minute)
		}},
		{"pool general", "clean", "runs nothing that keeps it", func(c *court) {
			n := c.node("c1")
			c.pod("p", "c1", protect("true"))
			c.status(n, func() {})
			n.Annotations = map[string]string{v1.NodeClaimTerminationTimestampAnnotationKey: time.Now().Add(time.Minute).Format(time.RFC3339)}
			c.must(c.us.Update(c.Context(), n))
			c.delete(c.users, n)
			c.pass(22 * time.Minute)
			c.end()
		}},
		{"pool general", "fenced", "no longer leads made the call api create NodeClaim c1", func(c *court) {
			c.calls = append(c.calls, sim.Made{Call: sim.Call{Target: sim.API, Verb: "create", Kind: "NodeClaim", Name: "c1"}, Writes: true, Late: true, Effect: true})
			c.step()
		}},
		{"pool general budgets=100%", "kept", "instances cost $0.1000/h when consolidation began at 1m0s and $0.1000/h", func(c *court) {
			old := c.node("c1")
			p := c.pod("p", "c1")
			c.pass(time.Minute)
			c.mark(old, model.Underutilized)
			next := c.node("c2")
			c.delete(c.us, old)
			c.evict(p)
			c.pod("p2", "c2")
			c.terminate(old)
			c.pass(time.Minute)
			c.gone(old)
			c.mark(next, model.Underutilized)
		}},
		{"pool general budgets=100%", "kept", costsTheSame, moves(func(c *court, a, b *corev1.Pod) {
			c.bind(a, "c0") // no stray
			c.node("c2")
			c.bind(b, "c2")
		})},
		{"pool general budgets=100%", "kept", costsTheSame, moves(func(c *court, a, b *corev1.Pod) {
			c.node("c2") // before a pod strays
			c.stray(a, "c0")
			c.bind(b, "c2")
		})},
		{"pool general budgets=100%", "kept", costsTheSame, moves(func(c *court, a, b *corev1.Pod) {
			c.stray(a, "c0")
			c.stray(b, "c0")
			c.node("c2") // for no one
		})},
		{"pool general budgets=100%", "kept", "when consolidation began at 2m0s and", func(c *court) {
			c.node("c0")
			c.node("c1")
			pods := []*corev1.Pod{c.pod("a", "c1"), c.pod("b", "c1")}
			c.pass(time.Minute)
			pods = c.consolidate("c1", pods, func(p []*corev1.Pod) {
				c.stray(p[0], "c0") // of no matter for the next time
				c.node("c2")
				c.bind(p[1], "c2")
			})
			pods = c.consolidate("c2", pods, func(p []*corev1.Pod) {
				c.bind(p[0], "c0")
				c.node("c3")
				c.bind(p[1], "c3")
			})
			c.consolidate("c3", pods, func([]*corev1.Pod) {})
		}},
		{"pool general", "running", "pool general may launch m2 as on-demand in zone a", func(c *court) {
			c.pod("p", "")
			c.pass(20 * time.Minute)
			c.end()
		}},
		{"pool general", "running", "does not start", func(c *court) {
			c.node("c1")
			p := c.pod("p", "c1")
			p.Status.Phase = corev1.PodPending
			c.must(c.users.Status().Update(c.Context(), p))
			c.pass(20 * time.Minute)
			c.end()
		}},
		{"pool general", "clean", "is tainted as disrupted and stays", func(c *court) {
			c.node("c1")
			n := &corev1.Node{}
			c.must(c.us.Get(c.Context(), client.ObjectKey{Name: "c1"}, n))
			n.Spec.Taints = []corev1.Taint{v1.DisruptedNoScheduleTaint()}
			c.must(c.us.Update(c.Context(), n))
			c.end()
		}},
		{"pool general", "clean", "claim c1 has been deleted", func(c *court) {
			n := c.claim("c1", "1")
			c.delete(c.users, n)
			c.pass(20 * time.Minute)
			c.end()
		}},
		{"pool general", "clean", "is marked for disruption (Empty) and nothing follows", func(c *court) {
			n := c.node("c1")
			c.pod("p", "c1")
			c.mark(n, model.Empty)
			c.pass(20 * time.Minute)
			c.end()
		}},
		{"pool general", "rest", "the create of NodeClaim c1", func(c *court) {
			c.pass(49 * time.Minute)
			c.claim("c1", "1")
			c.end()
		}},
		{"pool general", "rest", "the delete of NodeClaim c1", func(c *court) {
			n := c.node("c1")
			c.pod("p", "c1", protect("30m"))
			c.pass(41 * time.Minute)
			c.mark(n, model.Underutilized)
			c.delete(c.us, n)
			c.pass(8 * time.Minute)
			c.end()
		}},
		{gang, "returned", "claim c1, launched for PodGroup default/train, has been without pods since", func(c *court) {
			forTrain(c, c.node("c1"))
			c.pod("a", "", of("train"))
			c.pass(40 * time.Minute)
		}},
		{gang, "together", "pod a on c1 was ended for Underutilized, and 1 of the 2 pods of its group run", func(c *court) {
			n := c.node("c1")
			p := c.pod("a", "c1", of("train"))
			c.pod("b", "c1", of("train"))
			c.pass(2 * time.Minute)
			c.mark(n, model.Underutilized)
			c.evict(p)
		}},
		{gang, "together", "pod a on c1 was ended for Underutilized, and 0 of the 2 pods of its group run", func(c *court) { // both at once
			n := c.node("c1")
			pods := []*corev1.Pod{c.pod("a", "c1", of("train")), c.pod("b", "c1", of("train"))}
			c.pass(2 * time.Minute)
			c.mark(n, model.Underutilized)
			for _, p := range pods {
				c.must(c.us.SubResource("eviction").Create(c.Context(), p, &policyv1.Eviction{}))
			}
			c.step()
		}},
		{gang, "together", "pod a on c1 was ended for Drifted, and 0 of the 2 pods of its group run", func(c *court) { // another is gone already
			n := c.node("c1")
			p := c.pod("a", "c1", of("train"))
			c.pass(2 * time.Minute)
			c.mark(n, model.Drifted)
			c.evict(p)
		}},
		{gang, "together", "pod a on c1 was ended for Drifted, and 1 of the 2 pods of its group run", func(c *court) { // others are of the group's name
			n := c.node("c1")
			p := c.pod("a", "c1", of("train"))
			c.pod("b", "c1", of("train"))
			c.pod("c", "c1", of("train"), func(p *corev1.Pod) { p.Namespace = "other" })
			c.pass(2 * time.Minute)
			c.mark(n, model.Drifted)
			c.evict(p)
		}},
		{gang + " whole=true", "together", "pod b on c2 stays, and others of its group have been ended at 2m0s", func(c *court) {
			n := c.node("c1")
			c.node("c2")
			p := c.pod("a", "c1", of("train"))
			c.pod("b", "c2", of("train"))
			c.pass(2 * time.Minute)
			c.mark(n, model.Drifted)
			c.evict(p)
			c.pass(2 * time.Minute)
		}},
		{gang, "budgets", "claim c1 is removed as Empty", func(c *court) { // launched for another group
			n := c.node("c1")
			forTrain(c, n)
			c.pod("a", "c1", of("train"))
			c.pod("b", "c1", of("train"))
			c.mark(n, model.Empty)
		}},
	}
}

// gang is a PodGroup of two pods, and a NodePool whose nodes may not be disrupted.
const gang = "pool general budgets=0 after=Never\npods train count=2 cpu=1 group=2"

// of makes a pod one of the PodGroup.
func of(group string) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Spec.SchedulingGroup = &corev1.PodSchedulingGroup{PodGroupName: &group} }
}

// forTrain has the claim be one that was launched for the PodGroup train.
func forTrain(c *court, claim *v1.NodeClaim) {
	c.must(c.us.Get(c.Context(), client.ObjectKeyFromObject(claim), claim))
	claim.Annotations = map[string]string{v1.PodGroupsAnnotationKey: "default/train"}
	c.must(c.us.Update(c.Context(), claim))
	c.status(claim, func() { claim.Status.NodeName = claim.Name })
}

// TestEveryLawCanBreak has each law find what is wrong with a history that
// breaks it.
func TestEveryLawCanBreak(t *testing.T) {
	tried := map[string]bool{}
	for _, h := range histories() {
		tried[h.law] = true
		t.Run(h.law+" "+h.says, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newCourt(t, h.script)
				h.write(c)
				for _, b := range c.broken {
					if strings.HasPrefix(b, h.law+": ") && strings.Contains(b, h.says) {
						return
					}
				}
				t.Errorf("not found; laws said:\n%s", strings.Join(c.broken, "\n"))
			})
		})
	}
	synctest.Test(t, func(t *testing.T) {
		for _, l := range newCourt(t, "pool general").laws {
			if !tried[l.Name()] {
				t.Errorf("no history breaks %s", l.Name())
			}
			if l.Means() == "" || !strings.HasSuffix(l.Means(), ".") {
				t.Errorf("%s does not say in a sentence what it means", l.Name())
			}
		}
	})
}

// TestExcused writes histories that break no law for what the process could not
// know or change.
func TestExcused(t *testing.T) {
	for _, h := range []struct {
		name, text string
		write      func(*court)
	}{
		{"somebody deletes a claim while the process marks another", "pool general budgets=1", func(c *court) {
			nodes := []*v1.NodeClaim{c.node("c1"), c.node("c2"), c.node("c3")}
			c.pass(time.Minute)
			c.delete(c.users, nodes[0])
			c.mark(nodes[1], model.Empty)
		}},
		{"a node is not ready between two moves", "pool general budgets=100%", func(c *court) {
			c.node("c1")
			pods := []*corev1.Pod{c.pod("a", "c1")}
			c.pass(time.Minute)
			pods = c.consolidate("c1", pods, func(p []*corev1.Pod) {
				c.node("c2")
				c.bind(p[0], "c2")
			})
			sick := &corev1.Node{}
			c.must(c.users.Get(c.Context(), client.ObjectKey{Name: "c2"}, sick))
			sick.Status.Conditions[0].Status = corev1.ConditionFalse
			c.must(c.users.Status().Update(c.Context(), sick))
			c.pass(time.Minute)
			c.consolidate("c2", pods, func([]*corev1.Pod) {})
		}},
		{"a pod has waited for its replacement as long as it is told to", "pool general", func(c *court) { single(c, laws.SurgeTimeout) }},
		{"a pod has been replaced", "pool general", func(c *court) {
			single(c, time.Minute, func(of func(*corev1.Pod)) { c.ready(c.pod("q", "c1", of)) })
		}},
		{"a limit lets a pod have a machine only at the end", "pool general limits=nodes:1", func(c *court) {
			n := c.node("c1")
			c.pod("p", "c1")
			c.pod("waits", "")
			c.pass(20 * time.Minute)
			c.delete(c.users, n)
			c.pass(2 * time.Minute)
			c.end()
		}},
		{"a pod that must not be evicted keeps a node almost to the end", "pool general", func(c *court) {
			n := c.node("c1")
			p := c.pod("p", "c1", protect("true"))
			c.delete(c.users, n)
			c.pass(20 * time.Minute)
			c.must(c.users.Delete(c.Context(), p, client.GracePeriodSeconds(0)))
			c.pass(2 * time.Minute)
			c.end()
		}},
		{"a pod's do-not-disrupt ends late, and its node goes", "pool general", func(c *court) {
			n := c.node("c1")
			p := c.pod("p", "c1", protect("41m"))
			c.pass(42 * time.Minute)
			c.mark(n, model.Underutilized)
			c.delete(c.us, n)
			c.evict(p)
			c.must(c.users.Delete(c.Context(), p, client.GracePeriodSeconds(0)))
			c.pass(time.Minute)
			c.terminate(n)
			c.must(c.us.Delete(c.Context(), store.Find[*corev1.Node](c.store, "", "c1")))
			c.gone(n)
			c.pass(6 * time.Minute)
			c.end()
		}},
		{"drift ends late, and then an empty node goes", "pool general", func(c *court) {
			n, empty := c.node("c1"), c.node("c2")
			pods := []*corev1.Pod{c.pod("a", "c1"), c.pod("b", "c2")}
			c.pass(40 * time.Minute)
			pool := store.Find[*v1.NodePool](c.store, "", "general").DeepCopy()
			pool.Spec.Template.Labels = map[string]string{"v": "2"}
			c.must(c.users.Update(c.Context(), pool))
			c.status(n, func() {
				n.StatusConditions(time.Now()).SetTrueWithReason(v1.DriftedCondition, v1.NodePoolDriftedReason, "")
			})
			for i, node := range []*v1.NodeClaim{n, empty} {
				c.pass(time.Minute)
				c.must(c.users.Delete(c.Context(), pods[i], client.GracePeriodSeconds(0)))
				c.mark(node, []model.Reason{model.Drifted, model.Empty}[i])
				c.delete(c.us, node)
				c.terminate(node)
				c.must(c.us.Delete(c.Context(), store.Find[*corev1.Node](c.store, "", node.Name)))
				c.gone(node)
			}
			c.pass(7 * time.Minute)
			c.end()
		}},
		{"a node that is not ready holds no pods of a buffer, and another one does", "pool general after=2m", func(c *court) {
			c.must(c.users.Create(c.Context(), &autoscalingv1beta1.CapacityBuffer{
				ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"},
				Spec:       autoscalingv1beta1.CapacityBufferSpec{Replicas: new(int32(1))},
			}))
			c.node("c1")
			c.node("c2")
			sick := &corev1.Node{}
			c.must(c.users.Get(c.Context(), client.ObjectKey{Name: "c2"}, sick))
			sick.Status.Conditions[0].Status = corev1.ConditionFalse
			c.must(c.users.Status().Update(c.Context(), sick))
			c.pass(15 * time.Minute)
		}},
		{"a drifted node runs a pod that only a pool with limits could take", "pool general limits=nodes:5", func(c *court) {
			n := c.node("c1")
			c.pod("p", "c1")
			pool := store.Find[*v1.NodePool](c.store, "", "general").DeepCopy()
			pool.Spec.Template.Labels = map[string]string{"v": "2"}
			c.must(c.users.Update(c.Context(), pool))
			c.status(n, func() {
				n.StatusConditions(time.Now()).SetTrueWithReason(v1.DriftedCondition, v1.NodePoolDriftedReason, "")
			})
			c.pass(45 * time.Minute)
		}},
		{"a node is bought for a moved pod after the scheduler has put another astray", "pool general budgets=100%", moves(func(c *court, a, b *corev1.Pod) {
			c.stray(a, "c0")
			c.node("c2")
			c.bind(b, "c2")
		})},
	} {
		t.Run(h.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newCourt(t, h.text+"\n")
				h.write(c)
				c.step()
				if len(c.broken) > 0 {
					t.Errorf("broken:\n%s", strings.Join(c.broken, "\n"))
				}
			})
		})
	}
}

// TestGoodHistory breaks no law: a node comes, runs a pod, drifts after an
// edit, drains within its budget and goes.
func TestGoodHistory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCourt(t, "pool general limits=nodes:2,cpu:4 budgets=1 after=30s\n")
		n := c.node("c1")
		p := c.pod("p", "c1", protect("5m"))
		c.pass(6 * time.Minute)
		pool := store.Find[*v1.NodePool](c.store, "", "general").DeepCopy()
		pool.Spec.Template.Labels = map[string]string{"v": "2"}
		c.must(c.users.Update(t.Context(), pool))
		c.status(n, func() {
			n.StatusConditions(time.Now()).SetTrueWithReason(v1.DriftedCondition, v1.NodePoolDriftedReason, "")
		})
		c.mark(n, model.Drifted)
		c.node("c2")
		c.delete(c.us, n)
		c.evict(p)
		c.pod("p2", "c2")
		c.must(c.users.Delete(t.Context(), p, client.GracePeriodSeconds(0)))
		c.terminate(n)
		c.pass(time.Minute)
		node := store.Find[*corev1.Node](c.store, "", "c1")
		c.delete(c.us, node)
		c.gone(n)
		c.pass(40 * time.Minute)
		c.end()
		if len(c.broken) > 0 {
			t.Errorf("broken:\n%s", strings.Join(c.broken, "\n"))
		}
	})
}
