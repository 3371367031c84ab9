package drain

import (
	"fmt"
	"math"
	"time"

	"karpenter/model"
)

// A move has a price. Moving all pods of a NodePool once costs as much as the
// pool costs in an hour, and each node has its share in that: by what its pods
// say about being moved, how long they take to start, and 1 for itself. A launch
// costs extra. What a command saves must pay for all of it within the payback time.
// So the rule knows no amounts: it is the same for large clusters
// and small ones, and for prices in any currency. The policy Balanced of a NodePool
// is the same comparison with two hours, on what its pods say alone (balance.go), and
// stands in for it.

const (
	// slowStart is how long a pod starts that costs twice as much to move as one
	// that is ready at once.
	slowStart = 5 * time.Minute
	// launchTime is how long a new node costs money before it is of use, and the
	// nodes it replaces while their pods leave.
	launchTime = 10 * time.Minute
	// launchDisruption is what a launch costs besides, as if that many plain pods
	// were moved.
	launchDisruption = 1.0
)

// toll is what a command must save per hour, in nano-dollars, to be worth it.
type toll struct {
	moves  float64 // for its pods
	launch float64 // for each launch
	new    float64 // for launches, however many
	share  float64 // the least a replacement must save
	weight float64 // what moving its pods costs once
}

// of returns what must be saved for so many launches.
func (t toll) of(launches int) float64 {
	if launches == 0 {
		return t.moves
	}
	return t.moves + t.new + float64(launches)*t.launch
}

// least is of, or the least a replacement must save.
func (t toll) least(launches int) float64 {
	if launches == 0 {
		return t.moves
	}
	return max(t.of(launches), t.share)
}

// tollOf returns what taking the nodes away must save.
func (r *round) tollOf(sites []int) toll {
	var t toll
	for _, i := range sites {
		n := &r.s.Nodes[i]
		pool := r.pools[n.Pool]
		rate, unit, threshold := 0.0, r.unit(pool), r.policy.Hysteresis
		d := &r.s.Pools[pool].Disruption
		if d.Threshold != nil {
			threshold = *d.Threshold
		}
		if payback := r.payback(d); payback > 0 {
			rate = 1 / payback.Hours()
		}
		t.weight += unit * burden(n)
		t.moves += rate * unit * burden(n)
		t.launch = max(t.launch, rate*unit*launchDisruption)
		t.new += rate * float64(n.Price) * launchTime.Hours()
		t.share += threshold * float64(n.Price)
	}
	return t
}

// payback returns the time in which moves of the pool must pay; 0 = any. Those of a
// Balanced pool have that in their score, unless the pool names a time besides.
func (r *round) payback(d *model.Disruption) time.Duration {
	switch {
	case d.Payback != nil:
		return *d.Payback
	case d.Policy == model.Balanced:
		return 0
	}
	return r.policy.Payback
}

// burden is what taking the node away disrupts.
func burden(n *model.Node) float64 {
	return n.Disruption.Cost + n.Disruption.Startup.Seconds()/slowStart.Seconds()
}

// unit is the price of moving one plain pod of the pool, in nano-dollars.
func (r *round) unit(pool int) float64 {
	all := r.total(pool)
	if all.price <= 0 || all.disruption <= 0 {
		return 0
	}
	return all.price / all.disruption
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

// unpaid returns why the nodes would not go even if their pods had places for
// nothing, or "". A price that is not known says nothing.
func (r *round) unpaid(o *offer) (model.Cause, string) {
	cost := o.command.Cost
	if cost <= 0 || o.toll.moves <= float64(cost) {
		return "", ""
	}
	o.command.Savings = cost
	if cause, why := r.balance(o); why != "" {
		return cause, why
	}
	return model.ByPrice, fmt.Sprintf("not worth moving its pods: would save $%s/h at most, and only $%s/h would pay for that in time",
		dollars(cost), dollars(model.Price(o.toll.moves)))
}
