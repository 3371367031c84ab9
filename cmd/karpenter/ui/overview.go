// SPDX-License-Identifier: Apache-2.0

package ui

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	v1 "karpenter/api/v1"
	"karpenter/cmd/karpenter/explain"
	"karpenter/cmd/karpenter/plan"
	"karpenter/cmd/karpenter/status"
	"karpenter/cmd/karpenter/top"
)

// overview is the cluster in a few figures.
type overview struct {
	Revision  int       `json:"revision"`
	Title     string    `json:"title"`
	Source    string    `json:"source"` // cluster, recording or snapshot
	Time      time.Time `json:"time"`
	Trouble   string    `json:"trouble,omitempty"`
	Nodes     int       `json:"nodes"`          // of NodePools
	Foreign   int       `json:"foreign"`        // other nodes, not counted
	Pods      int       `json:"pods"`           // on all nodes
	Waiting   int       `json:"pendingPods"`    // pods without a node
	NoPlace   int       `json:"noPlacePods"`    // of those, for which no plan has a place
	Exhausted bool      `json:"planIncomplete"` // the planner's budget of work ended first

	CostPerHour  float64 `json:"costPerHour"`
	CostPerMonth float64 `json:"costPerMonth"`
	Unpriced     int     `json:"unpriced"` // nodes whose price is not known: they count as 0

	// The proven minimum: no plan for the pods that may move or wait costs less.
	// Comparable is false if it is for more pods than the nodes run.
	BoundPerHour  float64 `json:"boundPerHour"`
	BoundPerMonth float64 `json:"boundPerMonth"`
	FreshPerHour  float64 `json:"freshPerHour"` // of a plan from scratch
	FreshNodes    int     `json:"freshNodes"`
	Gap           float64 `json:"gap"` // how far the cost is above the minimum, as a fraction of the minimum
	Comparable    bool    `json:"comparable"`

	CPU    amount `json:"milliCPU"` // of the nodes of NodePools
	Memory amount `json:"memoryBytes"`

	Next   nextDecision   `json:"next"`
	Last   []card         `json:"last"`   // what happened to nodes and NodePools, newest first
	Checks []status.Check `json:"checks"` // none of a snapshot file
}

// nextDecision is what the planner would do now.
type nextDecision struct {
	Words          []string `json:"words"` // a sentence for each part; none = it would do nothing
	AfterPerHour   float64  `json:"afterPerHour"`
	AfterNodes     int      `json:"afterNodes"`
	SavingsPerHour float64  `json:"savingsPerHour"` // of the nodes that are removed
	Evictions      int      `json:"evictions"`
}

// mostLast is how many decisions the overview has.
const mostLast = 5

func (s *state) overview() overview {
	r, c := &s.report, &s.cluster
	o := overview{
		Revision: s.revision, Title: s.Title, Source: s.Source, Time: s.now(), Trouble: s.Trouble,
		Nodes: c.Nodes, CostPerHour: c.Cost, CostPerMonth: monthly(c.Cost), Unpriced: c.Unpriced,
		BoundPerHour: c.Bound, BoundPerMonth: monthly(c.Bound), FreshPerHour: c.Fresh.Cost, FreshNodes: c.Fresh.Nodes,
		Comparable: c.Nodes > 0 && c.Bound > 0 && c.Cost >= c.Bound, Exhausted: s.plan.Exhausted,
		Waiting: c.Waiting, NoPlace: r.After.Pending, Next: s.next(), Last: s.cards(mostLast, func(e top.Entry) bool { return e.Kind != top.PodsKind }), Checks: s.Checks,
	}
	if o.Comparable {
		o.Gap = c.Cost/c.Bound - 1
	}
	if o.Checks == nil {
		o.Checks = []status.Check{}
	}
	for _, n := range s.nodes {
		o.Pods += n.Pods
		if n.Fate == explain.Foreign {
			o.Foreign++
			continue
		}
		o.CPU.Allocatable += n.CPU.Allocatable
		o.CPU.Requested += n.CPU.Requested
		o.Memory.Allocatable += n.Memory.Allocatable
		o.Memory.Requested += n.Memory.Requested
	}
	return o
}

// next says what the planner would do now.
func (s *state) next() nextDecision {
	r := &s.report
	out := nextDecision{Words: []string{}, AfterPerHour: float64(r.After.Cost), AfterNodes: r.After.Nodes, Evictions: r.Evictions}
	if len(r.Launches) > 0 {
		out.Words = append(out.Words, fmt.Sprintf("Launch %s for pending pods: %s.", counted(len(r.Launches), "node"), kinds(r.Launches)))
	}
	for i := range r.Commands {
		c := &r.Commands[i]
		out.SavingsPerHour += float64(c.Savings)
		text := fmt.Sprintf("Remove %s (%s)", nodesOf(c), strings.ToLower(c.Reason))
		if len(c.Launches) > 0 {
			text += fmt.Sprintf(", replaced by %s", kinds(c.Launches))
		}
		if c.Evictions > 0 {
			text += fmt.Sprintf("; %s evicted", counted(c.Evictions, "pod"))
		}
		out.Words = append(out.Words, text+fmt.Sprintf(". This saves $%s/h.", plan.Price(c.Savings)))
	}
	return out
}

