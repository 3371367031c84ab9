// SPDX-License-Identifier: Apache-2.0

package devices

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	"karpenter/model"
)

// mostResults is how many devices one claim can have.
const mostResults = 32

// mostKept is how much a Book, or a Charge, keeps before it starts again.
const mostKept = 20_000

// Book is the claims of a Snapshot compiled against its selectors. What it has
// compiled it keeps: sets, stocks, and which sets fit which stock together. It is safe
// for concurrent use.
type Book struct {
	mu      sync.Mutex
	answers map[string]*model.DeviceSelector
	sets    map[string]*Set // by the text of their claims
	byFirst map[*model.DeviceClaim]*Set
	stocks  map[*model.DevicePool]*Stock
	fits    map[string]bool // see Holds
	steps   int             // of searches that no one has asked about
}

// NewBook returns a book about the selectors.
func NewBook(selectors []model.DeviceSelector) *Book {
	b := &Book{
		answers: map[string]*model.DeviceSelector{}, sets: map[string]*Set{}, byFirst: map[*model.DeviceClaim]*Set{},
		stocks: map[*model.DevicePool]*Stock{}, fits: map[string]bool{},
	}
	for i := range selectors {
		b.answers[selectors[i].Text] = &selectors[i]
	}
	return b
}

// Large reports whether the book has compiled so much that a new one is better.
func (b *Book) Large() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.fits)+len(b.stocks)+len(b.byFirst) > mostKept
}

// Set is the claims of a pod, compiled.
type Set struct {
	id     int
	claims []claim
}

// shares reports whether another pod may have found devices for a claim of the set.
func (s *Set) shares() bool {
	return slices.ContainsFunc(s.claims, func(c claim) bool { return c.Shared != "" })
}

// without returns the set without claims that have devices already.
func (s *Set) without(have map[string]bool) *Set {
	return &Set{claims: slices.DeleteFunc(slices.Clone(s.claims), func(c claim) bool { return have[c.Shared] })}
}

type claim struct {
	*model.DeviceClaim
	requests    []request
	constraints []constraint
}

type request struct {
	name     string
	ways     []*way
	resource string // nothing is asked for where a device plugin has it
}

// way is one way to meet a request.
type way struct {
	*model.DeviceWay
	name string // of the request, with that of the way behind a slash if it has one
}

// constraint says by request and way whether it is about its devices.
type constraint struct {
	attribute string
	distinct  bool
	about     [][]bool
}

// set returns the compiled claims.
func (b *Book) set(claims []model.DeviceClaim) *Set {
	if known := b.byFirst[&claims[0]]; known != nil {
		return known
	}
	text := (&model.Shape{Claims: claims}).Identity(nil)
	s := b.sets[text]
	if s == nil {
		s = &Set{id: len(b.sets)}
		for i := range claims {
			s.claims = append(s.claims, compileClaim(&claims[i]))
		}
		b.sets[text] = s
	}
	b.byFirst[&claims[0]] = s
	return s
}

// stock returns the compiled pools.
func (b *Book) stock(pools []model.DevicePool) *Stock {
	var key *model.DevicePool
	if len(pools) > 0 {
		key = &pools[0]
	}
	s := b.stocks[key]
	if s == nil {
		s = newStock(pools)
		s.id = len(b.stocks)
		b.stocks[key] = s
	}
	return s
}

func compileClaim(c *model.DeviceClaim) claim {
	out := claim{DeviceClaim: c}
	for i := range c.Requests {
		r := &c.Requests[i]
		compiled := request{name: r.Name, resource: r.Resource}
		for j := range r.Ways {
			w := &way{DeviceWay: &r.Ways[j], name: r.Name}
			if w.Name != "" {
				w.name += "/" + w.Name
			}
			compiled.ways = append(compiled.ways, w)
		}
		out.requests = append(out.requests, compiled)
	}
	for _, k := range c.Constraints {
		compiled := constraint{attribute: k.Match}
		if k.Match == "" {
			compiled.attribute, compiled.distinct = k.Distinct, true
		}
		for _, r := range out.requests {
			about := make([]bool, len(r.ways))
			for j, w := range r.ways {
				about[j] = len(k.Requests) == 0 || slices.Contains(k.Requests, r.name) || slices.Contains(k.Requests, w.name)
			}
			compiled.about = append(compiled.about, about)
		}
		out.constraints = append(out.constraints, compiled)
	}
	return out
}

