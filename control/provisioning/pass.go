// SPDX-License-Identifier: Apache-2.0

package provisioning

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/log"

	v1 "karpenter/api/v1"
	"karpenter/kube/confirm"
	"karpenter/kube/events"
	"karpenter/model"
)

const (
	// defaultParallel is how many NodeClaims are created at once; the rate of
	// the client is what limits them.
	defaultParallel = 100
	// provisioned is the reason of claims for pods that wait.
	provisioned = "provisioned"
	// shownTypes is how many instance types of a claim are logged.
	shownTypes = 5
	// leastNomination is the shortest time a node is kept for the pods it is
	// to take.
	leastNomination = 10 * time.Second
)

// scope is what one pass works on.
type scope struct {
	now      time.Time
	pools    map[string]*v1.NodePool // as the pass began
	snapshot *model.Snapshot
	plan     *model.Plan
	took     time.Duration // to decide
	held     held          // launches the plan would have without holds
}

// pass places what is pending and reports whether anything was.
func (p *Provisioner) pass(ctx context.Context) (pending bool, err error) {
	s, err := p.open(ctx)
	if err != nil {
		return false, err
	}
	p.decide(s)
	if p.Decided != nil {
		p.Decided(s.snapshot, s.plan)
	}
	names := p.place(s.snapshot, s.plan.Placements)
	p.unplace(s)
	err = p.launch(ctx, s)
	if p.Follow != nil {
		p.Follow(names)
	}
	if p.Done != nil {
		p.Done(s.snapshot, s.plan)
	}
	p.tell(ctx, s)
	return len(s.snapshot.Pending) > 0, errors.Join(err, p.giveBack(ctx, s), p.mark(ctx, s))
}

// open reads what the pass works on. It reads the pools first, because a claim
// must not be made from a newer version of a pool than it was planned with.
func (p *Provisioner) open(ctx context.Context) (*scope, error) {
	pools, err := p.pools(ctx)
	if err != nil {
		return nil, fmt.Errorf("list node pools: %w", err)
	}
	if err := p.Catalogue.Refresh(ctx); err != nil {
		return nil, fmt.Errorf("refresh instance types: %w", err)
	}
	s := &scope{now: p.Clock.Now(), pools: pools}
	if err := confirm.Claims(ctx, p.Live, p.World, p.Convert, s.now); err != nil {
		return nil, err
	}
	s.snapshot = p.World.Snapshot(s.now)
	return s, nil
}

// decide makes the plan and measures how long that takes. It does nothing if no
// pods are pending.
func (p *Provisioner) decide(s *scope) {
	p.Metrics.zones.set(s.snapshot)
	if len(s.snapshot.Pending) == 0 {
		s.plan = &model.Plan{}
		return
	}
	count := 0
	for _, shape := range s.snapshot.Pending {
		count += len(shape.Pods)
	}
	started := p.Clock.Now()
	p.Metrics.deciding.begin(count, func() time.Duration { return p.Clock.Since(started) })
	defer p.Metrics.deciding.end()
	s.plan = p.Decide(s.snapshot)
	if s.held = newHeld(s.plan.Launches, p.World.Holds(s.now)); len(s.held) > 0 {
		s.snapshot = s.held.without(s.snapshot)
		s.plan = p.Decide(s.snapshot)
	}
	s.took = p.Clock.Since(started)
	p.Metrics.duration.Observe(s.took.Seconds())
}

// place nominates the nodes that pods are placed on, and returns their names in
// the order of the placements. Pods of a buffer do not protect a node from
// disruption, because their capacity can be on any node.
func (p *Provisioner) place(s *model.Snapshot, placements []model.Placement) (names []string) {
	byNode := map[string][]model.Pod{}
	for _, x := range placements {
		if byNode[x.Node] == nil {
			names = append(names, x.Node)
		}
		byNode[x.Node] = append(byNode[x.Node], x.Pod)
	}
	until := s.Now.Add(max(2*p.batch.window.Most, leastNomination))
	for _, name := range names {
		p.World.Placed(name, byNode[name])
		if slices.ContainsFunc(byNode[name], exists) {
			p.World.Nominate(name, until)
		}
		if node := named(s, name); node != nil {
			p.nominate(newTo(name, byNode[name]), place(node))
		}
	}
	return names
}

