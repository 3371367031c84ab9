// SPDX-License-Identifier: Apache-2.0

package solve

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"karpenter/model"
	"karpenter/solve/work"
)

const (
	// tryShare is the part of the budget that is left which one try of an assembly may
	// use. So all tries together use no more than one plan may.
	tryShare = 0.5
	// lastShare is the part of the whole budget with less than which no group is tried:
	// it is for the plan without the groups that failed.
	lastShare = 0.25
)

// stepsPerPod is what a try is charged for each of its pods besides what it counts
// itself: compiling the Snapshot takes about as long.
const stepsPerPod = 4000

// mostWhy is about how long the reason of another pod is in a verdict, in bytes.
const mostWhy = 300

// assembly decides which PodGroups a plan is for: it makes plans with and without
// them, and takes only groups that have their minimum in the plan. Other groups
// leave no trace in it, so the plan and its bound are those of a Snapshot without
// their pods.
//
// Groups are tried all at once; if that fails, the first half without the others,
// then the second half, and so on: those that an earlier plan was for come first, then
// by priority and age, and those of which no pod exists come last. So one plan is made
// if all groups can have their minimum.
type assembly struct {
	s      *model.Snapshot
	place  func(*model.Snapshot, *work.Budget) *model.Plan
	budget *work.Budget
	least  int64 // steps that are kept for the last plan

	teams []*team // of the Snapshot, in order
	named map[string]*team
	taken []*team // whose pods are in the plan
	tried map[string]*model.Plan
	short bool // the budget ended before all groups were tried
}

// team is the pending pods of a PodGroup that lacks some of its minimum.
type team struct {
	*model.PodGroup
	need     int // pods that must find a place together
	priority int32
	oldest   time.Time
	standsIn bool     // none of its pods exists
	planned  bool     // pods of it exist, and an earlier plan was for it
	pods     []member // in the order in which the scheduler tries them

	trimmed bool   // only the first pods are in the plan, as many as it needs
	untried bool   // the budget ended before it was tried everywhere
	avoids  bool   // its pods are planned outside the places to avoid
	domain  string // value of TopologyKey that its pods are planned for; "" = any
	reason  string
	failed  *model.Plan // the last plan that was tried with the team
}

// member is one pod of a team.
type member struct {
	model.Pod
	priority int32
}

// together places the pending pods of s, those of a PodGroup only if at least its
// MinCount can run.
func together(s *model.Snapshot, budget *work.Budget, place func(*model.Snapshot, *work.Budget) *model.Plan) *model.Plan {
	s = pinned(s)
	a := &assembly{s: s, place: place, budget: budget, teams: teamsOf(s), named: map[string]*team{}, tried: map[string]*model.Plan{}}
	if len(a.teams) == 0 {
		return place(s, budget)
	}
	var complete []*team
	for _, t := range a.teams {
		a.named[t.Name] = t
		switch exist := t.MinCount - t.need + len(t.pods); {
		case t.Refused != "":
			t.reason = fmt.Sprintf("PodGroup %s: %s", t.Name, t.Refused)
		case len(t.pods) < t.need:
			t.reason = fmt.Sprintf("PodGroup %s is incomplete: %d of the %d pods that must start together exist", t.Name, exist, t.MinCount)
		default:
			complete = append(complete, t)
		}
	}
	if len(complete) == 0 {
		return a.report(place(a.with(nil), budget))
	}
	a.least = int64(lastShare * float64(budget.Left()))
	a.admit(complete)
	plan := a.tried[a.key(nil)]
	if plan == nil {
		plan = place(a.with(nil), budget)
	}
	plan = a.report(plan)
	a.relax(plan)
	return plan
}

// teamsOf returns the teams of s in the order in which they are taken.
func teamsOf(s *model.Snapshot) []*team {
	if len(s.Groups) == 0 {
		return nil
	}
	byName := map[string]*team{}
	for i := range s.Groups {
		byName[s.Groups[i].Name] = &team{PodGroup: &s.Groups[i]}
	}
	moving := map[*team]int{}
	for _, pending := range s.Pending {
		for _, p := range pending.Pods {
			if t := byName[p.Group]; t != nil {
				t.pods = append(t.pods, member{p, pending.Shape.Priority})
				if p.From != "" {
					moving[t]++
				}
			}
		}
	}
	var out []*team
	for _, t := range byName {
		t.need = t.MinCount - (t.Running - moving[t])
		if len(t.pods) == 0 || t.need <= 0 && t.Refused == "" {
			continue
		}
		slices.SortFunc(t.pods, func(a, b member) int {
			return cmp.Or(cmp.Compare(b.priority, a.priority), a.Created.Compare(b.Created), strings.Compare(a.Key(), b.Key()))
		})
		t.priority, t.oldest = t.pods[len(t.pods)-1].priority, t.pods[0].Created
		planned := 0
		t.standsIn = true
		for _, p := range t.pods {
			t.standsIn = t.standsIn && p.Buffer != ""
			if p.Created.Before(t.oldest) {
				t.oldest = p.Created
			}
			if p.Planned != "" {
				planned++
			}
		}
		t.planned = !t.standsIn && planned >= t.need
		t.avoids = len(t.Avoid) > 0 && !t.planned // the pods keep their places
		out = append(out, t)
	}
	slices.SortFunc(out, func(a, b *team) int {
		return cmp.Or(trueLast(a.standsIn, b.standsIn), trueLast(b.planned, a.planned), cmp.Compare(b.priority, a.priority), a.oldest.Compare(b.oldest), strings.Compare(a.Name, b.Name))
	})
	return out
}

