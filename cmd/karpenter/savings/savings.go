// SPDX-License-Identifier: Apache-2.0

package savings

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	awsv1 "karpenter/api/aws/v1"
	azurev1beta1 "karpenter/api/azure/v1beta1"
	v1 "karpenter/api/v1"
	"karpenter/cloud"
	"karpenter/cloud/kwok"
	"karpenter/cmd/karpenter/situation"
	"karpenter/model"
	"karpenter/scenario"
)

// classKind is the node class of the NodePools that are planned with.
var classKind = schema.GroupKind{Group: "savings.karpenter.sh", Kind: "Instances"}

// Options are the assumptions of a comparison.
type Options struct {
	Region       string             // of prices; "" = that of the nodes
	SpotDiscount float64            // of Spot on the on-demand price, from 0 to 1
	Prices       map[string]float64 // dollars per hour by instance type, beside the embedded ones
	// Missing is the request that is assumed for containers without a request
	// and a limit of the resource.
	Missing corev1.ResourceList
	Now     time.Time
	// Place makes the plan.
	Place func(*model.Snapshot, model.Policy) *model.Plan
}

// Report is the comparison. Dollars are per hour.
type Report struct {
	Provider    string  `json:"provider"` // aws, or that of the nodes' provider IDs
	Region      string  `json:"region,omitempty"`
	PriceRegion string  `json:"priceRegion"`
	PriceDate   string  `json:"priceDate"`
	Discount    float64 `json:"assumedSpotDiscount"`
	// Missing is what a container without a request is counted as.
	Missing   corev1.ResourceList `json:"assumedRequests,omitempty"`
	Now       Current             `json:"now"`
	Plans     []Plan              `json:"plans"`
	Obstacles []Remark            `json:"obstacles"`
	Notes     []string            `json:"notes,omitempty"`
}

// Current is the cluster as it is.
type Current struct {
	Nodes     int            `json:"nodes"`
	Spot      int            `json:"spotNodes"`
	Pods      int            `json:"pods"` // without those of DaemonSets and the nodes' own
	Cost      float64        `json:"costPerHour"`
	Types     map[string]int `json:"instanceTypes"`
	Unpriced  map[string]int `json:"unpricedInstanceTypes,omitempty"` // not in Cost
	CPU       float64        `json:"cpuRequested"`                    // share of allocatable that pods request
	Memory    float64        `json:"memoryRequested"`
	NodeGroup int            `json:"groups"` // nodes that differ in taints, or in labels that pods select
}

// Plan is what the same pods cost planned from scratch.
type Plan struct {
	Name     string  `json:"name"`
	Nodes    int     `json:"nodes"`
	Cost     float64 `json:"costPerHour"`
	Bound    float64 `json:"boundPerHour"`       // no plan costs less
	Unplaced int     `json:"unplaced,omitempty"` // pods without a place; not in Cost and Bound
	Buy      []Buy   `json:"launch"`

	without []string // examples of Unplaced
}

// Buy is instances of one offering.
type Buy struct {
	Count        int     `json:"count"`
	InstanceType string  `json:"instanceType"`
	CapacityType string  `json:"capacityType"`
	Cost         float64 `json:"costPerHour"` // of all
}

// Remark is something that stands in the way of the saving.
type Remark struct {
	What string   `json:"what"`
	Pods int      `json:"pods,omitempty"`
	Such []string `json:"such"`
	Do   string   `json:"do"`
}

// kind is what a plan may use.
type kind struct {
	name      string
	spot, arm bool
}

func kinds() []kind {
	return []kind{{"on demand", false, false}, {"with Spot", true, false}, {"with Spot and Arm", true, true}}
}

