// SPDX-License-Identifier: Apache-2.0

package record

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"karpenter/model"
)

// BaselineName is the name of the ConfigMap that holds the Baseline, in the namespace
// of Karpenter. Users write it; the controller neither reads nor writes it.
const BaselineName = "karpenter-baseline"

const baselineKey = "baseline.json"

// Baseline is the figures that savings are counted from.
type Baseline struct {
	Version int   `json:"version"`
	Meter   Meter `json:"meter"` // when it was frozen, which is its Until
}

// Freeze returns the Meter as a Baseline.
func Freeze(m Meter) (Baseline, error) {
	if m.Until.IsZero() {
		return Baseline{}, errors.New("the record has no costs yet: Karpenter writes them within a minute after its start")
	}
	if m.Rates.Requests <= 0 || m.Rates.Cost <= 0 {
		return Baseline{}, errors.New("a baseline needs nodes of a NodePool with a known price and pods on them, and the cluster has none")
	}
	return Baseline{Version: version, Meter: m}, nil
}

// ConfigMap returns the ConfigMap that keeps the Baseline.
func (b Baseline) ConfigMap(namespace string) (*corev1.ConfigMap, error) {
	text, err := json.Marshal(b)
	if err != nil {
		return nil, err
	}
	return &corev1.ConfigMap{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: BaselineName},
		Data:       map[string]string{baselineKey: string(text)},
	}, nil
}

// ParseBaseline reads a Baseline.
func ParseBaseline(m *corev1.ConfigMap) (Baseline, error) {
	var b Baseline
	if err := json.Unmarshal([]byte(m.Data[baselineKey]), &b); err != nil {
		return b, fmt.Errorf("read ConfigMap %s/%s: %s: %w", m.Namespace, m.Name, baselineKey, err)
	}
	if b.Version != version {
		return b, fmt.Errorf("read ConfigMap %s/%s: it has version %d, and this program reads version %d", m.Namespace, m.Name, b.Version, version)
	}
	return b, nil
}

// Savings is what was saved since a baseline. All amounts are whole cents, and the
// Causes add up to Saved to the cent.
type Savings struct {
	From     time.Time
	Until    time.Time
	Baseline int64 // what the cost per hour at the baseline comes to
	Actual   int64
	Saved    int64 // Baseline less Actual
	Unseen   int64 // at most what Actual lacks
	Causes   []Cause
}

// Cause is a part of what was saved.
type Cause struct {
	Name  string
	Means string // one sentence
	Cents int64  // negative = it cost more
}

// Since returns what was saved from the Baseline to the Meter.
//
// Let r be what pods request in proportion to the baseline. At each moment, the cost is
// U + O - D: the on-demand price of what pods can use, that of what nodes need for
// themselves, less the discount; V is what consolidation has retired. With the figures
// of the baseline marked 0, cost0 - cost is the sum of
//
//	off-hours      cost0 × (1 - r)
//	spot           D - r × D0
//	fewer nodes    r × O0 - O
//	consolidation  V - r × V0
//	packing        r × (U0 + V0) - (U + V)
//
// and all of it is integrated over time as exact fractions.
func Since(b Baseline, m Meter) (Savings, error) {
	was := b.Meter
	if !was.Since.Equal(m.Since) || m.Until.Before(was.Until) {
		return Savings{}, fmt.Errorf("the baseline is of another record, which began at %s: freeze a new one", was.Since.UTC().Format(time.RFC3339))
	}
	between := func(of func(*Totals) *Amount) *big.Rat {
		return new(big.Rat).Sub(of(&m.Totals).dollars(), of(&was.Totals).dollars())
	}
	cost := between(func(t *Totals) *Amount { return &t.Cost })
	discount := between(func(t *Totals) *Amount { return &t.Discount })
	own := between(func(t *Totals) *Amount { return &t.Own })
	retired := between(func(t *Totals) *Amount { return &t.Retired })
	requests := between(func(t *Totals) *Amount { return &t.Requests })

	hours := big.NewRat(int64(m.Until.Sub(was.Until)/time.Second), 3600)
	fixed := times(perHour(was.Rates.Cost), hours)
	// scaled is what a rate of the baseline comes to for what pods requested since.
	scaled := func(rate model.Price) *big.Rat {
		return times(new(big.Rat).Quo(requests, perHour(was.Rates.Requests)), perHour(rate))
	}
	use := minus(plus(cost, discount), own)
	parts := []*big.Rat{
		minus(plus(scaled(usable(was.Rates)), scaled(was.Rates.Retired)), plus(use, retired)),
		minus(discount, scaled(was.Rates.Discount)),
		minus(retired, scaled(was.Rates.Retired)),
		minus(fixed, scaled(was.Rates.Cost)),
		minus(scaled(was.Rates.Own), own),
	}
	out := Savings{
		From: was.Until, Until: m.Until, Baseline: cents(fixed), Actual: cents(cost),
		Unseen: cents(minus(m.Unseen.dollars(), was.Unseen.dollars())),
	}
	out.Saved = out.Baseline - out.Actual
	for i, c := range round(parts, out.Saved) {
		out.Causes = append(out.Causes, Cause{causes[i][0], causes[i][1], c})
	}
	return out, nil
}

// causes are names, and what they mean in one sentence, in the order of the parts.
var causes = [...][2]string{
	{"packing", "for the same requests, the nodes that are launched cost less on demand than those of the baseline"},
	{"spot", "instances cost less than the same instances on demand, by more than at the baseline"},
	{"consolidation", "nodes that were removed or replaced although pods requested as much, and that no pending pods have needed again"},
	{"off-hours", "pods request less than at the baseline, and less runs for them; negative if they request more"},
	{"fewer nodes", "nodes need less for themselves: the system, DaemonSets, disks and what else each node costs"},
}

func perHour(p model.Price) *big.Rat { return big.NewRat(int64(p), int64(model.Dollar)) }

func plus(a, b *big.Rat) *big.Rat  { return new(big.Rat).Add(a, b) }
func minus(a, b *big.Rat) *big.Rat { return new(big.Rat).Sub(a, b) }
func times(a, b *big.Rat) *big.Rat { return new(big.Rat).Mul(a, b) }

// cents rounds dollars.
func cents(dollars *big.Rat) int64 {
	c := plus(times(dollars, big.NewRat(100, 1)), big.NewRat(1, 2))
	return floor(c)
}

func floor(r *big.Rat) int64 {
	// Div rounds down, as the denominator is positive.
	return new(big.Int).Div(r.Num(), r.Denom()).Int64()
}

// round turns dollars into whole cents that add up to the total, which differs by less
// than a cent for each part: those with the largest fractions are rounded up.
func round(dollars []*big.Rat, total int64) []int64 {
	out := make([]int64, len(dollars))
	rest := make([]*big.Rat, len(dollars))
	order := make([]int, len(dollars))
	for i, d := range dollars {
		c := times(d, big.NewRat(100, 1))
		out[i] = floor(c)
		rest[i], order[i] = minus(c, new(big.Rat).SetInt64(out[i])), i
		total -= out[i]
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Or(rest[b].Cmp(rest[a])) })
	for i := int64(0); i < total; i++ {
		out[order[int(i)%len(order)]]++
	}
	for i := int64(0); i > total; i-- {
		out[order[len(order)-1+int(i)%len(order)]]--
	}
	return out
}
