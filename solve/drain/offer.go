// SPDX-License-Identifier: Apache-2.0

package drain

import (
	"fmt"
	"math"

	"karpenter/model"
)

// offer is what became of a question about nodes for Underutilized.
type offer struct {
	sites   []int
	pending []model.Pending
	command model.Command
	at      int // how many commands there were when it was asked
	manner  manner
	whole   bool        // the sites are a unit of several nodes
	most    model.Price // what its launches may cost
	toll    toll
	rank    float64     // those of higher rank go first
	alike   []int       // those of the sites whose type stands in the way, if it is not good
	cause   model.Cause // why not
	why     string
	blamed  string // the pool without whose launches it may be good
}

// manner is how an offer is made.
type manner int8

const (
	finally manner = iota // as the command is to be
	roughly               // for comparison with others: preferences are ignored
	amply                 // as the command is to be, with room to spare on the nodes that are launched
)

func (o *offer) good() bool { return o.why == "" }

// yield is what the offer saves in proportion to what it disrupts; 0 for one
// that is not good.
func (o *offer) yield() float64 {
	if !o.good() {
		return 0
	}
	return float64(o.command.Savings) / max(o.toll.weight, 1)
}

// tooDear says that the pods of nodes would cost so much elsewhere, which is no
// less than the nodes do, or not by enough.
func (o *offer) tooDear(elsewhere model.Price) string {
	cost := o.command.Cost
	text := fmt.Sprintf("no cheaper place: would cost at least $%s/h instead of $%s/h", dollars(elsewhere), dollars(cost))
	switch {
	case elsewhere >= cost:
	case o.toll.of(1) <= o.toll.share:
		text += fmt.Sprintf(", and less than %.2g%% does not pay", 100*o.toll.share/float64(cost))
	default:
		text += fmt.Sprintf(", and moving its pods takes a saving of $%s/h to be worth it", dollars(model.Price(o.toll.of(1))))
	}
	return text
}

func dollars(p model.Price) string { return fmt.Sprintf("%.4g", p.Dollars()) }

// leastScore is what a command must score in every pool whose policy is
// Balanced: it saves at least half the share of the pool's cost that it
// disrupts of the pool.
const leastScore = 0.5

// lowest returns the first score of the offer that is too low, or the zero Score.
func (o *offer) lowest() model.Score {
	for _, s := range o.command.Scores {
		if s.Value < leastScore {
			return s
		}
	}
	return model.Score{}
}

// limit is what the launches of the offer may cost together; nothing when none
// can pay.
func (o *offer) limit(launches int) model.Price {
	left := model.Price(math.Floor(float64(o.command.Cost) - o.toll.least(launches)))
	return max(min(left, o.command.Cost-1), nothing)
}

// net is what the offer saves per hour beyond what it must.
func (o *offer) net() float64 {
	return float64(o.command.Savings) - o.toll.of(len(o.command.Launches))
}

// What may be spent on a trial: anything it takes, or nothing.
const (
	unlimited = model.Price(math.MaxInt64)
	nothing   = model.Price(-1)
)
