// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"karpenter/sandbox/fleet"
	"karpenter/sandbox/session"
)

// Disruption configures Disrupt.
type Disruption struct {
	Parts        []string      // of PartNames, in any order
	Pods         int           // of each of the two deployments of consolidate
	Left         int           // of each when they are scaled down
	Emptied      int           // nodes of empty
	Drifted      int           // nodes of drift
	Budget       string        // of consolidate and drift
	CapacityType string        // that the NodePool asks for
	Rest         time.Duration // how long nothing may happen until all counts as at rest
	Within       time.Duration // how long each step may take
	Results      string        // a file for all figures, as JSON; empty: none
}

// DefaultDisruption is a cluster of some hundred nodes.
func DefaultDisruption() Disruption {
	return Disruption{
		Parts: PartNames(), Pods: 500, Left: 350, Emptied: 500, Drifted: 200, Budget: "10%", CapacityType: "on-demand",
		Rest: time.Minute, Within: 45 * time.Minute,
	}
}

// PartNames are the parts there are, in the order they are played in.
func PartNames() []string { return []string{"consolidate", "consolidate-unlimited", "empty", "drift"} }

// Validate returns an error for invalid values.
func (d *Disruption) Validate() error {
	for _, name := range d.Parts {
		if !slices.Contains(PartNames(), name) {
			return fmt.Errorf("no part %q; there are %s", name, strings.Join(PartNames(), ", "))
		}
	}
	switch {
	case d.Pods < 1 || d.Emptied < 1 || d.Drifted < 1:
		return errors.New("each part needs something to run")
	case d.Left < 0 || d.Left > d.Pods:
		return fmt.Errorf("of %d pods %d cannot be left", d.Pods, d.Left)
	case d.Rest <= 0 || d.Within <= d.Rest:
		return fmt.Errorf("a step of %v cannot end with %v of rest", d.Within, d.Rest)
	}
	return nil
}

// Disrupt makes the autoscaler disrupt nodes, in a new cluster for each part, and prints figures: consolidate
// scales two deployments down, under the default budget and then under none (consolidate-unlimited); empty
// removes all pods of many nodes at once; drift changes the NodePool. If a part fails, the others run
// nevertheless.
func Disrupt(ctx context.Context, options Options) error {
	d := &options.Disruption
	if err := d.Validate(); err != nil {
		return err
	}
	var all []*figures
	var errs []error
	for _, name := range PartNames() {
		if !slices.Contains(d.Parts, name) || ctx.Err() != nil {
			continue
		}
		p := d.part(name)
		fmt.Fprintf(options.Out, "\n== part %s, budget %s\n", p.figures.Part, p.figures.Budget)
		own := options
		if dir := options.Session.ControlPlane.Dir; dir != "" {
			own.Session.ControlPlane.Dir = filepath.Join(dir, name)
		}
		err := perform(ctx, own, script{steps: p.steps, settle: 3 * time.Second, measure: p.measure})
		if err != nil {
			p.figures.Failed, _, _ = strings.Cut(err.Error(), "\n")
			errs = append(errs, fmt.Errorf("part %s: %w", name, err))
		}
		all = append(all, &p.figures)
		errs = append(errs, keepFigures(d.Results, all))
	}
	return errors.Join(append(errs, writeFigures(options.Out, all))...)
}

// part is one of PartNames, and what came of it so far.
type part struct {
	*Disruption
	figures figures
	steps   []step

	began, ordered time.Time     // zero: not yet
	cpu            time.Duration // of the controller, when the order was given
	old            map[string]bool
}

func (d *Disruption) part(name string) *part {
	p := &part{Disruption: d, figures: figures{Part: name, Budget: d.Budget}}
	switch name {
	case "empty":
		p.figures.Budget = "100%"
		p.steps = p.emptying()
	case "drift":
		p.steps = p.drifting()
	case "consolidate-unlimited":
		p.figures.Budget = "100%"
		p.steps = p.consolidating()
	default:
		p.steps = p.consolidating()
	}
	return p
}

// The deployments.
const (
	slim  = "slim"
	wide  = "wide"
	alone = "alone" // each pod keeps the others off its node
)

func (p *part) consolidating() []step {
	p.figures.Pods, p.figures.PodsLeft = 2*p.Pods, 2*p.Left
	return []step{
		p.poolStep(),
		p.grow(fmt.Sprintf("scale out to %d + %d pods", p.Pods, p.Pods), func(ctx context.Context, st *stage) error {
			for name, size := range map[string]size{slim: {"900m", "3100Mi"}, wide: {"3500m", "28Gi"}} {
				if err := create(ctx, st, deployment(name, size, p.Pods)); err != nil {
					return err
				}
			}
			return nil
		}),
		{
			fmt.Sprintf("scale down to %d + %d pods", p.Left, p.Left),
			all(p.order, scale(slim, p.Left), scale(wide, p.Left)),
			[]want{p.settled(p.figures.PodsLeft)},
		},
	}
}

