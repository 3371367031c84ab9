// SPDX-License-Identifier: Apache-2.0

package pack

import (
	"cmp"
	"slices"

	"karpenter/model"
	"karpenter/solve/devices"
	"karpenter/solve/fit"
)

// Devices count as resources while nodes are chosen (package devices, Charge). That a
// node has what all its pods need together is seen by searching for it, wherever pods
// are put on a node.

// supplied reports whether a node of the type has devices for the pods of the portions
// together.
func (x *draft) supplied(row *fit.TypeRow, take []portion) bool {
	if x.book == nil {
		return true
	}
	all, pods := x.claimsOf(take)
	if pods == 0 {
		return true
	}
	x.budget.Spend(devices.Steps(row.Devices, pods))
	return x.book.Holds(row.Devices, all)
}

// drivers returns the drivers whose devices the pods of the bin claim.
func (x *draft) drivers(b bin) []string {
	if x.book == nil {
		return nil
	}
	all, _ := x.claimsOf(b.take)
	return x.book.Drivers(x.catalogue.Types[x.catalogue.Offers[b.offer].Type].Devices, all)
}

// claimsOf returns the pods of the portions that have claims, in the order in which
// they are likely to be scheduled, and how many these are.
func (x *draft) claimsOf(take []portion) (out []devices.Portion, pods int) {
	type part struct {
		devices.Portion
		priority int32
		kind     int
	}
	var parts []part
	for _, t := range take {
		for _, m := range x.demands[t.demand].parts() {
			s := m.of.Shape
			n := m.pods * t.pods
			if len(s.Claims) == 0 || n == 0 {
				continue
			}
			pods += n
			if i := slices.IndexFunc(parts, func(p part) bool { return p.kind == m.of.kind }); i >= 0 {
				parts[i].Pods += n
				continue
			}
			parts = append(parts, part{devices.Portion{Claims: s.Claims, Pods: n}, s.Priority, m.of.kind})
		}
	}
	slices.SortFunc(parts, func(a, b part) int {
		return cmp.Or(cmp.Compare(b.priority, a.priority), soonest(&x.snapshot.Pending[a.kind].Pods[0], &x.snapshot.Pending[b.kind].Pods[0]))
	})
	for _, p := range parts {
		out = append(out, p.Portion)
	}
	return out, pods
}

// soonest orders pods of one priority as the scheduler is likely to take them.
func soonest(a, b *model.Pod) int {
	return cmp.Or(a.Created.Compare(b.Created), cmp.Compare(a.Key(), b.Key()))
}

// claiming reports whether a pod of the portions has claims.
func (x *draft) claiming(take []portion) bool {
	if x.book == nil {
		return false
	}
	_, pods := x.claimsOf(take)
	return pods > 0
}

// suppliedOffers returns those of the offers of the bin whose types have devices for
// its pods together. Where a device plugin has an extended resource on nodes of the
// offer that the bin was planned with, they have one, too: what a new node waits for is
// told when it is launched.
func (x *draft) suppliedOffers(b bin) fit.OfferSet {
	offers := x.offersOf(b)
	if !x.claiming(b.take) {
		return offers
	}
	var out []int32
	last, ok := -1, false
	chosen := &x.catalogue.Types[x.catalogue.Offers[b.offer].Type]
	for o := range offers.All() {
		if t := x.catalogue.Offers[o].Type; t != last {
			row := &x.catalogue.Types[t]
			last, ok = t, devices.Alike(chosen.Devices, row.Devices) && x.supplied(row, b.take)
		}
		if ok {
			out = append(out, int32(o))
		}
	}
	return fit.SetOf(len(x.catalogue.Offers), out)
}
