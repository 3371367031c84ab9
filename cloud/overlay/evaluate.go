// SPDX-License-Identifier: Apache-2.0

package overlay

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	v1 "karpenter/api/v1"
	"karpenter/api/v1alpha1"
	"karpenter/cloud"
	"karpenter/model"
)

// Subject is a NodePool and what its provider offers it, without overlays.
type Subject struct {
	Pool  *v1.NodePool
	Types []*cloud.InstanceType
}

// Verdict is the result for one overlay.
type Verdict struct {
	Overlay string
	// Reason is "" for an overlay that holds, otherwise
	// v1alpha1.RuntimeValidationReason or v1alpha1.ConflictReason; Message
	// then says what to change.
	Reason, Message string
	// Idle reports that the overlay is valid and matches no offering.
	Idle bool
}

// Evaluate decides which overlays hold and for which pools. Overlays are taken
// in the order of v1alpha1.Compare. One is rejected as a whole, for all pools,
// when it is invalid or touches, anywhere, the same price or the same resource
// as an earlier one of equal weight that holds; even if both say the same. The
// verdicts are in the order the overlays were given in. Pools not among the
// subjects count as not evaluated.
func Evaluate(overlays []v1alpha1.NodeOverlay, subjects []Subject, labels v1.Labels) ([]Verdict, *Set) {
	set := &Set{pools: make(map[string]model.Requirements, len(subjects))}
	var ledgers []*ledger
	for _, s := range subjects {
		own := poolLabels(s.Pool, labels)
		set.pools[s.Pool.Name] = own
		for _, t := range s.Types {
			ledgers = append(ledgers, newLedger(s.Pool.Name, t, own))
		}
	}
	order := make([]*v1alpha1.NodeOverlay, len(overlays))
	verdicts := make(map[string]Verdict, len(overlays))
	for i := range overlays {
		order[i] = &overlays[i]
	}
	slices.SortFunc(order, v1alpha1.Compare)
	for _, o := range order {
		r, err := newRule(o, labels)
		if err != nil {
			verdicts[o.Name] = Verdict{Overlay: o.Name, Reason: v1alpha1.RuntimeValidationReason, Message: err.Error()}
			continue
		}
		v := enter(&r, ledgers)
		if v.Reason == "" {
			set.rules = append(set.rules, r)
		}
		verdicts[o.Name] = v
	}
	out := make([]Verdict, len(overlays))
	for i := range overlays {
		out[i] = verdicts[overlays[i].Name]
	}
	return out, set
}

// ledger is which rules touch one type of one pool.
type ledger struct {
	pool      string
	it        *cloud.InstanceType
	described model.Requirements
	prices    []entry // by offering
	capacity  map[corev1.ResourceName]entry
}

// entry is the last rule that touched something. Rules come by descending
// weight, so one of equal weight, if any, is the last.
type entry struct {
	rule   string // "" = none
	weight int32
}

func (e entry) conflicts(r *rule) bool { return e.rule != "" && e.weight == r.weight }

func newLedger(pool string, t *cloud.InstanceType, own model.Requirements) *ledger {
	return &ledger{
		pool: pool, it: t, described: t.Requirements.And(own...),
		prices: make([]entry, len(t.Offerings)), capacity: map[corev1.ResourceName]entry{},
	}
}

// enter records the rule in all ledgers, or in none when it conflicts in any.
func enter(r *rule, ledgers []*ledger) Verdict {
	touched := make([][]int, len(ledgers))
	idle := true
	for i, l := range ledgers {
		touched[i] = r.touches(l.described, l.it.Offerings)
		idle = idle && len(touched[i]) == 0
		if other, what := l.conflict(r, touched[i]); other != "" {
			return Verdict{Overlay: r.name, Reason: v1alpha1.ConflictReason, Message: fmt.Sprintf(
				"conflicts with node overlay %s, which has the same weight and also sets %s of instance type %s in node pool %s; "+
					"give one of the two another weight, or requirements that exclude the other's",
				other, what, l.it.Name, l.pool)}
		}
	}
	for i, l := range ledgers {
		l.record(r, touched[i])
	}
	return Verdict{Overlay: r.name, Idle: idle}
}

// conflict returns the rule of equal weight that has touched the same, and
// what that is.
func (l *ledger) conflict(r *rule, offerings []int) (other, what string) {
	if len(offerings) == 0 {
		return "", ""
	}
	if r.price != nil {
		for _, i := range offerings {
			if e := l.prices[i]; e.conflicts(r) {
				o := &l.it.Offerings[i]
				return e.rule, "the price of offering " + strings.Trim(o.Zone()+"/"+o.CapacityType(), "/")
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(r.capacity)) {
		if e := l.capacity[name]; e.conflicts(r) {
			return e.rule, "the capacity " + string(name)
		}
	}
	return "", ""
}

func (l *ledger) record(r *rule, offerings []int) {
	if len(offerings) == 0 {
		return
	}
	e := entry{rule: r.name, weight: r.weight}
	if r.price != nil {
		for _, i := range offerings {
			l.prices[i] = e
		}
	}
	for name := range r.capacity {
		l.capacity[name] = e
	}
}