func (p *part) emptying() []step {
	p.figures.Pods = p.Emptied
	return []step{
		p.poolStep(),
		p.grow(fmt.Sprintf("a node for each of %d pods", p.Emptied), deployAlone(p.Emptied)),
		{"scale everything to 0", all(p.order, scale(alone, 0)), []want{
			{"all pods gone", p.Within, noPods},
			{"all nodes gone", p.Within, noMachines},
		}},
	}
}

func (p *part) drifting() []step {
	p.figures.Pods, p.figures.PodsLeft = p.Drifted, p.Drifted
	return []step{
		p.poolStep(),
		p.grow(fmt.Sprintf("a node for each of %d pods", p.Drifted), deployAlone(p.Drifted)),
		{"the pool asks for other labels: all nodes drift", all(p.order, relabel), []want{
			{"all nodes replaced", p.Within, p.replaced},
			p.settled(p.Drifted),
		}},
	}
}

func (p *part) poolStep() step {
	name := fmt.Sprintf("a pool of %s nodes, budget %s", p.CapacityType, p.figures.Budget)
	return step{name, func(ctx context.Context, st *stage) error {
		return st.applier.Apply(ctx, poolOf(st.session.Provider(), p.CapacityType, p.figures.Budget, 2*p.figures.Pods+1))
	}, []want{{"all pools are ready", time.Minute, poolsReady}}}
}

// grow is the step that scales out and waits until nothing changes, so that the figures of the next steps
// include none of it.
func (p *part) grow(name string, do func(context.Context, *stage) error) step {
	begin := func(context.Context, *stage) error { p.began = time.Now(); return nil }
	running := func(v *fleet.View) string {
		missing := allRunning(p.figures.Pods)(v)
		if missing == "" {
			p.figures.GrownSeconds = time.Since(p.began).Seconds()
		}
		return missing
	}
	return step{name, all(begin, do), []want{
		{fmt.Sprintf("all %d pods running", p.figures.Pods), p.Within, running}, p.settled(p.figures.Pods),
	}}
}

func (p *part) settled(pods int) want {
	return want{fmt.Sprintf("all at rest for %v", p.Rest), p.Within, atRest(pods, p.Rest)}
}

// order records the state before the change that the part measures.
func (p *part) order(ctx context.Context, st *stage) error {
	var err error
	if p.figures.Before, err = st.askWorth(ctx, "before.txt"); err != nil {
		return err
	}
	used, err := st.session.Controller().Usage()
	if err != nil {
		return err
	}
	view := st.source.View()
	p.old = map[string]bool{}
	for i := range view.Machines {
		p.old[view.Machines[i].Name] = true
	}
	p.figures.Nodes = len(view.Machines)
	p.cpu, p.ordered = used.CPU, time.Now()
	return nil
}

// replaced wants that no instance is left that was there when the order was given.
func (p *part) replaced(v *fleet.View) string {
	left := 0
	for i := range v.Machines {
		if p.old[v.Machines[i].Name] {
			left++
		}
	}
	if left > 0 {
		return fmt.Sprintf("%d of %d nodes are the old ones", left, len(v.Machines))
	}
	return ""
}

// measure fills in the figures, as far as the part has come.
func (p *part) measure(ctx context.Context, st *stage) error {
	f := &p.figures
	now := time.Now()
	view := st.source.View()
	f.NodesLeft, f.Crashes = len(view.Machines), st.crashes()
	f.MemoryP95 = st.memory.percentile(95)
	used, err := st.session.Controller().Usage()
	if err != nil {
		return err
	}
	f.MemoryPeak, f.CPUSeconds = used.PeakMemory, used.CPU.Seconds()
	if p.ordered.IsZero() {
		f.Growing = happenedIn(new(st.history.Between(p.began, now)))
		return nil
	}
	f.CPUOrdered = (used.CPU - p.cpu).Seconds()
	f.Growing = happenedIn(new(st.history.Between(p.began, p.ordered)))
	account := st.history.Between(p.ordered, now)
	f.Ordered = happenedIn(&account)
	if account.LastChange.After(p.ordered) {
		f.Seconds = account.LastChange.Sub(p.ordered).Seconds()
	}
	if f.NodesLeft == 0 {
		return nil
	}
	f.After, err = st.askWorth(ctx, "after.txt")
	return err
}