// least returns how many devices the request takes at least.
func (r *request) least() int {
	least := mostResults + 1
	for _, w := range r.ways {
		least = min(least, w.least())
	}
	return least
}

func (w *way) least() int {
	if w.All {
		return 1
	}
	return w.Count
}

// refusal says what of the claims no plan can honor; "" = nothing.
func refusal(claims []model.DeviceClaim, b *Book) string {
	for i := range claims {
		c := compileClaim(&claims[i])
		sum := 0
		for _, r := range c.requests {
			if len(r.ways) == 0 {
				return fmt.Sprintf("claim %s (request %s asks for devices in a way that is not planned)", c.Name, r.name)
			}
			if r.resource != "" {
				continue // a device plugin may have it
			}
			sum += r.least()
			for _, w := range r.ways {
				if why := b.invalid(w); why != "" {
					return fmt.Sprintf("claim %s (request %s: %s)", c.Name, w.name, why)
				}
			}
		}
		if sum > mostResults {
			return fmt.Sprintf("claim %s (it asks for %d devices, and a claim has at most %d)", c.Name, sum, mostResults)
		}
		for _, k := range c.Constraints {
			if (k.Match == "") == (k.Distinct == "") {
				return fmt.Sprintf("claim %s (a constraint of a kind that is not planned)", c.Name)
			}
		}
	}
	return ""
}

// invalid says why a selector of the way has no answers; "" = it has.
func (b *Book) invalid(w *way) string {
	for _, text := range w.Selectors {
		switch a := b.answers[text]; {
		case a == nil:
			return fmt.Sprintf("the selector %q was not evaluated", text)
		case a.Invalid != "":
			return fmt.Sprintf("the selector %q %s", text, strings.TrimSpace(a.Invalid))
		}
	}
	return ""
}

// verdicts are what the selectors of a way say of a kind.
type verdicts int8

const (
	no verdicts = iota
	yes
	fails // the scheduler abandons the pod
)

// judge returns what the selectors of a way say of a kind, asked in order until
// one does not hold, and which of them it was.
func (b *Book) judge(w *model.DeviceWay, kind *model.DeviceKind) (verdicts, int) {
	for i, text := range w.Selectors {
		a := b.answers[text]
		if a == nil || a.Invalid != "" || has(a.Fails, kind.Key) {
			return fails, i
		}
		if !has(a.Matches, kind.Key) {
			return no, i
		}
	}
	return yes, len(w.Selectors)
}

func has(sorted []string, key string) bool {
	_, ok := slices.BinarySearch(sorted, key)
	return ok
}

// joined returns the terms of which one must hold so that one of each holds. No terms
// demand nothing. It reports false if none can hold.
func joined(a, b []model.Requirements) ([]model.Requirements, bool) {
	switch {
	case len(a)+len(b) == 0:
		return nil, true
	case len(a) == 0:
		a = []model.Requirements{nil}
	case len(b) == 0:
		return a, true
	}
	var out []model.Requirements
	for _, x := range a {
		for _, y := range b {
			if _, ok := x.Intersects(y); !ok {
				continue
			}
			both := x.And(y...)
			if !slices.ContainsFunc(both, func(r model.Requirement) bool { return r.Present && !r.Complement && len(r.Values) == 0 }) {
				out = append(out, both)
			}
		}
	}
	return out, len(out) > 0
}
