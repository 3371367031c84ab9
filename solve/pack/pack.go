package pack

import (
	"cmp"
	"slices"

	"karpenter/model"
	"karpenter/solve/fit"
	"karpenter/solve/topology"
	"karpenter/solve/work"
)

// Packer places the pending pods of one Snapshot.
type Packer struct {
	snapshot  *model.Snapshot
	policy    model.Policy
	memory    *fit.Memory
	catalogue *fit.Catalogue
	topology  *topology.State
	nodes     []fit.NodeRow
	limits    *limits
	tierOf    []int // by pool: position of its tier
	demands   []*demand
	classes   []fit.Bits // the sets of offers that demands may use
	wanted    []int      // positions of the resources anybody requests
	exemplars []*demand  // one of each class
	picky     []bool     // pools that leave a label open which some demand asks about
	groups    []group    // demands that share a bound on one new node
	bins      []bin
	placed    []placement

	floors    [][]floor // by pool
	relaxing  bool      // launches need not span what their pools demand now
	varieties map[string]*variety
	partial   bool             // the candidates of some pool with minValues are not all there are
	reserved  fit.Bits         // offers that take from reservations
	prepaid   map[string]int64 // how many nodes reservations still give
	initially map[string]int64 // and gave before the plan

	spelled   map[string]*spelling // by label, once somebody asked
	divided   map[string][]area    // what areas returned, by the keys asked for
	bundled   map[string][]tied    // by key of its first pod
	settledIn map[string]int       // positions of demands that settledAs returned
	learned   map[lesson]int       // pods that nodes could be bought for in a cell at most, or 1 for kinds that do not go together, as seen earlier
	wary      map[int]bool         // kinds that nodes bought for others stood in the way of, earlier

	freeAtStart []model.Resources   // of nodes, once what was planned before is on them
	worth       map[*demand]float64 // of one pod, as the bound proves it
	budget      *work.Budget
	softened    bool                    // demands put up with soft taints that they could have avoided
	granted     map[int]topology.Wishes // preferences that are rules in this plan
	kept        []placement             // what was planned before stays there; nil = that is to be seen
	keptNow     []placement             // what was planned before and stays there
	bare        *bare                   // nil = a plan is wanted, with proof and reasons
	final       bool                    // pods that were left are being put wherever there is room: the rules kept are stricter than what the bound knows
}

// demand is what is left of the pods of one kind, or of those of them that
// rules between pods tie to one domain.
type demand struct {
	*fit.Demand
	kind   int  // index in Snapshot.Pending
	index  int  // in Packer.demands
	class  int  // index in Packer.classes
	firm   bool // some pool suits it without putting up with a soft taint
	left   []model.Pod
	loose  int     // pods that no earlier plan had settled
	value  float64 // what one pod was worth where nodes were bought for it
	valued bool    // nodes were looked for

	most  int      // pods of it one new node takes at most; 0 = no bound
	apart fit.Bits // demands it shares no new node with; nil = none

	stuck []model.Pod // that rules between pods leave no place
	whole *demand     // of which it is the part tied to cell; nil = it is no part
	cell  *cell
	short int // pods of the part that no node was bought for

	bundle []member // what each of its pods stands for; nil = itself
}

// group is demands of which one new node takes at most limit pods together.
type group struct {
	limit   int
	members fit.Bits // over demands
}

// bin is a number of equal new nodes.
type bin struct {
	offer    int
	count    int
	take     []portion
	capacity model.Resources // of one node, as reserved in the pool's limits
}

// portion is how many pods of a demand one node takes.
type portion struct {
	demand int
	pods   int
	chosen []model.Pod // the pods of all nodes of the bin; set when it is committed
}

// New prepares to place the pending pods of s within the budget. What it compiles
// it leaves in m.
// Shapes that use something no plan can honour yet are left out; see Decide's
// verdicts.
func New(s *model.Snapshot, p model.Policy, m *fit.Memory, budget *work.Budget) *Packer {
	p.MaxTypes = max(p.MaxTypes, 1)
	k := &Packer{snapshot: s, policy: p, memory: m, learned: map[lesson]int{}, wary: map[int]bool{}, budget: budget}
	return k.again()
}

