// SPDX-License-Identifier: Apache-2.0

// Package upstream runs the engine of sigs.k8s.io/karpenter on a workload.
//
// Nodes and pods go into its cluster state, NodePools and DaemonSets into a
// client that answers from memory. What is timed is what its provisioner does
// between listing the pods and creating NodeClaims: copying the nodes, making
// a scheduler, solving, and cutting the lists of types short.
package upstream

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"runtime"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/log"
	v1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/controllers/disruption"
	"sigs.k8s.io/karpenter/pkg/controllers/dynamicresources/deviceallocation"
	"sigs.k8s.io/karpenter/pkg/controllers/provisioning"
	"sigs.k8s.io/karpenter/pkg/controllers/provisioning/scheduling"
	"sigs.k8s.io/karpenter/pkg/controllers/state"
	"sigs.k8s.io/karpenter/pkg/events"
	"sigs.k8s.io/karpenter/pkg/operator/options"
	"sigs.k8s.io/karpenter/pkg/state/virtualpods"

	"karpenter/bench/judge"
	"karpenter/bench/workload"
	"karpenter/cloud/kwok"
)

// Engine is upstream's engine with a workload taken in.
type Engine struct {
	ctx         context.Context
	cap         time.Duration
	cluster     *state.Cluster
	provisioner *provisioning.Provisioner
	pods        []*corev1.Pod
	results     scheduling.Results
	late        bool

	client   *memory
	provider *provider
	disrupt  *consolidation
	commands []disruption.Command
}

// New takes in the workload.
func New(w *workload.Workload) (*Engine, error) {
	catalogue, err := kwok.NewCatalogue(w.Entries)
	if err != nil {
		return nil, fmt.Errorf("price list: %w", err)
	}
	// What the providers of upstream do when they are loaded: labels of the
	// provider's types are well known.
	v1.WellKnownLabels = v1.WellKnownLabels.Union(catalogue.Labels().WellKnown)
	ctx, err := settings()
	if err != nil {
		return nil, fmt.Errorf("options: %w", err)
	}
	e := &Engine{ctx: ctx, cap: w.UpstreamCap}
	c, err := store(w)
	if err != nil {
		return nil, err
	}
	cp := &provider{types: instanceTypes(catalogue.Types())}
	e.client, e.provider = c, cp
	clk := clock.RealClock{}
	e.cluster = state.NewCluster(clk, c, cp)
	e.provisioner = provisioning.NewProvisioner(c, events.NewRecorder(&record.FakeRecorder{}), cp, e.cluster, clk, deviceallocation.NewController(c), virtualpods.NewVirtualPodCache(c))
	if err := e.takeIn(w); err != nil {
		return nil, err
	}
	e.News(w)
	return e, nil
}

// settings returns a context with the options upstream runs with by default.
func settings() (context.Context, error) {
	o := &options.Options{}
	flags := &options.FlagSet{FlagSet: flag.NewFlagSet("karpenter", flag.ContinueOnError)}
	o.AddFlags(flags)
	if err := o.Parse(flags); err != nil {
		return nil, err
	}
	return options.ToContext(log.IntoContext(context.Background(), logr.Discard()), o), nil
}

// store returns a client that knows the workload's pools and daemons.
func store(w *workload.Workload) (*memory, error) {
	m := newMemory()
	for _, p := range w.Pools {
		u := &v1.NodePool{}
		if err := translate(p, u); err != nil {
			return nil, err
		}
		m.set(u)
	}
	for _, d := range w.Daemons {
		m.set(d)
	}
	for _, name := range w.Namespaces() {
		m.set(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})
	}
	return m, nil
}

// translate turns an object of this project's API into upstream's. They are
// the same on the wire.
func translate(from, to any) error {
	text, err := json.Marshal(from)
	if err != nil {
		return err
	}
	return json.Unmarshal(text, to)
}

func (e *Engine) takeIn(w *workload.Workload) error {
	for i := range w.Machines {
		if err := e.takeInMachine(&w.Machines[i]); err != nil {
			return err
		}
	}
	for _, d := range w.Daemons {
		if err := e.cluster.UpdateDaemonSet(e.ctx, d); err != nil {
			return fmt.Errorf("daemonset %s: %w", d.Name, err)
		}
	}
	return nil
}

func (e *Engine) takeInMachine(m *workload.Machine) error {
	claim := &v1.NodeClaim{}
	if err := translate(m.Claim, claim); err != nil {
		return err
	}
	e.client.set(claim)
	e.client.set(m.Node)
	e.cluster.UpdateNodeClaim(claim)
	if err := e.cluster.UpdateNode(e.ctx, m.Node); err != nil {
		return fmt.Errorf("node %s: %w", m.Node.Name, err)
	}
	for _, p := range m.Bound {
		e.client.set(p)
		if err := e.cluster.UpdatePod(e.ctx, p); err != nil {
			return fmt.Errorf("pod %s: %w", p.Name, err)
		}
	}
	return nil
}

// News hands in fresh pods: a decision may change them. It is not timed.
func (e *Engine) News(w *workload.Workload) {
	e.pods = e.pods[:0]
	for p := range w.Pending() {
		e.pods = append(e.pods, p)
	}
}

// Decide makes a scheduler and solves.
func (e *Engine) Decide() error {
	ctx, cancel := context.WithTimeout(e.ctx, e.cap)
	defer cancel()
	nodes := e.cluster.DeepCopyNodes().Active()
	s, err := e.provisioner.NewScheduler(ctx, e.pods, nodes, sets.New[types.UID](),
		scheduling.MinValuesPolicy(options.MinValuesPolicyStrict), scheduling.NumConcurrentReconciles(runtime.GOMAXPROCS(0)))
	if err != nil {
		return err
	}
	results, err := s.Solve(ctx, e.pods)
	e.late = ctx.Err() != nil
	if err != nil && !e.late {
		return err
	}
	e.results = results.TruncateInstanceTypes(e.ctx, scheduling.MaxInstanceTypes)
	return nil
}

// Late reports whether the last decision ran into its time limit.
func (e *Engine) Late() bool { return e.late }

// Plan returns what was decided last.
func (e *Engine) Plan() *judge.Plan {
	out := &judge.Plan{Placed: map[string][]string{}}
	for _, n := range e.results.ExistingNodes {
		if len(n.Pods) > 0 {
			out.Placed[n.Node.Name] = keys(n.Pods)
		}
	}
	for _, n := range e.results.NewNodeClaims {
		out.Claims = append(out.Claims, claimOf(n))
	}
	return out
}

func claimOf(n *scheduling.NodeClaim) judge.Claim {
	c := judge.Claim{Pool: n.NodePoolName, Pods: keys(n.Pods)}
	for _, t := range n.InstanceTypeOptions {
		c.Types = append(c.Types, t.Name)
	}
	for _, r := range n.Requirements.NodeSelectorRequirements() {
		c.Requirements = append(c.Requirements, corev1.NodeSelectorRequirement{Key: r.Key, Operator: r.Operator, Values: r.Values})
	}
	return c
}

func keys(pods []*corev1.Pod) []string {
	var out []string
	for _, p := range pods {
		out = append(out, judge.Key(p))
	}
	return out
}
