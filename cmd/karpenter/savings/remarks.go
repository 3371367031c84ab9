// SPDX-License-Identifier: Apache-2.0

package savings

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "karpenter/api/v1"
	"karpenter/kube/pods"
)

// mostNames is how many examples a remark has.
const mostNames = 3

// obstacles finds what keeps pods from moving, or the plan from being cheaper.
func (r *Report) obstacles(c *Cluster, here []placed, groups []pool) {
	r.blockedBudgets(c.Budgets)
	unsized := struct{ what, do string }{
		"without CPU or memory requests, which the plan counts as nothing",
		"Set requests, or try --assume-requests cpu=100m,memory=128Mi; the figures are too low until then",
	}
	if len(r.Missing) > 0 {
		unsized.what = "without CPU or memory requests, counted as " + sizes(r.Missing) + " per container"
		unsized.do = "Set requests; the scheduler counts these pods as nothing, and so would Karpenter"
	}
	for _, o := range []struct {
		what, do string
		is       func(placed) bool
	}{
		{"with an annotation against eviction", "Remove karpenter.sh/do-not-disrupt or safe-to-evict=false where a restart does no harm",
			placed.protected},
		{"without a controller", "Nothing recreates them after an eviction; own them by a Deployment or Job",
			func(p placed) bool { return metav1.GetControllerOf(p.Pod) == nil }},
		{"with persistent volumes, which stay in their zone and on demand", "Nothing to do; they bound what zones can save",
			placed.volumes},
		{unsized.what, unsized.do,
			func(p placed) bool { return !p.requests() }},
		{"with a node selector for a capacity type, an instance type or a zone", "Drop the selector where it is habit",
			func(p placed) bool { return pinned(p.Pod) }},
	} {
		n, such := 0, []string{}
		for _, p := range here {
			if o.is(p) {
				n++
				if len(such) < mostNames {
					such = append(such, p.Namespace+"/"+p.Name)
				}
			}
		}
		if n > 0 {
			r.Obstacles = append(r.Obstacles, Remark{What: counted(n, "pod") + " " + o.what, Pods: n, Such: such, Do: o.do})
		}
	}
	if len(groups) > 1 {
		var such []string
		for _, g := range groups[:min(len(groups), mostNames)] {
			such = append(such, g.String())
		}
		r.Obstacles = append(r.Obstacles, Remark{
			What: fmt.Sprintf("%d groups of nodes that pods tell apart by labels or taints", len(groups)), Such: such,
			Do: "Merge groups that differ for no reason; each one rounds up to whole nodes",
		})
	}
	r.unplaced()
}

// unplaced names the pods for which the last plan, which may use most, has no place.
func (r *Report) unplaced() {
	last := r.Plans[len(r.Plans)-1]
	if last.Unplaced == 0 {
		return
	}
	r.Obstacles = append(r.Obstacles, Remark{
		What: fmt.Sprintf("%s that no plan has a place for", counted(last.Unplaced, "pod")), Pods: last.Unplaced, Such: last.without,
		Do: "Compare the node selector, affinity and tolerations with the labels and taints of the nodes; the plans are without these pods",
	})
}

// astray notes the pods that run nowhere, or on nodes that are not there.
func (r *Report) astray(c *Cluster) {
	there := map[string]bool{}
	for _, n := range c.Nodes {
		there[n.Name] = true
	}
	waiting, lost := 0, 0
	for _, p := range c.Pods {
		switch {
		case pods.Terminal(p) || pods.Terminating(p):
		case p.Spec.NodeName == "":
			waiting++
		case !there[p.Spec.NodeName]:
			lost++
		}
	}
	if waiting > 0 {
		r.Notes = append(r.Notes, counted(waiting, "pod")+" without a node, not counted")
	}
	if lost > 0 {
		r.Notes = append(r.Notes, counted(lost, "pod")+" on nodes that do not exist, not counted")
	}
}

// idle notes the nodes without pods that the plans place, since those may wait for work.
func (r *Report) idle(nodes []*node, here []placed) {
	busy, types, n := map[string]bool{}, map[string]int{}, 0
	for _, p := range here {
		busy[p.Spec.NodeName] = true
	}
	for _, node := range nodes {
		if !busy[node.Name] {
			types[node.instanceType]++
			n++
		}
	}
	if n > 0 {
		r.Notes = append(r.Notes, fmt.Sprintf("%s without pods other than those of DaemonSets (%s): the plans launch nothing in their place", counted(n, "node"), some(types)))
	}
}

