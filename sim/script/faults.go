// SPDX-License-Identifier: Apache-2.0

package script

import (
	"math/rand/v2"
	"slices"
	"time"
)

// Call is an occasion for faults.
type Call struct {
	Since  time.Duration // since the start of the run
	Verb   string        // of the API, or method of the provider
	Object string        // kind of object
	// Of a launch: the offering it would take.
	Type, Zone, Capacity string
}

// Faults decides what goes wrong. The same script, source of randomness and
// sequence of calls give the same answers. Not safe for concurrent use.
type Faults struct {
	rules []rule
	end   time.Duration
	rand  *rand.Rand
}

type rule struct {
	fault Fault
	met   int // calls it selected
	hits  int
}

// NewFaults returns the faults of the script. It owns the source.
func NewFaults(s *Script, source *rand.Rand) *Faults {
	f := &Faults{end: s.Run, rand: source}
	for _, fault := range s.Faults {
		f.rules = append(f.rules, rule{fault: fault})
	}
	return f
}

// Hit returns the first fault of these kinds that hits the call, or nil. A
// fault counts the calls it is asked about, so ask once for each.
func (f *Faults) Hit(c Call, kinds ...Kind) *Fault {
	var hit *Fault
	for i := range f.rules {
		r := &f.rules[i]
		if !slices.Contains(kinds, r.fault.Kind) || !f.selects(&r.fault, c) {
			continue
		}
		r.met++
		if hit == nil && f.strikes(r) {
			r.hits++
			hit = &r.fault
		}
	}
	return hit
}

// Has reports whether the script has a fault of the kind.
func (f *Faults) Has(k Kind) bool {
	return slices.ContainsFunc(f.rules, func(r rule) bool { return r.fault.Kind == k })
}

// Hits returns how often each kind of fault has hit.
func (f *Faults) Hits() map[Kind]int {
	out := map[Kind]int{}
	for _, r := range f.rules {
		if r.hits > 0 {
			out[r.fault.Kind] += r.hits
		}
	}
	return out
}

func (f *Faults) selects(fault *Fault, c Call) bool {
	if c.Since < fault.From || c.Since >= f.end || fault.For > 0 && c.Since >= fault.From+fault.For {
		return false
	}
	for _, want := range [][2]string{
		{fault.Call, c.Verb}, {fault.Object, c.Object},
		{fault.Type, c.Type}, {fault.Zone, c.Zone}, {fault.Capacity, c.Capacity},
	} {
		if want[0] != "" && want[0] != want[1] {
			return false
		}
	}
	return true
}

func (f *Faults) strikes(r *rule) bool {
	switch {
	case r.fault.At > 0:
		return r.met == r.fault.At
	case r.fault.Times > 0 && r.hits >= r.fault.Times:
		return false
	case r.fault.Every > 1:
		return f.rand.IntN(r.fault.Every) == 0
	}
	return true
}