// kinds counts launches by what they are.
func kinds(all []plan.Launch) string {
	n := map[string]int{}
	var order []string
	for i := range all {
		l := &all[i]
		kind := fmt.Sprintf("%s %s %s", l.InstanceType, l.CapacityType, l.Zone)
		if n[kind] == 0 {
			order = append(order, kind)
		}
		n[kind]++
	}
	slices.SortStableFunc(order, func(a, b string) int { return cmp.Compare(n[b], n[a]) })
	for i, kind := range order {
		order[i] = fmt.Sprintf("%d × %s", n[kind], kind)
	}
	return some(order)
}

// some joins the first of the texts.
func some(all []string) string {
	const most = 3
	if len(all) <= most {
		return strings.Join(all, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(all[:most], ", "), len(all)-most)
}

func nodesOf(c *plan.Command) string {
	names := make([]string, len(c.Nodes))
	for i := range c.Nodes {
		names[i] = c.Nodes[i].Name
	}
	return some(names)
}

func counted(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// card is what happened at one time.
type card struct {
	At      time.Time `json:"time"`
	Entries []entry   `json:"entries"` // causes before effects
}

type entry struct {
	Kind top.Kind `json:"kind"`
	Text string   `json:"text"`
}

// cards returns the latest things of those wanted that happened, newest first; most < 0
// means all.
func (s *state) cards(most int, wanted func(top.Entry) bool) []card {
	out := []card{}
	for _, e := range slices.Backward(s.Happened) {
		if !wanted(e) {
			continue
		}
		if len(out) == 0 || !out[len(out)-1].At.Equal(e.At) {
			if len(out) == most {
				break
			}
			out = append(out, card{At: e.At.UTC()})
		}
		last := &out[len(out)-1]
		last.Entries = slices.Insert(last.Entries, 0, entry{e.Kind, e.Text})
	}
	return out
}

// pending is the pods without a node.
type pending struct {
	Waiting  int            `json:"pendingPods"`
	Refused  []plan.Refusal `json:"noPlace"`       // groups of pods that no plan has a place for
	Launches []plan.Launch  `json:"launches"`      // nodes that are planned for the others
	Places   []plan.Place   `json:"existingNodes"` // nodes that are there, and take the others
}

func (s *state) pending() pending {
	r := &s.report
	out := pending{Refused: r.Pending, Launches: r.Launches, Places: r.Placements}
	for _, g := range r.Pending {
		out.Waiting += len(g.Pods)
	}
	for _, l := range r.Launches {
		out.Waiting += len(l.PodNames)
	}
	for _, p := range r.Placements {
		out.Waiting += len(p.Pods)
	}
	return out
}

// manifest is a NodePool as users write it.
type manifest struct {
	Name string `json:"name"`
	YAML string `json:"yaml,omitempty"` // "" = not known, as of a snapshot file
}

// manifests returns the NodePools, by name.
func (s *state) manifests() ([]manifest, error) {
	out := []manifest{}
	for _, p := range s.Pools {
		text, err := yaml.Marshal(written(p))
		if err != nil {
			return nil, fmt.Errorf("write NodePool %s: %w", p.Name, err)
		}
		out = append(out, manifest{p.Name, string(text)})
	}
	if s.Pools == nil {
		for i := range s.Situation.Snapshot.Pools {
			out = append(out, manifest{Name: s.Situation.Snapshot.Pools[i].Name})
		}
	}
	slices.SortFunc(out, func(a, b manifest) int { return cmp.Compare(a.Name, b.Name) })
	return out, nil
}

// written returns the parts of a NodePool that a user writes.
func written(p *v1.NodePool) any {
	return struct {
		metav1.TypeMeta `json:",inline"`
		Metadata        any             `json:"metadata"`
		Spec            v1.NodePoolSpec `json:"spec"`
	}{
		metav1.TypeMeta{APIVersion: v1.GroupVersion().String(), Kind: "NodePool"},
		struct {
			Name        string            `json:"name"`
			Labels      map[string]string `json:"labels,omitempty"`
			Annotations map[string]string `json:"annotations,omitempty"`
		}{p.Name, p.Labels, own(p.Annotations)},
		p.Spec,
	}
}

// own returns the annotations that programs do not write.
func own(annotations map[string]string) map[string]string {
	out := map[string]string{}
	for key, value := range annotations {
		switch key {
		case v1.NodePoolHashAnnotationKey, v1.NodePoolHashVersionAnnotationKey, "kubectl.kubernetes.io/last-applied-configuration":
		default:
			out[key] = value
		}
	}
	return out
}

// whatIf returns the plan with the NodePools of the manifests.
func (s *state) whatIf(manifests []byte) (plan.Report, error) {
	m := &plan.Manifests{}
	if err := m.Read("your text", bytes.NewReader(manifests)); err != nil {
		return plan.Report{}, err
	}
	if len(m.Pools) == 0 {
		return plan.Report{}, fmt.Errorf("your text has no NodePool: want apiVersion: %s and kind: NodePool", v1.GroupVersion())
	}
	return plan.With(s.Situation.Snapshot, m, nil, decider(s.Situation.Policy))
}