// atRest wants that so many pods run, all on instances that are ready, and that nothing has happened to either for some
// time.
func atRest(pods int, rest time.Duration) func(*fleet.View) string {
	running := allRunning(pods)
	var last string
	var since time.Time
	return func(v *fleet.View) string {
		var now strings.Builder
		moving := 0
		for i := range v.Machines {
			m := &v.Machines[i]
			fmt.Fprintf(&now, "%s %s %d\n", m.Name, m.State, m.Pods)
			if m.State != fleet.Ready {
				moving++
			}
		}
		if state := now.String(); state != last || since.IsZero() {
			last, since = state, time.Now()
		}
		if missing := running(v); missing != "" {
			since = time.Now()
			return missing
		}
		if moving > 0 {
			since = time.Now()
			return fmt.Sprintf("%d of %d nodes come or go", moving, len(v.Machines))
		}
		if quiet := time.Since(since); quiet < rest {
			return fmt.Sprintf("something happened %v ago", quiet.Round(time.Second))
		}
		return ""
	}
}

// nodeClassOf is a NodeClass of the provider, and how NodePools refer to it.
func nodeClassOf(provider string) (class *unstructured.Unstructured, ref map[string]any) {
	group, version, kind, spec := "karpenter.kwok.sh", "v1alpha1", "KWOKNodeClass", map[string]any{"nodeRegistrationDelay": "2s"}
	if provider == session.AWS {
		discovered := []any{map[string]any{"tags": map[string]any{"karpenter.sh/discovery": session.ClusterName}}}
		group, version, kind, spec = "karpenter.k8s.aws", "v1", "EC2NodeClass", map[string]any{
			"role": "KarpenterNodeRole-" + session.ClusterName, "amiSelectorTerms": []any{map[string]any{"alias": "al2023@latest"}},
			"subnetSelectorTerms": discovered, "securityGroupSelectorTerms": discovered,
		}
	}
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": group + "/" + version, "kind": kind, "metadata": map[string]any{"name": "default"}, "spec": spec,
	}}, map[string]any{"group": group, "kind": kind, "name": "default"}
}

// poolOf is a NodePool that removes nodes soon, and its NodeClass.
func poolOf(provider, capacityType, budget string, nodes int) []*unstructured.Unstructured {
	in := func(key, operator string, values ...any) map[string]any {
		return map[string]any{"key": key, "operator": operator, "values": values}
	}
	class, ref := nodeClassOf(provider)
	return []*unstructured.Unstructured{
		class,
		{Object: map[string]any{
			"apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": map[string]any{"name": "default"},
			"spec": map[string]any{
				"limits": map[string]any{"nodes": fmt.Sprint(nodes)},
				"disruption": map[string]any{
					"consolidationPolicy": "WhenEmptyOrUnderutilized", "consolidateAfter": "10s",
					"budgets": []any{map[string]any{"nodes": budget}},
				},
				"template": map[string]any{"spec": map[string]any{
					"nodeClassRef": ref,
					"requirements": []any{
						in("kubernetes.io/os", "In", "linux"),
						in("karpenter.sh/capacity-type", "In", capacityType),
						in("karpenter.k8s.aws/instance-category", "In", "c", "m", "r"),
						in("karpenter.k8s.aws/instance-generation", "Gt", "4"),
					},
				}},
			},
		}},
	}
}

// oneSize is poolOf for instances with so many cores, at a budget that leaves the cluster steady.
func oneSize(provider string, cores, nodes int) []*unstructured.Unstructured {
	objects := poolOf(provider, "on-demand", "10%", nodes)
	path := []string{"spec", "template", "spec", "requirements"}
	requirements, _, _ := unstructured.NestedSlice(objects[1].Object, path...)
	requirements = append(requirements, map[string]any{
		"key": "karpenter.k8s.aws/instance-cpu", "operator": "In", "values": []any{fmt.Sprint(cores)},
	})
	_ = unstructured.SetNestedSlice(objects[1].Object, requirements, path...)
	return objects
}

// deployAlone returns a step's action that makes pods each of which wants a node of its own.
func deployAlone(pods int) func(context.Context, *stage) error {
	return func(ctx context.Context, st *stage) error {
		d := deployment(alone, size{"500m", "1Gi"}, pods)
		d.Spec.Template.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{
				TopologyKey: corev1.LabelHostname, LabelSelector: d.Spec.Selector,
			}},
		}}
		return create(ctx, st, d)
	}
}

// create makes a deployment whose pods take the usual time to end.
func create(ctx context.Context, st *stage, d *appsv1.Deployment) error {
	d.Spec.Template.Spec.TerminationGracePeriodSeconds = nil
	_, err := st.client.AppsV1().Deployments(metav1.NamespaceDefault).Create(ctx, d, metav1.CreateOptions{})
	return err
}

// relabel changes the labels that the pool's nodes are to have.
func relabel(ctx context.Context, st *stage) error {
	pools := st.untyped.Resource(schema.GroupVersionResource{Group: "karpenter.sh", Version: "v1", Resource: "nodepools"})
	patch := []byte(`{"spec":{"template":{"metadata":{"labels":{"example.com/rollout":"2"}}}}}`)
	_, err := pools.Patch(ctx, "default", types.MergePatchType, patch, metav1.PatchOptions{})
	return err
}