// sizes writes the requests in words: 100m CPU and 128Mi memory.
func sizes(of corev1.ResourceList) string {
	var out []string
	for _, s := range []struct {
		name corev1.ResourceName
		word string
	}{{corev1.ResourceCPU, "CPU"}, {corev1.ResourceMemory, "memory"}} {
		if q, ok := of[s.name]; ok {
			out = append(out, q.String()+" "+s.word)
		}
	}
	return strings.Join(out, " and ")
}

// regions notes that nodes are in several regions, since prices are of one.
func (r *Report) regions(nodes []*node) {
	found := map[string]bool{}
	for _, n := range nodes {
		if region := regionOf([]*node{n}); region != "" {
			found[region] = true
		}
	}
	if len(found) > 1 {
		r.Notes = append(r.Notes, fmt.Sprintf("the nodes are in %d regions (%s); all are priced as in %s", len(found), strings.Join(slices.Sorted(maps.Keys(found)), ", "), r.Region))
	}
}

func (r *Report) blockedBudgets(all []*policyv1.PodDisruptionBudget) {
	such, n := []string{}, 0
	for _, b := range all {
		if b.Status.ExpectedPods > 0 && b.Status.DisruptionsAllowed == 0 {
			if n++; len(such) < mostNames {
				such = append(such, b.Namespace+"/"+b.Name)
			}
		}
	}
	if n > 0 {
		r.Obstacles = append(r.Obstacles, Remark{
			What: fmt.Sprintf("%s without an allowed disruption", counted(n, "PodDisruptionBudget")), Such: such,
			Do: "Allow one, or run one replica more; nothing can drain a node of their pods",
		})
	}
}

// pinned reports whether the pod demands a capacity type, an instance type or a
// zone by its node selector.
func pinned(p *corev1.Pod) bool {
	for _, key := range []string{v1.CapacityTypeLabelKey, groupCapacity, corev1.LabelInstanceTypeStable, corev1.LabelInstanceType, corev1.LabelTopologyZone} {
		if _, ok := p.Spec.NodeSelector[key]; ok {
			return true
		}
	}
	return false
}

func (p pool) String() string {
	var out []string
	if p.origin != "" {
		out = append(out, "NodePool "+p.origin)
	}
	for _, key := range slices.Sorted(maps.Keys(p.labels)) {
		out = append(out, key+"="+p.labels[key])
	}
	for _, t := range p.taints {
		out = append(out, "taint "+t.ToString())
	}
	if len(out) == 0 {
		return "the others"
	}
	return strings.Join(out, " ")
}

// listOf says whose prices those on demand are.
func (r Report) listOf() string {
	if r.PriceRegion == "" {
		return "on-demand prices as given with --price"
	}
	return fmt.Sprintf("on-demand prices of %s on %s, Linux", r.PriceRegion, r.PriceDate)
}

// remarks says what the figures assume.
func (r *Report) remarks(prices *catalogue, here []placed, o Options) {
	stay := 0
	for _, p := range here {
		if !p.mayUseSpot() && !p.volumes() && !p.protected() { // those are obstacles
			stay++
		}
	}
	if stay > 0 {
		r.Notes = append(r.Notes, fmt.Sprintf("%s on demand in every plan: only pods of Deployments and Jobs are moved to Spot", counted(stay, "pod")))
	}
	if r.PriceRegion != "" && r.Region != "" && r.Region != prices.region {
		r.Notes = append(r.Notes, fmt.Sprintf("prices of %s are not embedded; those of %s stand in for them, so read the shares rather than the dollars", r.Region, prices.region))
	}
	if len(r.Now.Unpriced) > 0 {
		n := 0
		for _, count := range r.Now.Unpriced {
			n += count
		}
		r.Notes = append(r.Notes, fmt.Sprintf("%s of unknown price (%s) not in the cost: give it with --price TYPE=DOLLARS",
			counted(n, "node"), strings.Join(slices.Sorted(maps.Keys(r.Now.Unpriced)), ", ")))
	}
	r.Notes = append(r.Notes,
		fmt.Sprintf("Spot is assumed to cost %.0f%% less than on demand: change it with --spot-discount", 100*o.SpotDiscount),
		"discounts of your contract, volumes and traffic are not in any figure")
	if slices.ContainsFunc(r.Plans, func(p Plan) bool { return strings.HasSuffix(p.Name, "Arm") }) {
		r.Notes = append(r.Notes, "Arm assumes images for arm64")
	}
}

func counted(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