func trueLast(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return 1
	}
	return -1
}

// of returns the team of the pod, nil if it is of none.
func (a *assembly) of(p model.Pod) *team {
	if p.Group == "" {
		return nil
	}
	return a.named[p.Group]
}

// admit takes those of the teams that can have their minimum beside the teams
// taken before.
func (a *assembly) admit(list []*team) {
	if a.budget.Left() < a.least {
		a.short = true
		for _, t := range list {
			t.untried = true
			t.reason = fmt.Sprintf("PodGroup %s: the planner's budget ended before it could be tried alone", t.Name)
		}
		return
	}
	if !slices.ContainsFunc(list, (*team).roams) && a.good(a.try(list), list) {
		a.taken = append(a.taken, list...)
		return
	}
	if half := len(list) / 2; half > 0 {
		a.admit(list[:half])
		a.admit(list[half:])
		return
	}
	a.admitOne(list[0])
}

// admitOne is admit for one team.
func (a *assembly) admitOne(t *team) {
	alone := []*team{t}
	plan := a.try(alone)
	t.failed = plan
	if a.good(plan, alone) && a.settle(t) {
		a.taken = append(a.taken, t)
		return
	}
	if t.avoids {
		t.avoids = false
		a.admitOne(t)
		return
	}
	if t.need < len(t.pods) {
		t.trimmed = true
		if a.good(a.try(alone), alone) && a.settle(t) {
			a.taken = append(a.taken, t)
			t.reason = fmt.Sprintf("PodGroup %s: the %d pods that must start together have a place; the others wait until these run, as other pods need the capacity", t.Name, t.MinCount)
			return
		}
		t.trimmed = false
	}
	if t.Waits != "" {
		t.reason = fmt.Sprintf("PodGroup %s: %s", t.Name, t.Waits)
	}
	if t.reason != "" {
		return
	}
	if found := placed(plan)[t.Name]; found < t.need {
		t.reason = fmt.Sprintf("PodGroup %s: %d of the %d pods that must start together find a place", t.Name, t.MinCount-t.need+found, t.MinCount)
		return
	}
	t.reason = fmt.Sprintf("PodGroup %s: other pods come before its pods and need the capacity", t.Name)
}

// roams reports whether the team must be in one topology domain, and no running pod of
// it says in which.
func (t *team) roams() bool { return t.TopologyKey != "" && len(t.On) == 0 }

// plannedIn returns the value of the team's topology key on the nodes that its pods are
// planned on, and how many are; none if the nodes do not all have the same.
func plannedIn(s *model.Snapshot, t *team) (value string, pods int) {
	for _, p := range t.pods {
		if p.Planned == "" {
			continue
		}
		i := slices.IndexFunc(s.Nodes, func(n model.Node) bool { return n.Name == p.Planned })
		if i < 0 {
			return "", 0
		}
		on, known := s.Nodes[i].Labels.Value(t.TopologyKey)
		if !known || pods > 0 && on != value {
			return "", 0
		}
		value, pods = on, pods+1
	}
	return value, pods
}

