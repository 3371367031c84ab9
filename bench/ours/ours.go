// SPDX-License-Identifier: Apache-2.0

// Package ours runs this project's engine on a workload.
//
// Objects go in the way they do in the controller: converted by kube/convert,
// kept by world. What is timed is what happens between news and plan: taking
// the Snapshot and deciding.
package ours

import (
	"fmt"
	"os"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	v1 "karpenter/api/v1"
	"karpenter/bench/judge"
	"karpenter/bench/workload"
	"karpenter/cloud"
	"karpenter/cloud/kwok"
	"karpenter/cloud/nodeprice"
	"karpenter/kube/convert"
	"karpenter/model"
	"karpenter/scenario"
	"karpenter/solve"
	"karpenter/world"
)

// Engine is the engine with a workload taken in.
type Engine struct {
	world   *world.World
	planner solve.Planner
	convert convert.Converter
	plan    *model.Plan
	policy  model.Policy
	added   int
	one     bool
}

// Terms are what differs from the default settings.
type Terms struct {
	NodePrice        model.Price // of each node, per hour, besides its instance
	NodeCountPremium float64
}

// DefaultTerms returns the default settings.
func DefaultTerms() Terms {
	return Terms{NodeCountPremium: model.DefaultPolicy().NodeCountPremium}
}

// New takes in the workload.
func New(w *workload.Workload) (*Engine, error) { return NewAt(w, DefaultTerms()) }

// NewAt takes in the workload and decides on the terms.
func NewAt(w *workload.Workload, terms Terms) (*Engine, error) {
	catalogue, err := kwok.NewCatalogue(w.Entries)
	if err != nil {
		return nil, fmt.Errorf("price list: %w", err)
	}
	axis := model.NewAxis()
	e := &Engine{one: w.One, policy: model.DefaultPolicy(), convert: convert.Converter{
		Axis: axis, Labels: v1.DefaultLabels().With(catalogue.Labels()),
		Manages: func(*v1.NodeClassReference) bool { return true },
	}}
	e.policy.NodeCountPremium = terms.NodeCountPremium
	e.world = world.New(axis, e.convert.WellKnown())
	types := cloud.Types(axis, catalogue.Types())
	extras := nodeprice.Amounts{Node: terms.NodePrice}.Extras()
	if len(extras) > 0 {
		for i := range types {
			types[i] = types[i].With(extras)
		}
	}
	for _, p := range w.Pools {
		pool, _ := e.convert.Pool(p)
		e.world.SetPool(pool)
		e.world.SetTypes(p.Name, types, extras...)
	}
	e.takeIn(w.Daemons, w.Machines)
	for p := range w.Pending() {
		e.world.SetPod(e.convert.Pod(p))
		if w.One { // a shape that is known
			_ = e.Decide()
			e.world.DeletePod(p.Namespace, p.Name)
		}
	}
	if w.One {
		_ = e.Decide()
	}
	return e, nil
}

func (e *Engine) takeIn(daemons []*appsv1.DaemonSet, machines []workload.Machine) {
	for _, d := range daemons {
		if daemon, ok := e.convert.Daemon(d); ok {
			e.world.SetDaemon(daemon)
		}
	}
	for i := range machines {
		e.takeInMachine(&machines[i])
	}
}

func (e *Engine) takeInMachine(m *workload.Machine) {
	claim, _ := e.convert.Claim(m.Claim)
	e.world.SetClaim(claim)
	e.world.SetNode(e.convert.Node(m.Node))
	for _, p := range m.Bound {
		e.world.SetPod(e.convert.Pod(p))
	}
}

// News is what happens before a decision: nothing, or, in a workload of one
// more pod, that the pod shows up. It is not timed.
func (e *Engine) News(w *workload.Workload) {
	if !e.one {
		return
	}
	for p := range w.Pending() {
		e.world.SetPod(e.convert.Pod(p))
	}
}

// Decide takes a Snapshot and decides, also if nothing has changed since the last
// decision. The error is always nil.
func (e *Engine) Decide() error {
	s := e.world.Snapshot(workload.Start())
	s.Nodes, s.Pending = slices.Clone(s.Nodes), slices.Clone(s.Pending) // the planner takes other lists for a change
	e.plan = e.planner.Decide(s, e.policy)
	return nil
}

// Bound returns what the last decision proved no plan can beat, in dollars per
// hour.
func (e *Engine) Bound() float64 { return e.plan.Bound.Dollars() }

// Plan returns what was decided last.
func (e *Engine) Plan() *judge.Plan {
	out := &judge.Plan{Placed: map[string][]string{}}
	for _, p := range e.plan.Placements {
		out.Placed[p.Node] = append(out.Placed[p.Node], p.Pod.Key())
	}
	for i := range e.plan.Launches {
		out.Claims = append(out.Claims, claim(&e.plan.Launches[i]))
	}
	return out
}

func claim(l *model.Launch) judge.Claim {
	c := judge.Claim{Pool: l.Pool, Types: l.Types}
	for _, p := range l.Pods {
		c.Pods = append(c.Pods, p.Key())
	}
	for _, r := range l.Requirements {
		c.Requirements = append(c.Requirements, requirement(r)...)
	}
	c.Requirements = append(c.Requirements, corev1.NodeSelectorRequirement{
		Key: v1.CapacityTypeLabelKey, Operator: corev1.NodeSelectorOpIn, Values: l.CapacityTypes,
	})
	return c
}

// requirement writes r as Kubernetes does, one operator at a time.
func requirement(r model.Requirement) []corev1.NodeSelectorRequirement {
	var out []corev1.NodeSelectorRequirement
	if r.Gte.Set {
		out = append(out, corev1.NodeSelectorRequirement{Key: r.Key, Operator: "Gte", Values: []string{fmt.Sprint(r.Gte.N)}})
	}
	if r.Lte.Set {
		out = append(out, corev1.NodeSelectorRequirement{Key: r.Key, Operator: "Lte", Values: []string{fmt.Sprint(r.Lte.N)}})
	}
	return append(out, corev1.NodeSelectorRequirement{Key: r.Key, Operator: corev1.NodeSelectorOperator(r.Operator()), Values: r.Values})
}

// Unsupported returns what pods of the workload use and the engine does not
// plan yet.
func (e *Engine) Unsupported(w *workload.Workload) []string {
	var out []string
	for p := range w.Pending() {
		for _, what := range e.convert.Pod(p).Shape.Refused {
			if !slices.Contains(out, what) {
				out = append(out, what)
			}
		}
	}
	return out
}

// WriteScenario writes the situation into a file that "karpenter plan
// --snapshot" reads.
func (e *Engine) WriteScenario(file string) error {
	f, err := os.Create(file)
	if err != nil {
		return err
	}
	s := scenario.Situation{Snapshot: e.world.Snapshot(workload.Start()), Policy: model.DefaultPolicy()}
	if err := s.Print(f); err != nil {
		f.Close()
		return fmt.Errorf("%s: %w", file, err)
	}
	return f.Close()
}
