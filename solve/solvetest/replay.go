package solvetest

import (
	"fmt"
	"slices"

	"karpenter/model"
)

// maxStates bounds the search for an order.
const maxStates = 3_000

// team is the pods of one pending entry that go to one site.
type team struct {
	pending *model.Pending
	site    *site
	left    int
}

// replay looks for an order in which kube-scheduler could bind all pods of the
// teams, one after the other, once all sites are there. It returns "" or who
// is left where the search came furthest.
func replay(sites []*site, teams []team) string {
	r := &replayer{sites: sites, teams: teams, seen: map[string]bool{}}
	slices.SortStableFunc(r.teams, func(a, b team) int { return constraints(b.pending.Shape) - constraints(a.pending.Shape) })
	r.furthest = r.total() + 1
	if r.search() {
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

// search binds what is left, trying every team first where it must.
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
	why := ""
	for i := range r.teams {
		t := &r.teams[i]
		if t.left == 0 {
			continue
		}
		if no := refusal(r.sites, t.pending, t.site); no != "" {
			why += fmt.Sprintf("%d of %s to %s: %s; ", t.left, t.pending.Shape.Key, t.site.name, no)
			continue
		}
		t.left--
		t.site.bind(t.pending)
		if r.search() {
			return true
		}
		t.left++
		t.site.bound = t.site.bound[:len(t.site.bound)-1]
	}
	if left < r.furthest {
		r.furthest, r.stuck = left, why
	}
	return false
}