// named returns the node of the Snapshot, or nil.
func named(s *model.Snapshot, name string) *model.Node {
	i, ok := slices.BinarySearchFunc(s.Nodes, name, func(n model.Node, name string) int { return strings.Compare(n.Name, name) })
	if !ok {
		return nil
	}
	return &s.Nodes[i]
}

// unplace abandons earlier plans for the pods that have no place now.
func (p *Provisioner) unplace(s *scope) {
	for _, v := range s.plan.Verdicts {
		p.World.Unplaced(v.Pods)
	}
}

// newTo returns the pods that were not planned on the node before.
func newTo(node string, pods []model.Pod) []model.Pod {
	return slices.DeleteFunc(slices.Clone(pods), func(pod model.Pod) bool { return pod.Planned == node })
}

// exists reports whether the pod exists in the API server, and does not stand
// in for a buffer.
func exists(p model.Pod) bool { return p.Buffer == "" }

func (p *Provisioner) nominate(pods []model.Pod, where string) {
	for _, pod := range pods {
		if exists(pod) {
			p.Events.Publish(nominated(pod, where))
		}
	}
}

// launch creates the claims of the plan, in parallel. If one fails, the others
// are created nevertheless.
func (p *Provisioner) launch(ctx context.Context, s *scope) error {
	if len(s.plan.Launches) == 0 {
		return nil
	}
	admitted, refusals, keys := p.admit(s.plan.Launches)
	errs := make([]error, 0, len(refusals)+len(admitted))
	for _, r := range refusals {
		errs = append(errs, refused(r.launch, r.why))
	}
	failures, names := make([]error, len(admitted)), make([]string, len(admitted))
	var group errgroup.Group
	group.SetLimit(p.parallel())
	for i := range admitted {
		group.Go(func() error {
			var claim *v1.NodeClaim
			claim, failures[i] = p.create(ctx, &admitted[i], s.pools[admitted[i].Pool], provisioned)
			p.ledger.mu.Lock()
			defer p.ledger.mu.Unlock()
			p.planned(claim, admitted[i].Pods)
			if claim != nil {
				names[i] = claim.Name
			}
			p.ledger.settleLocked(keys[i], failures[i], p.Clock.Now())
			return nil
		})
	}
	_ = group.Wait() // no function of the group returns an error
	if p.Launched != nil {
		p.Launched(s.snapshot, s.plan, admitted, slices.DeleteFunc(names, func(name string) bool { return name == "" }))
	}
	return errors.Join(append(errs, failures...)...)
}

// admit checks the launches and enters those that hold in the ledger; each is
// to be settled by its key.
func (p *Provisioner) admit(launches []model.Launch) (admitted []model.Launch, refusals []refusal, keys []int) {
	p.ledger.mu.Lock()
	defer p.ledger.mu.Unlock()
	admitted, refusals = p.admission(p.World.Snapshot(p.Clock.Now())).admit(launches)
	for _, l := range admitted {
		keys = append(keys, p.ledger.enterLocked(l))
	}
	return admitted, refusals, keys
}

