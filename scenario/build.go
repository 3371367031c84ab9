// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"karpenter/model"
)

// DefaultNow is the time of a situation whose decide line does not say.
func DefaultNow() time.Time { return time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC) }

// defaultWellKnown are the well-known labels of core Karpenter.
func defaultWellKnown() []string {
	return []string{model.LabelZone, model.LabelRegion, model.LabelInstanceType, model.LabelArch, model.LabelOS,
		model.LabelCapacityType, model.LabelNodePool, "node.kubernetes.io/windows-build"}
}

// builder makes a situation of directives.
type builder struct {
	axis
	s        *model.Snapshot
	policy   model.Policy
	kinds    map[string]*model.DeviceKind
	types    []*typeDef
	byRef    map[string][]*model.InstanceType // of the first referred types
	referred int
	pools    []poolSaid               // by pool
	nodes    []said                   // by node
	byName   map[string]int           // index of a node
	shapes   map[string]*model.Shape  // by key
	labels   map[string][]model.Label // by text of them and of those of the namespace
	pending  map[string]int           // by node, shape and peer
	current  *group                   // what a pod line adds to; nil = nothing
	asked    bool                     // some selector looks at pods, so that namespaces matter
	budget   int                      // pods that may still be named
}

func (p *reader) build() (Situation, error) {
	b := &builder{
		axis:    axis{model.NewAxis()},
		s:       &model.Snapshot{Now: DefaultNow(), WellKnown: model.NewLabelSet(defaultWellKnown()...)},
		policy:  model.DefaultPolicy(),
		kinds:   map[string]*model.DeviceKind{},
		shapes:  map[string]*model.Shape{},
		labels:  map[string][]model.Label{},
		pending: map[string]int{},
		byName:  map[string]int{},
		budget:  maxPods,
	}
	phases := []map[string]func(*directive) error{
		{"resources": b.resources, "well-known": b.wellKnown, "decide": b.decide, "intent": b.intent, "group": b.podGroup, "kind": b.kind, "selector": b.selector},
		{"type": b.instanceType, "devices": b.published},
		{"offer": b.offer},
		{"pool": b.pool},
		{"node": b.node},
		{"daemonset": b.daemonset},
		{"pods": b.pods, "pod": b.pod},
	}
	b.asked = slices.ContainsFunc(p.lines, (*directive).asks)
	for i, phase := range phases {
		for _, d := range p.lines {
			if build, ok := phase[d.word]; ok {
				if err := build(d); err != nil {
					return Situation{}, err
				}
			}
		}
		if i == 2 { // types are whole once their offers are known
			for _, t := range b.types {
				t.settle()
			}
		}
	}
	b.finish()
	return Situation{Snapshot: b.s, Policy: b.policy}, nil
}

// finish fills in what follows from other lines and sorts the nodes.
func (b *builder) finish() {
	b.close()
	for i := range b.s.Nodes {
		b.nodes[i].follow(&b.s.Nodes[i], b.asked)
	}
	for i := range b.s.Pools {
		b.pools[i].follow(b.s, &b.s.Pools[i])
	}
	slices.SortStableFunc(b.s.Nodes, func(x, y model.Node) int { return strings.Compare(x.Name, y.Name) })
	b.s.Resources = b.Names()
}

func (b *builder) resources(d *directive) error {
	for len(d.words) > 0 {
		b.Index(d.name("names"))
	}
	return d.done("names of extended resources, as in resources nvidia.com/gpu")
}

func (b *builder) wellKnown(d *directive) error {
	if d.flag("only") {
		b.s.WellKnown = model.LabelSet{}
	}
	for len(d.words) > 0 {
		b.s.WellKnown[d.name("labels")] = struct{}{}
	}
	return d.done("labels that join the well-known ones, or only and the whole set")
}

func (b *builder) decide(d *directive) error {
	b.s.Now = read(d, "now", b.s.Now, parseTime)
	b.policy.MaxTypes = read(d, "max-types", b.policy.MaxTypes, parseWhole)
	b.policy.Work = read(d, "work", b.policy.Work, parseWhole)
	b.policy.PreferencePremium = read(d, "premium", b.policy.PreferencePremium, parseReal)
	b.policy.PreferenceAllowance = read(d, "allowance", b.policy.PreferenceAllowance, ParsePrice)
	b.policy.MaxSpotPoolShare = read(d, "spot-pool-share", b.policy.MaxSpotPoolShare, parseReal)
	b.policy.NodeCountPremium = read(d, "fewer-nodes", b.policy.NodeCountPremium, parseReal)
	b.policy.IgnorePreferences = read(d, "preferences", b.policy.IgnorePreferences, choice("respect", "ignore"))
	b.policy.RelaxMinValues = read(d, "min-values", b.policy.RelaxMinValues, choice("strict", "best-effort"))
	b.policy.ReservedCapacity = read(d, "reservations", b.policy.ReservedCapacity, choice("ignore", "respect"))
	b.policy.Hysteresis = read(d, "hysteresis", b.policy.Hysteresis, parseReal)
	b.policy.Payback = read(d, "payback", b.policy.Payback, time.ParseDuration)
	b.policy.TerminateFirstDrift = b.policy.TerminateFirstDrift || d.flag("terminate-first-drift")
	b.policy.TerminateFirstRepair = b.policy.TerminateFirstRepair || d.flag("terminate-first-repair")
	b.policy.RebalancePremium = read(d, "rebalance", b.policy.RebalancePremium, pointer(parseReal))
	b.policy.SpotToSpot = read(d, "spot-to-spot", b.policy.SpotToSpot, choice("keep", "replace"))
	return d.done("now=2026-01-01T12:00:00Z max-types=600 work=200000 premium=0.05 allowance=0.05 spot-pool-share=0.5 fewer-nodes=0.01 preferences=respect or ignore, min-values=strict or best-effort, " +
		"reservations=respect or ignore, hysteresis=0.05 payback=8h rebalance=0.05 spot-to-spot=keep or replace, terminate-first-drift, terminate-first-repair")
}

