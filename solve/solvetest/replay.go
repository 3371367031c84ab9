// SPDX-License-Identifier: Apache-2.0

package solvetest

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"

	"karpenter/model"
)

// maxStates bounds the search for an order. Of a few pods it tries every order.
const (
	maxStates = 4000
	fewPods   = 10
)

// team is the pods of one pending entry that go to one site.
type team struct {
	pending *model.Pending
	site    *site
	stays   bool // where an earlier plan sent them
	left    int
	rank    int // among the teams of its entry, or all
}

// replay looks for an order in which kube-scheduler could bind all pods of the
// teams, one after the other, once all sites are there. It returns "" or who
// is left where the search came furthest.
func replay(sites []*site, teams []team) string {
	r := &replayer{sites: sites, teams: teams, seen: map[string]bool{}}
	slices.SortStableFunc(r.teams, func(a, b team) int { return constraints(b.pending.Shape) - constraints(a.pending.Shape) })
	r.furthest = r.total() + 1
	if r.total() > fewPods && r.ranked() || r.search() {
		return ""
	}
	if len(r.seen) >= maxStates {
		return fmt.Sprintf("no order found in %d states: %s", maxStates, r.stuck)
	}
	return r.stuck
}

type replayer struct {
	sites    []*site
	teams    []team
	seen     map[string]bool
	furthest int // fewest pods left so far
	stuck    string
}

func constraints(s *model.Shape) int { return len(s.Spread) + len(s.PodTerms) }

func (r *replayer) total() int {
	n := 0
	for _, t := range r.teams {
		n += t.left
	}
	return n
}

// maxRankings is how many orders are tried before the search.
const maxRankings = 3000

// ranked binds by rank, always the first that can send a pod, for many rankings
// of entries, with the teams of each in any order, and of teams; also after one pod
// of any team.
func (r *replayer) ranked() bool {
	rng := rand.New(rand.NewPCG(1, 2))
	for n := range maxRankings {
		var bound []*team
		if n%3 == 1 { // any pod may be the one that others wait for
			if t := &r.teams[rng.IntN(len(r.teams))]; t.left > 0 && refusal(r.sites, t.pending, t.site) == "" {
				r.bind(t)
				bound = append(bound, t)
			}
		}
		for t := r.first(); t != nil; t = r.first() {
			r.bind(t)
			bound = append(bound, t)
		}
		done := r.total() == 0
		for _, t := range slices.Backward(bound) {
			r.unbind(t)
		}
		if done {
			return true
		}
		rank := map[*model.Pending]int{}
		for i := range r.teams {
			r.teams[i].rank = rng.IntN(1000)
			rank[r.teams[i].pending] = rng.IntN(1000)
			if n%3 == 1 {
				rank[r.teams[i].pending] = 0
			}
			if n%2 == 1 && constraints(r.teams[i].pending.Shape) == 0 {
				rank[r.teams[i].pending] += 1000 // they can be bound whenever others had to come first
			}
		}
		slices.SortStableFunc(r.teams, func(a, b team) int {
			return cmp.Or(cmp.Compare(rank[a.pending], rank[b.pending]), cmp.Compare(a.rank, b.rank))
		})
	}
	return false
}

// first returns the first team that can send a pod.
func (r *replayer) first() *team {
	for i := range r.teams {
		if t := &r.teams[i]; t.left > 0 && refusal(r.sites, t.pending, t.site) == "" {
			return t
		}
	}
	return nil
}

// search binds what is left, the most promising team first.
func (r *replayer) search() bool {
	left := r.total()
	if left == 0 {
		return true
	}
	key := ""
	for _, t := range r.teams {
		key += fmt.Sprint(t.left, " ")
	}
	if r.seen[key] || len(r.seen) >= maxStates {
		return false
	}
	r.seen[key] = true
	moves, why := r.moves()
	for _, t := range moves {
		r.bind(t)
		if r.search() {
			return true
		}
		r.unbind(t)
	}
	if left < r.furthest {
		r.furthest, r.stuck = left, why
	}
	return false
}

// moves returns the teams that can send a pod now, those first after which
// most pods can follow, and why the others cannot.
func (r *replayer) moves() ([]*team, string) {
	var out []*team
	why := ""
	after := map[*team]int{}
	for i := range r.teams {
		t := &r.teams[i]
		if t.left == 0 {
			continue
		}
		if no := refusal(r.sites, t.pending, t.site); no != "" {
			why += fmt.Sprintf("%d of %s to %s: %s; ", t.left, t.pending.Shape.Key, t.site.name, no)
			continue
		}
		out = append(out, t)
	}
	for _, t := range out {
		r.bind(t)
		for i := range r.teams {
			if u := &r.teams[i]; u.left > 0 && constraints(u.pending.Shape) > 0 && refusal(r.sites, u.pending, u.site) == "" {
				after[t] += u.left
			}
		}
		r.unbind(t)
		if constraints(t.pending.Shape) > 0 {
			after[t]++ // itself, so that nothing is won by waiting
		}
	}
	slices.SortStableFunc(out, func(a, b *team) int { return after[b] - after[a] })
	return out, why
}

func (r *replayer) bind(t *team) {
	t.left--
	t.site.bind(t.pending)
}

func (r *replayer) unbind(t *team) {
	t.left++
	t.site.bound = t.site.bound[:len(t.site.bound)-1]
}