// Of compares.
func Of(c *Cluster, o Options) (Report, error) {
	r := Report{Discount: o.SpotDiscount, Missing: o.Missing, Obstacles: []Remark{}, Plans: []Plan{}}
	const want = "want what kubectl get nodes,pods,daemonsets,pdb,namespaces -A -o json prints"
	switch {
	case len(c.Nodes) == 0 && len(c.Pods) == 0:
		return r, errors.New("found no nodes and no pods: " + want)
	case len(c.Nodes) == 0:
		return r, fmt.Errorf("found %s and no nodes: %s", counted(len(c.Pods), "pod"), want)
	case len(c.Pods) == 0:
		return r, fmt.Errorf("found %s and no pods: %s, with rights to list the pods of all namespaces", counted(len(c.Nodes), "node"), want)
	}
	on, nodes := r.nodes(c)
	daemons := c.daemonSets(on)
	if len(nodes) == 0 {
		return r, fmt.Errorf("want at least one worker node with Linux; %s", strings.Join(r.Notes, "; "))
	}
	r.Region = cmp.Or(o.Region, regionOf(nodes))
	catalogueOf := newCatalogue
	if r.Provider == "azure" {
		catalogueOf = newAzureCatalogue
	}
	prices, err := catalogueOf(r.Region, o.Prices)
	if err != nil {
		return r, err
	}
	r.PriceDate = prices.date
	if prices.sells(nodes) {
		r.PriceRegion = prices.region
	}
	r.current(nodes, prices)
	here := running(c.Pods, on)
	r.Now.Pods = len(here)
	r.requested(c.Pods, on, nodes)
	labels := v1.DefaultLabels().With(awsv1.Labels()).With(azurev1beta1.Labels())
	groups := pools(nodes, selected(c.Pods, labels))
	r.Now.NodeGroup = len(groups)
	entries := prices.offer(nodes, zonesOf(nodes), o.SpotDiscount)
	if len(entries) == 0 {
		return r, r.priceless()
	}
	offered, axis, err := typesOf(entries)
	if err != nil {
		return r, err
	}
	for _, k := range kinds() {
		if k.arm && !slices.ContainsFunc(entries, func(e kwok.Entry) bool { return e.Architecture == v1.ArchitectureArm64 }) {
			continue
		}
		plan, err := planned(c, k, here, daemons, groups, offered, axis, labels, o)
		if err != nil {
			return r, err
		}
		if k.arm {
			plan = plan.orLess(r.Plans[len(r.Plans)-1])
		}
		r.Plans = append(r.Plans, plan)
	}
	r.obstacles(c, here, groups)
	r.idle(nodes, here)
	r.astray(c)
	r.regions(nodes)
	r.remarks(prices, here, o)
	return r, nil
}

// priceless is the error for a cluster of which no price is known.
func (r *Report) priceless() error {
	where := "prices come with the program for instance types of AWS and VM sizes of Azure only"
	if r.Provider != "" && r.Provider != "aws" {
		where += fmt.Sprintf(", and these nodes are of %q", r.Provider)
	}
	flags := ""
	for _, t := range slices.Sorted(maps.Keys(r.Now.Unpriced)) {
		flags += fmt.Sprintf(" --price %s=DOLLARS", t)
	}
	return fmt.Errorf("no price is known of the %s: %s. Give the dollars per hour of each instance type on demand: karpenter savings%s", counted(r.Now.Nodes, "node"), where, flags)
}

// nodes returns the nodes of the comparison, and notes the others.
func (r *Report) nodes(c *Cluster) (map[string]*node, []*node) {
	on, out, left := map[string]*node{}, []*node{}, map[string]int{}
	for _, n := range c.Nodes {
		m := newNode(n)
		provider, _, _ := strings.Cut(n.Spec.ProviderID, "://")
		r.Provider = cmp.Or(r.Provider, provider)
		if why := m.leftOut(); why != "" {
			left[why]++
			continue
		}
		on[n.Name], out = m, append(out, m)
	}
	for _, why := range slices.Sorted(maps.Keys(left)) {
		r.Notes = append(r.Notes, fmt.Sprintf("not compared: %s %s, with the pods there", counted(left[why], "node"), why))
	}
	return on, out
}

func regionOf(nodes []*node) string {
	for _, n := range nodes {
		if region := cmp.Or(n.Labels[corev1.LabelTopologyRegion], n.Labels[corev1.LabelFailureDomainBetaRegion]); region != "" {
			return region
		}
	}
	return ""
}

func zonesOf(nodes []*node) []string {
	zones := map[string]bool{}
	for _, n := range nodes {
		if n.zone != "" {
			zones[n.zone] = true
		}
	}
	if len(zones) == 0 {
		zones["zone"] = true
	}
	return slices.Sorted(maps.Keys(zones))
}

// current says what the nodes cost.
func (r *Report) current(nodes []*node, prices *catalogue) {
	r.Now.Types, r.Now.Nodes = map[string]int{}, len(nodes)
	for _, n := range nodes {
		n.gpu, n.accelerator = prices.devices(n.instanceType)
		if n.price, n.priced = prices.onDemand[n.instanceType]; !n.priced {
			if r.Now.Unpriced == nil {
				r.Now.Unpriced = map[string]int{}
			}
			r.Now.Unpriced[n.instanceType]++
		}
		if n.spot {
			r.Now.Spot++
			n.price *= 1 - r.Discount
		}
		r.Now.Types[n.instanceType]++
		r.Now.Cost += n.price
	}
}