// intent reads "intent Drifted n1 n2".
func (b *builder) intent(d *directive) error {
	reason, err := parseReason(d.name("a reason and NodeClaims, as in intent Drifted n1 n2"))
	d.fail(err)
	in := model.Intent{Reason: reason}
	for len(d.words) > 0 {
		in.Claims = append(in.Claims, d.name("NodeClaims"))
	}
	slices.Sort(in.Claims)
	b.s.Intents = append(b.s.Intents, in)
	return d.done("a reason and NodeClaims")
}

// choice reads one of two words; the second means true.
func choice(no, yes string) func(string) (bool, error) {
	return func(value string) (bool, error) {
		if value != no && value != yes {
			return false, fmt.Errorf("%q is neither %s nor %s", value, no, yes)
		}
		return value == yes, nil
	}
}

func (b *builder) pool(d *directive) error {
	p := model.Pool{
		Name:   d.name("the name of the pool"),
		Weight: read(d, "weight", 0, parseWhole32),
		Taints: read(d, "taints", nil, parseTaints),
		Limits: read(d, "limits", nil, b.entries),
	}
	p.Requirements = read(d, "requires", nil, parseRequirements).And(read(d, "labels", nil, parseRequirements)...)
	p.Disruption.Allowed = read(d, "budgets", nil, parseBudgets)
	p.Disruption.Halted, p.Disruption.Probing = d.text("halted", ""), d.flag("probing")
	p.Disruption.Policy = read(d, "policy", "", parsePolicy)
	p.Disruption.Never = read(d, "consolidate-after", false, onlyNever)
	p.Aims.Payback = read(d, "payback", nil, pointer(time.ParseDuration))
	p.Aims.Threshold = read(d, "threshold", nil, pointer(parseReal))
	says := b.static(d, &p)
	b.counts(d, &p, &says)
	p.Template = d.text("template", "")
	p.Unavailable = d.text("unavailable", unavailable(&p))
	if usage, set := d.take("usage"); set {
		var err error
		p.Usage, err = b.parse(nil, usage)
		d.fail(err)
		says.usage = true
	}
	p.Extras = read(d, "extras", nil, parseExtras)
	p.Aims.PreferencePremium = read(d, "premium", nil, pointer(parseReal))
	p.Aims.OnDemandShare = read(d, "on-demand-share", 0, parseReal)
	p.Aims.MaxSpotPoolShare = read(d, "spot-pool-share", nil, pointer(parseReal))
	p.Aims.PreferenceAllowance = read(d, "allowance", nil, pointer(ParsePrice))
	p.Types = b.poolTypes(d)
	for i, t := range p.Types {
		p.Types[i] = t.With(p.Extras)
	}
	if slices.ContainsFunc(b.s.Pools, func(o model.Pool) bool { return o.Name == p.Name }) {
		d.fail(fmt.Errorf("%s is described twice", p.Name))
	}
	b.s.Pools = append(b.s.Pools, p)
	b.pools = append(b.pools, says)
	return d.done("weight= limits= usage= taints= labels= requires= types= extras= premium= allowance= on-demand-share= spot-pool-share= budgets= halted= probing policy= consolidate-after=Never payback= threshold= static= unavailable= template= counted= consuming=")
}

// pointer has a value that is written differ from one that is not.
func pointer[T any](parse func(string) (T, error)) func(string) (*T, error) {
	return func(value string) (*T, error) {
		v, err := parse(value)
		return &v, err
	}
}

// poolTypes reads types=m.*,c.large; without it a pool has all types there are.
func (b *builder) poolTypes(d *directive) []*model.InstanceType {
	value, ok := d.take("types")
	if !ok {
		return b.allTypes()
	}
	parts, err := list(value)
	d.fail(err)
	var out []*model.InstanceType
	for _, part := range parts {
		if len(part) != 1 || part[0].sign != 0 {
			d.fail(fmt.Errorf("types=: invalid name %q; write a list like m.large,c.*", show(part)))
			continue
		}
		found := b.match(part[0])
		if len(found) == 0 {
			d.fail(fmt.Errorf("types=: there is no type %s; describe it on a line of its own: type %[1]s cpu=2 mem=8Gi zones=a spot=0.03", part[0].text))
		}
		out = append(out, found...)
	}
	return out
}

func (b *builder) allTypes() []*model.InstanceType {
	var out []*model.InstanceType
	for _, t := range b.types {
		out = append(out, &t.InstanceType)
	}
	return out
}

// match returns the types whose reference is a, or matches it as a pattern
// with stars, in the order described.
func (b *builder) match(a atom) []*model.InstanceType {
	if a.literal || !strings.ContainsAny(a.text, `*?[\`) {
		return b.named(a.text)
	}
	var out []*model.InstanceType
	for _, t := range b.types {
		if ok, err := path.Match(a.text, t.ref); t.ref == a.text || ok && err == nil {
			out = append(out, &t.InstanceType)
		}
	}
	return out
}

// named returns the types with the reference. Pools of a cluster name a thousand
// each, so they are looked up.
func (b *builder) named(ref string) []*model.InstanceType {
	if b.byRef == nil {
		b.byRef = map[string][]*model.InstanceType{}
	}
	for _, t := range b.types[b.referred:] {
		b.byRef[t.ref] = append(b.byRef[t.ref], &t.InstanceType)
	}
	b.referred = len(b.types)
	return b.byRef[ref]
}