// settle pins the team to the topology domain in which its pods are planned, if all of
// them can stay there, else to the one that has places for most of its pods, and of these to
// the cheapest. It reports whether some domain has places for its minimum;
// if not, the last plan that was tried with the team is one for the best domain.
func (a *assembly) settle(t *team) bool {
	if !t.roams() {
		return true
	}
	domains := domainsOf(a.s, t.TopologyKey)
	if len(domains) == 0 {
		t.reason = fmt.Sprintf("PodGroup %s: no node has the label %s, and no NodePool tells its value before a node is launched", t.Name, t.TopologyKey)
		return false
	}
	best, bestPlan, most := "", (*model.Plan)(nil), -1
	if at, pods := plannedIn(a.s, t); pods > 0 {
		t.domain = at
		if plan := a.try([]*team{t}); a.good(plan, []*team{t}) && placed(plan)[t.Name] >= pods {
			return true
		}
	}
	for _, t.domain = range domains {
		if a.budget.Left() < a.least {
			a.short, t.untried = true, true
			break
		}
		plan := a.try([]*team{t})
		switch found := placed(plan)[t.Name]; {
		case !a.good(plan, []*team{t}):
			if bestPlan == nil && found > most {
				t.failed, most = plan, found
			}
		case bestPlan == nil || found > most || found == most && plan.Cost < bestPlan.Cost:
			best, bestPlan, most = t.domain, plan, found
		}
	}
	t.domain = best
	if bestPlan == nil {
		t.reason = fmt.Sprintf("PodGroup %s: no value of %s has places for more than %d of the %d pods that must start together", t.Name, t.TopologyKey, t.MinCount-t.need+max(most, 0), t.MinCount)
	}
	return bestPlan != nil
}

// relax makes the bound of the plan one for all choices of topology domains, not only for
// those that were made: what a plan costs for which no team must be in one domain or avoids
// anything.
func (a *assembly) relax(plan *model.Plan) {
	var confined []*team
	for _, t := range a.taken {
		if t.domain != "" || t.avoids {
			confined, t.domain, t.avoids = append(confined, t), "", false
		}
	}
	if len(confined) == 0 {
		return
	}
	if relaxed := a.try(nil); count(placed(relaxed)) == count(placed(plan)) {
		plan.Bound = min(plan.Bound, relaxed.Bound)
	} else {
		plan.Bound = 0
	}
}

// try plans for the teams taken, those of the list and all pods that are of no team.
func (a *assembly) try(list []*team) *model.Plan {
	key := a.key(list)
	if a.tried[key] == nil {
		s, part := a.with(list), a.budget.Part(tryShare)
		a.tried[key] = a.place(s, part)
		a.budget.Return(part)
		for i := range s.Pending {
			a.budget.Spend(stepsPerPod * len(s.Pending[i].Pods))
		}
	}
	return a.tried[key]
}

// key names the pods that try plans for.
func (a *assembly) key(list []*team) string {
	var names []string
	for _, t := range slices.Concat(a.taken, list) {
		names = append(names, fmt.Sprintf("%q %t %t %q", t.Name, t.trimmed, t.avoids, t.domain))
	}
	for _, t := range a.waiting(list) {
		names = append(names, fmt.Sprintf("%q stays", t.Name))
	}
	slices.Sort(names)
	return strings.Join(names, ", ")
}

// waiting returns the teams besides the list that an earlier plan was for and of which it is
// not known yet whether they are taken.
func (a *assembly) waiting(list []*team) []*team {
	return slices.DeleteFunc(slices.Clone(a.teams), func(t *team) bool {
		return !t.planned || t.reason != "" || slices.Contains(a.taken, t) || slices.Contains(list, t)
	})
}

// with returns the Snapshot without the pods of teams that are neither taken nor
// listed, with the others in their topology domains. Pods of waiting teams that have places
// keep them.
func (a *assembly) with(list []*team) *model.Snapshot {
	waiting := a.waiting(list)
	list = slices.Concat(a.taken, list)
	in, to := members(list), map[string][]model.Requirements{}
	for _, t := range waiting {
		for _, p := range t.pods {
			in[p.Key()] = in[p.Key()] || p.Planned != ""
		}
	}
	for _, t := range list {
		if t.avoids {
			to[t.Name] = avoiding(a.s, t.Avoid)
		}
		if t.domain != "" {
			to[t.Name] = both(to[t.Name], []model.Requirements{model.NewRequirements(model.NewRequirement(t.TopologyKey, model.In, t.domain))})
		}
	}
	out := *a.s
	out.Pending = nil
	for _, pending := range a.s.Pending {
		left := func(p model.Pod) bool { return a.of(p) != nil && !in[p.Key()] }
		if slices.ContainsFunc(pending.Pods, left) {
			pending.Pods = slices.DeleteFunc(slices.Clone(pending.Pods), left)
		}
		if len(pending.Pods) > 0 {
			out.Pending = append(out.Pending, pending)
		}
	}
	out.Pending = pin(out.Pending, to)
	return &out
}

// members returns the keys of the pods of teams, of a trimmed one those it needs.
func members(list []*team) map[string]bool {
	out := map[string]bool{}
	for _, t := range list {
		pods := t.pods
		if t.trimmed {
			pods = pods[:t.need]
		}
		for _, p := range pods {
			out[p.Key()] = true
		}
	}
	return out
}

