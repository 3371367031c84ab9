// SPDX-License-Identifier: Apache-2.0

package record

import (
	"math/big"
	"time"

	"karpenter/model"
)

// Figures are the amounts from which savings are computed. Requests of pods are
// also in dollars: see Weights.
type Figures[T any] struct {
	Cost     T `json:"cost"`     // price of the instances, with what nodes cost besides
	Discount T `json:"discount"` // price of the same instances on demand, less Cost
	// Own is the part of the on-demand price that is for the nodes themselves: what nodes
	// cost besides their instance, and the share of what the system and DaemonSets take.
	Own T `json:"own"`
	// Retired is the on-demand price, less Own, of the nodes that consolidation removed,
	// less that of their replacements: as far as the pods did not request less, and no
	// nodes were launched for pending pods since.
	Retired  T `json:"retired"`
	Requests T `json:"requests"` // of the pods on the instances, without DaemonSets
}

// Rates are Figures per hour.
type Rates = Figures[model.Price]

// Totals are Figures since the Meter began.
type Totals = Figures[Amount]

// usable is the on-demand price of what pods can have of the instances, per hour.
func usable(r Rates) model.Price { return r.Cost + r.Discount - r.Own }

// Amount is exact dollars: N nano-dollars and R 3600ths of one.
type Amount struct {
	N int64 `json:"n"`
	R int64 `json:"r,omitempty"`
}

// add adds the rate times the number of seconds. Both may be negative.
func (a *Amount) add(rate model.Price, d time.Duration) {
	const hour, day = 3600, 86400
	for s := int64(d / time.Second); s != 0; {
		part := min(max(s, -day), day) // so that the product fits
		s -= part
		a.R += int64(rate) * part % hour
		a.N += int64(rate)*part/hour + a.R/hour
		a.R %= hour
	}
}

// dollars returns the exact amount.
func (a Amount) dollars() *big.Rat {
	n := new(big.Int).Add(new(big.Int).Mul(big.NewInt(a.N), big.NewInt(3600)), big.NewInt(a.R))
	return new(big.Rat).SetFrac(n, big.NewInt(3600*int64(model.Dollar)))
}

// Meter is what instances have cost so far.
type Meter struct {
	Since  time.Time `json:"since"` // when it began
	Until  time.Time `json:"until"` // up to when the Totals count
	Rates  Rates     `json:"rates"` // from then on
	Totals Totals    `json:"totals"`

	// Released is the part of the on-demand price, less Own, that pods ceased to request,
	// for which no nodes were removed yet.
	Released model.Price `json:"released,omitempty"`
	Demand   model.Price `json:"demand"` // what pods request, also those that are pending

	Instances int `json:"instances"` // that run
	Unpriced  int `json:"unpriced"`  // of those, whose price was never known: they count as nothing
	// Unseen is at most what the Totals lack of Cost: instances that ended while no
	// leader ran count up to when the last one saw them.
	Unseen Amount `json:"unseen"`
}

// At returns the Meter as it is at the time if nothing has changed since it was
// written.
func (m Meter) At(now time.Time) Meter {
	d := now.Sub(m.Until).Truncate(time.Second)
	if d <= 0 {
		return m
	}
	for _, x := range []struct {
		total *Amount
		rate  model.Price
	}{
		{&m.Totals.Cost, m.Rates.Cost}, {&m.Totals.Discount, m.Rates.Discount}, {&m.Totals.Own, m.Rates.Own},
		{&m.Totals.Retired, m.Rates.Retired}, {&m.Totals.Requests, m.Rates.Requests},
	} {
		x.total.add(x.rate, d)
	}
	m.Until = m.Until.Add(d)
	return m
}

// Cents returns what the instances have cost.
func (m Meter) Cents() int64 { return cents(m.Totals.Cost.dollars()) }

// Relative weights of resources: what one vCPU, one GiB and one GPU cost.
const (
	perVCPU = 0.031611
	perGiB  = 0.004237
	perGPU  = 0.95
)

// Weights returns dollars per hour of a unit of each resource that is paid for, by
// position on the axis. They say how a price is divided between resources, and how
// much pods request in all.
func Weights(resources []string) map[int]float64 {
	out := map[int]float64{model.CPU: perVCPU / 1000, model.Memory: perGiB / (1 << 30)}
	for i, name := range resources {
		switch name {
		case "nvidia.com/gpu", "amd.com/gpu", "aws.amazon.com/neuron", "habana.ai/gaudi":
			out[i] = perGPU
		}
	}
	return out
}

// worth returns the value of the resources by their weights.
func worth(r model.Resources, weights map[int]float64) float64 {
	sum := 0.0
	for i := range r { // in order: sums of floats depend on it
		sum += weights[i] * float64(r.At(i))
	}
	return sum
}