// requested says which share of the nodes pods request.
func (r *Report) requested(all []*corev1.Pod, on map[string]*node, nodes []*node) {
	var asked, has [2]float64
	for _, n := range nodes {
		has[0] += n.Status.Allocatable.Cpu().AsApproximateFloat64()
		has[1] += n.Status.Allocatable.Memory().AsApproximateFloat64()
	}
	for _, p := range all {
		if on[p.Spec.NodeName] == nil || p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed {
			continue
		}
		for i := range p.Spec.Containers {
			asked[0] += p.Spec.Containers[i].Resources.Requests.Cpu().AsApproximateFloat64()
			asked[1] += p.Spec.Containers[i].Resources.Requests.Memory().AsApproximateFloat64()
		}
	}
	if has[0] > 0 && has[1] > 0 {
		r.Now.CPU, r.Now.Memory = asked[0]/has[0], asked[1]/has[1]
	}
}

func typesOf(entries []kwok.Entry) ([]*model.InstanceType, *model.Axis, error) {
	c, err := kwok.NewCatalogue(entries)
	if err != nil {
		return nil, nil, fmt.Errorf("instance types: %w", err)
	}
	axis := model.NewAxis()
	return cloud.Types(axis, c.Types()), axis, nil
}

// planned plans the pods from scratch.
func planned(c *Cluster, k kind, here []placed, daemons []*appsv1.DaemonSet, groups []pool, types []*model.InstanceType, axis *model.Axis, labels v1.Labels, o Options) (Plan, error) {
	shown := &model.Snapshot{Resources: axis.Names()}
	for _, g := range groups {
		shown.Pools = append(shown.Pools, model.Pool{Name: g.name, Types: types})
	}
	published := situation.Published{
		Rules:     situation.Rules{NodeClasses: []schema.GroupKind{classKind}, Labels: labels},
		Offerings: scenario.Situation{Snapshot: shown, Policy: model.DefaultPolicy()},
	}
	s, err := situation.Build(published, o.Now, func(of client.Object) ([]client.Object, error) {
		var out []client.Object
		switch of.(type) {
		case *v1.NodePool:
			for _, g := range groups {
				out = append(out, g.object(k))
			}
		case *corev1.Pod:
			for _, p := range here {
				pod := p.waiting(k)
				assume(pod, o.Missing)
				out = append(out, pod)
			}
		case *corev1.Namespace:
			for _, n := range c.Namespaces {
				out = append(out, n)
			}
		case *appsv1.DaemonSet:
			for _, d := range daemons {
				out = append(out, d)
			}
		}
		return out, nil
	})
	if err != nil {
		return Plan{}, err
	}
	return read(k.name, o.Place(s.Snapshot, s.Policy)), nil
}

// orLess returns what the other plan launches if that costs less. The other plan
// must be one that this plan's choice of instances allows, too.
func (p Plan) orLess(other Plan) Plan {
	if other.Cost < p.Cost && other.Unplaced <= p.Unplaced {
		other.Name, other.Bound = p.Name, min(p.Bound, other.Bound)
		return other
	}
	return p
}

// read describes what the plan launches.
func read(name string, p *model.Plan) Plan {
	out := Plan{Name: name, Nodes: len(p.Launches), Cost: p.Cost.Dollars(), Bound: p.Bound.Dollars(), Buy: []Buy{}}
	for i := range p.Verdicts {
		out.Unplaced += len(p.Verdicts[i].Pods)
		for _, pod := range p.Verdicts[i].Pods[:min(len(p.Verdicts[i].Pods), mostNames-len(out.without))] {
			out.without = append(out.without, pod.Key())
		}
	}
	type offering struct{ instanceType, capacityType string }
	all := map[offering]*Buy{}
	for _, l := range p.Launches {
		at := offering{l.Type, l.CapacityType}
		if all[at] == nil {
			all[at] = &Buy{InstanceType: l.Type, CapacityType: l.CapacityType}
		}
		all[at].Count++
		all[at].Cost += l.Price.Dollars()
	}
	for _, b := range all {
		out.Buy = append(out.Buy, *b)
	}
	slices.SortFunc(out.Buy, func(a, b Buy) int {
		return cmp.Or(cmp.Compare(b.Cost, a.Cost), cmp.Compare(a.InstanceType, b.InstanceType), cmp.Compare(a.CapacityType, b.CapacityType))
	})
	return out
}