// good reports whether in the plan, which was made for the list as well, every team
// has its minimum, and no more pods stay pending than without the list: neither of
// those of no team, nor of all but the list. Pods of less priority than the list
// do not count, and if earlier plans were for the list, only pods that have lost a
// place do.
func (a *assembly) good(plan *model.Plan, list []*team) bool {
	found := placed(plan)
	for _, t := range slices.Concat(a.taken, list) {
		if found[t.Name] < t.need || t.Waits != "" && a.needsNodes(plan, t) {
			return false
		}
	}
	alone, all := a.pending(plan, list)
	if all == 0 {
		return true
	}
	aloneBefore, allBefore := a.pending(a.try(nil), list)
	return alone <= aloneBefore && all <= allBefore
}

// needsNodes reports whether the plan puts a pod of the team on a node that is not
// initialized.
func (a *assembly) needsNodes(plan *model.Plan, t *team) bool {
	ours := func(p model.Pod) bool { return p.Group == t.Name }
	if slices.ContainsFunc(plan.Launches, func(l model.Launch) bool { return slices.ContainsFunc(l.Pods, ours) }) {
		return true
	}
	return slices.ContainsFunc(plan.Placements, func(p model.Placement) bool {
		if !ours(p.Pod) {
			return false
		}
		i, found := slices.BinarySearchFunc(a.s.Nodes, p.Node, func(n model.Node, name string) int { return strings.Compare(n.Name, name) })
		return found && !a.s.Nodes[i].Initialized
	})
}

// pending counts the pods that stay pending in the plan, are of none of the teams
// listed and have at least the priority of the least of these; alone are those that
// are of no team at all.
func (a *assembly) pending(plan *model.Plan, list []*team) (alone, all int) {
	last := list[len(list)-1]
	least := slices.MinFunc(list, func(a, b *team) int { return cmp.Compare(a.priority, b.priority) }).priority
	for i := range plan.Verdicts {
		v := &plan.Verdicts[i]
		if v.Shape.Priority < least {
			continue
		}
		for _, p := range v.Pods {
			switch t := a.of(p); {
			case p.Buffer != "", last.planned && p.Planned == "":
			case t == nil:
				alone, all = alone+1, all+1
			case !slices.Contains(list, t):
				all++
			}
		}
	}
	return alone, all
}

// placed counts the pods of each PodGroup that have a place in the plan.
func placed(plan *model.Plan) map[string]int {
	out := map[string]int{}
	for i := range plan.Placements {
		out[plan.Placements[i].Pod.Group]++
	}
	for i := range plan.Launches {
		for _, p := range plan.Launches[i].Pods {
			out[p.Group]++
		}
	}
	return out
}

// count returns how many pods there are in all.
func count(byGroup map[string]int) int {
	n := 0
	for _, pods := range byGroup {
		n += pods
	}
	return n
}

// report adds to the plan why the pods of other teams stay pending, and which were not tried.
func (a *assembly) report(plan *model.Plan) *model.Plan {
	plan.Exhausted = plan.Exhausted || a.short
	in := members(a.taken)
	for _, t := range a.teams {
		taken := slices.Contains(a.taken, t)
		if t.untried && !taken {
			plan.Untried = append(plan.Untried, t.Name)
		}
		if !taken || t.trimmed {
			plan.Verdicts = append(plan.Verdicts, t.verdicts(a.s, in)...)
		}
	}
	return plan
}

// verdicts says of the pods of the team that are not in the plan why they stay
// pending: what is in the way of the team, and of the pods that find no place.
func (t *team) verdicts(s *model.Snapshot, in map[string]bool) []model.Verdict {
	var out []model.Verdict
	told, why := map[string]bool{}, ""
	ours := func(p model.Pod) bool { return p.Group == t.Name && !in[p.Key()] && !told[p.Key()] }
	if t.failed != nil && !t.trimmed {
		for _, v := range t.failed.Verdicts {
			pods := slices.DeleteFunc(slices.Clone(v.Pods), func(p model.Pod) bool { return !ours(p) })
			if len(pods) == 0 {
				continue
			}
			for _, p := range pods {
				told[p.Key()] = true
			}
			if why == "" {
				why = fmt.Sprintf(", and %s does not: %s", pods[0].Name, v.Brief(mostWhy))
			}
			v.Pods, v.Reason = pods, t.reason+prefixed("; ", v.Reason)
			out = append(out, v)
		}
	}
	for _, pending := range s.Pending {
		if pods := slices.DeleteFunc(slices.Clone(pending.Pods), func(p model.Pod) bool { return !ours(p) }); len(pods) > 0 {
			out = append(out, model.Verdict{Pods: pods, Shape: pending.Shape, Reason: t.reason + why})
		}
	}
	return out
}

// prefixed returns the text behind the prefix, and nothing for no text.
func prefixed(prefix, text string) string {
	if text == "" {
		return ""
	}
	return prefix + text
}