// again returns a Packer that starts anew with what k has learned.
func (k *Packer) again() *Packer {
	s, p, m := k.snapshot, k.policy, k.memory
	k = &Packer{
		snapshot: s, policy: p, memory: m, catalogue: m.Catalogue(s), nodes: m.Nodes(s), topology: topology.New(s, k.granted),
		spelled: map[string]*spelling{}, divided: map[string][]area{}, bundled: map[string][]tied{}, settledIn: map[string]int{}, varieties: map[string]*variety{},
		learned: k.learned, wary: k.wary, kept: k.kept, granted: k.granted, bare: k.bare, budget: k.budget,
	}
	k.budget.Spend(len(s.Nodes)*(16+len(s.Pending)) + len(s.Pending)*len(k.catalogue.Types))
	k.limits = newLimits(k.catalogue)
	for i := range k.catalogue.Pools {
		k.floors = append(k.floors, floorsOf(k.catalogue.Pools[i].Pool))
	}
	k.countReservations()
	position := 0
	for tier := range k.tiers() {
		for range tier.To - tier.From {
			k.tierOf = append(k.tierOf, position)
		}
		position++
	}
	for kind, pending := range s.Pending {
		if len(pending.Shape.Refused) == 0 && len(pending.Pods) > 0 {
			k.demands = append(k.demands, &demand{kind: kind, Demand: k.compile(pending), left: slices.Clone(pending.Pods)})
		}
	}
	for _, d := range k.demands {
		d.firm = k.catalogue.Fits(d.Demand, fit.Range{To: len(k.catalogue.Offers)})
	}
	slices.SortStableFunc(k.demands, hardestFirst)
	k.survey()
	return k
}

// compile finds where new nodes for the pods can be bought: not where daemons
// take the ports they need, and not where a launch could not span what its pool
// demands.
func (k *Packer) compile(p model.Pending) *fit.Demand {
	d := k.catalogue.NewDemand(p)
	if ports := p.Shape.HostPorts; len(ports) > 0 {
		d = k.catalogue.Except(d, k.catalogue.Taken(ports, k.snapshot.Daemons))
	}
	return k.spanning(d)
}

// survey sets what is derived from the demands as a whole.
func (k *Packer) survey() {
	k.classes, k.wanted, k.picky, k.exemplars = nil, nil, nil, nil
	for i, d := range k.demands {
		d.index = i
		d.class = k.classOf(d)
		for r, v := range d.Shape.Requests {
			if v > 0 && !slices.Contains(k.wanted, r) {
				k.wanted = append(k.wanted, r)
			}
		}
	}
	for pool := range k.catalogue.Pools {
		k.picky = append(k.picky, slices.ContainsFunc(k.demands, func(d *demand) bool { return k.catalogue.Asks(pool, d.Shape) }))
	}
	k.separate()
}

// classOf returns the class of d, which may be a new one. Demands of a class may
// use the same offers, and where minValues ask about it for the same reasons.
func (k *Packer) classOf(d *demand) int {
	demanding := k.demanding(fit.Range{To: len(k.floors)})
	i := slices.IndexFunc(k.exemplars, func(o *demand) bool {
		return slices.Equal(o.Offers, d.Offers) && (!demanding || o.Constraints() == d.Constraints())
	})
	if i < 0 {
		i, k.classes, k.exemplars = len(k.classes), append(k.classes, d.Offers), append(k.exemplars, d)
	}
	return i
}

// hardestFirst orders demands by priority, then by size as kube-scheduler's
// users expect: cpu, memory, age.
func hardestFirst(a, b *demand) int {
	return cmp.Or(
		cmp.Compare(b.Shape.Priority, a.Shape.Priority),
		cmp.Compare(b.Shape.Requests.At(model.CPU), a.Shape.Requests.At(model.CPU)),
		cmp.Compare(b.Shape.Requests.At(model.Memory), a.Shape.Requests.At(model.Memory)),
		a.Pods[0].Created.Compare(b.Pods[0].Created),
		cmp.Compare(a.Shape.Key, b.Shape.Key),
		cmp.Compare(a.Pods[0].Key(), b.Pods[0].Key()),
	)
}

// attempts is how often a plan is made anew because fewer nodes could be
// bought in some domain than pods were settled for it.
const attempts = 4

// Run places what it can and adds the outcome to plan.
func (k *Packer) Run(plan *model.Plan) {
	out := k.best()
	plan.Placements = append(plan.Placements, out.plan.Placements...)
	plan.Launches = append(plan.Launches, out.plan.Launches...)
	plan.Verdicts = append(plan.Verdicts, out.plan.Verdicts...)
	plan.Cost, plan.Bound = plan.Cost+out.plan.Cost, plan.Bound+out.plan.Bound
}

// best places what it can, as the policy has it for preferences.
func (k *Packer) best() *outcome {
	ignoring := k.outcome()
	best := ignoring
	if !k.policy.IgnorePreferences && !k.dear() {
		best = k.honour(ignoring)
	}
	if k.bare == nil {
		best.plan.Bound = k.bound(best.by.granted)
	}
	return best
}