// create creates the claim of one launch from the pool, which is nil if it did
// not exist when the plan was made.
func (p *Provisioner) create(ctx context.Context, l *model.Launch, pool *v1.NodePool, reason string) (*v1.NodeClaim, error) {
	if pool == nil {
		return nil, refused(*l, "the node pool was not there when the pass began")
	}
	claim := p.Convert.NodeClaimFor(l, pool, nil)
	if reason != provisioned {
		claim.Annotations[v1.ReplacesAnnotationKey] = reason
	}
	if err := p.Client.Create(ctx, claim); err != nil {
		return nil, fmt.Errorf("create node claim for node pool %s: %w", l.Pool, err)
	}
	p.Metrics.Created(claim, reason)
	log.FromContext(ctx).Info("created node claim", "NodeClaim", klog.KRef("", claim.Name), "NodePool", klog.KRef("", l.Pool), "reason", reason,
		"pods", len(l.Pods), "requests", l.Requests.Format(p.Convert.Axis.Names()), "instance-types", typesText(l.Types),
		"cheapest", fmt.Sprintf("%s %s %s $%.4f/h", l.Type, l.Zone, l.CapacityType, l.Price.Dollars()))
	return claim, nil
}

// planned enters a new claim in the world before any other controller can read
// it, and publishes events on its pods. Nil stands for a claim that could not
// be created.
func (p *Provisioner) planned(claim *v1.NodeClaim, pods []model.Pod) {
	if claim == nil {
		return
	}
	if known, ok := p.Convert.Claim(claim); ok {
		p.World.Planned(known, pods)
	}
	p.nominate(pods, "nodeclaim/"+claim.Name)
}

// typesText names the first types, and how many more there are.
func typesText(types []string) string {
	text := ""
	for i, t := range types {
		switch {
		case i == shownTypes:
			return fmt.Sprintf("%s and %d more", text, len(types)-shownTypes)
		case i > 0:
			text += ", "
		}
		text += t
	}
	return text
}

// tell reports the result of the pass: in events on pods without a place, in
// metrics and in the log.
func (p *Provisioner) tell(ctx context.Context, s *scope) {
	p.Metrics.stayed(s.plan.Verdicts)
	p.Metrics.planned(s.plan)
	news := p.told.news(s.held.others(s.plan.Verdicts), s.now)
	p.Events.Publish(news...)
	p.Events.Publish(s.held.events()...)
	p.Events.Publish(emptied(s)...)

	placed, waiting, stay := len(s.plan.Placements), 0, 0
	for _, x := range s.plan.Placements {
		if x.Pod.Planned == x.Node {
			waiting++
		}
	}
	for _, l := range s.plan.Launches {
		placed += len(l.Pods)
	}
	for _, v := range s.plan.Verdicts {
		stay += len(v.Pods)
	}
	level := 0
	if len(s.plan.Launches) == 0 && waiting == len(s.plan.Placements) && len(news) == 0 {
		level = 1 // nothing has changed since the last log line
	}
	log.FromContext(ctx).V(level).Info("planned pods",
		"pods", placed+stay, "of-buffers", standIns(s.snapshot), "placed", placed, "placed-before", waiting, "unschedulable", stay, "node-claims", len(s.plan.Launches),
		"cost", fmt.Sprintf("$%.4f/h", s.plan.Cost.Dollars()), "bound", fmt.Sprintf("$%.4f/h", s.plan.Bound.Dollars()),
		"gap", fmt.Sprintf("%.1f%%", 100*s.plan.Gap()), "budget-exhausted", s.plan.Exhausted, "duration", s.took)
}

// standIns counts the pods that do not exist.
func standIns(s *model.Snapshot) int {
	n := 0
	for _, pending := range s.Pending {
		for _, p := range pending.Pods {
			if !exists(p) {
				n++
			}
		}
	}
	return n
}

// emptied returns an event for every pool whose own requirements leave no
// instance type.
func emptied(s *scope) []events.Event {
	var out []events.Event
	seen := map[string]bool{}
	for _, v := range s.plan.Verdicts {
		for _, verdict := range v.Pools {
			pool := s.pools[verdict.Pool]
			if pool == nil || seen[verdict.Pool] || !verdict.LeavesNoType() {
				continue
			}
			seen[verdict.Pool] = true
			out = append(out, noCompatibleInstanceTypes(pool, verdict))
		}
	}
	return out
}
