// SPDX-License-Identifier: Apache-2.0

package record

import (
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"karpenter/api/conditions"
	v1 "karpenter/api/v1"
	"karpenter/model"
)

// instance is what is known about the instance of a NodeClaim. Its cost counts
// from the launch of the claim until its termination is requested, in whole
// seconds.
type instance struct {
	start, end  time.Time // zero = not yet
	initialized time.Time
	gone        bool   // the claim does not exist any more
	deleting    bool   // its deletion was asked for
	node        string // name of its Node
	replaces    string // reason for which the nodes went that it replaces; "" = it is for pending pods
	reason      string // for which it is disrupted; "" = it is not
	group       Group  // with the last price that was known

	priced   bool
	rates    Rates     // Retired and Requests are those of the cluster, and 0 here
	until    time.Time // up to when it was counted
	launched bool      // taken into account in Retired when it was launched
	retired  bool      // the same when it ended
}

// take updates the instance from the claim.
func (i *instance) take(c *v1.NodeClaim) {
	at := func(kind string) time.Time {
		if condition := conditions.Get(c, kind); condition != nil && condition.Status == "True" {
			return condition.LastTransitionTime.UTC().Truncate(time.Second)
		}
		return time.Time{}
	}
	if i.start.IsZero() {
		i.start = at(v1.LaunchedCondition)
	}
	if i.end.IsZero() && !i.start.IsZero() {
		i.end = at(v1.InstanceTerminatingCondition)
	}
	if i.initialized.IsZero() {
		i.initialized = at(v1.InitializedCondition)
	}
	i.reason = ""
	if condition := conditions.Get(c, v1.DisruptionReasonCondition); condition != nil && condition.Status == "True" {
		i.reason = condition.Reason
	}
	i.deleting, i.node, i.replaces = c.DeletionTimestamp != nil, c.Status.NodeName, c.Annotations[v1.ReplacesAnnotationKey]
	i.group.Count, i.group.Pool, i.group.Type = 1, c.Labels[v1.NodePoolLabelKey], c.Labels[corev1.LabelInstanceTypeStable]
	i.group.Zone, i.group.CapacityType = c.Labels[corev1.LabelTopologyZone], c.Labels[v1.CapacityTypeLabelKey]
}

// runs reports whether the instance costs something at the time.
func (i *instance) runs(at time.Time) bool {
	return !i.start.IsZero() && !i.start.After(at) && (i.end.IsZero() || i.end.After(at))
}

// count adds the cost of the instance up to the time. If the instance turns out to
// have ended before the time up to which it was counted, the difference is
// subtracted.
func (i *instance) count(to time.Time, totals *Totals) {
	if !i.end.IsZero() && i.end.Before(to) {
		to = i.end
	}
	if !i.priced || i.start.IsZero() || to.Before(i.start) {
		return
	}
	d := to.Sub(i.until)
	totals.Cost.add(i.rates.Cost, d)
	totals.Discount.add(i.rates.Discount, d)
	totals.Own.add(i.rates.Own, d)
	i.until = to
}

// consolidated reports whether a reason for a disruption is consolidation.
func consolidated(reason string) bool {
	return strings.EqualFold(reason, string(model.Empty)) || strings.EqualFold(reason, string(model.Underutilized))
}

// price records the price of the node in the Snapshot.
func (i *instance) price(n *model.Node, pool *model.Pool, weights map[int]float64) {
	if n.Price == 0 {
		return // not known now; the last known price is the best estimate
	}
	i.priced = true
	i.group.Price = n.Price
	i.rates.Cost = n.Price
	zone, milliCPU := value(n, model.LabelZone), n.Capacity.At(model.CPU)
	list := n.Price
	if pool != nil {
		list = onDemand(pool, value(n, model.LabelInstanceType), zone, n.Price)
	}
	i.rates.Discount = list - n.Price
	extra := model.Price(0)
	if pool != nil {
		extra = min(model.Extras(pool.Extras, milliCPU, zone), list)
	}
	i.rates.Own = extra
	if all := worth(n.Capacity, weights); all > 0 {
		taken := min(max(all-worth(n.Allocatable, weights)+worth(n.DaemonRequested, weights), 0), all)
		i.rates.Own += model.Price(taken / all * float64(list-extra))
	}
}

// onDemand returns what the instance type costs on demand in the zone, or the price
// given if that is not known.
func onDemand(pool *model.Pool, name, zone string, price model.Price) model.Price {
	for _, t := range pool.Types {
		if t.Name != name {
			continue
		}
		for i := range t.Offerings {
			if o := &t.Offerings[i]; o.Zone == zone && o.CapacityType == v1.CapacityTypeOnDemand {
				return o.Price
			}
		}
	}
	return price
}