// outcome places what it can, preferences not asked.
func (k *Packer) outcome() *outcome {
	for tried := 1; k.attempt() && tried < attempts; tried++ {
		*k = *k.again()
	}
	if !k.dear() {
		k.finish()
	}
	out := &outcome{by: k, plan: &model.Plan{}, kept: k.keptNow, left: make([][]model.Pod, len(k.snapshot.Pending))}
	plan := out.plan
	for _, d := range k.demands {
		d.left, d.stuck = append(d.left, d.stuck...), nil
		if d.whole == nil {
			out.left[d.kind] = d.left
		}
	}
	for _, p := range k.placed {
		plan.Placements = append(plan.Placements, model.Placement{Pod: p.pod, Node: k.snapshot.Nodes[p.site].Name})
	}
	k.render(plan)
	k.unbundle(plan)
	for _, d := range k.demands {
		if len(d.left) > 0 {
			plan.Verdicts = append(plan.Verdicts, k.verdict(d))
			out.kinds = append(out.kinds, d.kind)
		}
	}
	return out
}

// attempt places what it can. Taints that only prefer to be avoided are
// avoided first, and put up with by what is left. It reports whether it
// learned that less can be bought in some domain than it had settled for.
func (k *Packer) attempt() bool {
	k.keepPlanned()
	k.keptNow = slices.Clone(k.placed)
	for _, n := range k.nodes {
		k.freeAtStart = append(k.freeAtStart, n.Free)
	}
	for _, d := range k.demands {
		d.loose = len(d.left)
	}
	k.useExisting()
	if k.soften(func(d *demand) bool { return !d.firm }) { // nothing could be bought for them as they are
		k.useExisting()
	}
	if k.tooDear() {
		if k.soften(func(*demand) bool { return true }) {
			k.softened = true
			k.useExisting()
		}
		if k.tooDear() {
			return false
		}
	}
	k.buyAll()
	if k.dear() {
		return false
	}
	k.takeBack()
	if k.soften(func(*demand) bool { return true }) {
		k.softened = true
		k.everywhere()
		k.takeBack()
	}
	news := k.learn()
	return k.verify() || news
}

// everywhere tries the nodes there are, then new ones.
func (k *Packer) everywhere() {
	k.useExisting()
	k.buyAll()
}

// buyAll buys new nodes, of the heaviest pools first.
func (k *Packer) buyAll() {
	k.survey()
	for tier := range k.tiers() {
		if k.buy(tier); k.dear() {
			return
		}
		if k.policy.RelaxMinValues && k.demanding(tier) {
			k.relaxing = true
			k.buy(tier)
			k.relaxing = false
		}
	}
}

// soften lets those of the demands that have pods left tolerate
// PreferNoSchedule. It reports whether that may help.
func (k *Packer) soften(which func(*demand) bool) bool {
	softened := false
	for _, d := range k.demands {
		if len(d.left)+len(d.stuck) == 0 || !k.avoids(d.Shape) || !which(d) {
			continue
		}
		d.Demand = k.compile(model.Pending{Shape: Soft(d.Shape), Pods: d.Pods})
		softened = true
	}
	if softened {
		k.survey()
	}
	return softened
}

// Soft returns the shape with tolerance for every PreferNoSchedule taint.
func Soft(s *model.Shape) *model.Shape {
	out := *s
	out.Tolerations = append(slices.Clone(s.Tolerations), model.Toleration{Exists: true, Effect: model.PreferNoSchedule})
	return &out
}

// avoids reports whether a soft taint keeps the shape from some pool or node.
func (k *Packer) avoids(s *model.Shape) bool {
	soft := func(taints []model.Taint) bool {
		t, bad := model.Untolerated(taints, s.Tolerations)
		return bad && t.Effect == model.PreferNoSchedule
	}
	return slices.ContainsFunc(k.catalogue.Pools, func(p fit.Pool) bool { return soft(p.Taints) }) ||
		slices.ContainsFunc(k.nodes, func(n fit.NodeRow) bool { return soft(n.Taints) })
}

// tiers yields the runs of pools with equal weight, heaviest first.
func (k *Packer) tiers() func(yield func(fit.Range) bool) {
	return func(yield func(fit.Range) bool) {
		pools := k.catalogue.Pools
		for from := 0; from < len(pools); {
			to := from + 1
			for to < len(pools) && pools[to].Weight == pools[from].Weight {
				to++
			}
			if !yield(fit.Range{From: from, To: to}) {
				return
			}
			from = to
		}
	}
}
