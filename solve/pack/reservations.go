// SPDX-License-Identifier: Apache-2.0

package pack

import (
	"slices"

	"karpenter/model"
	"karpenter/solve/fit"
)

// Reservations are paid for whether they are used or not, and there is only a
// number of nodes in each. They are spent before anything is launched in a tier,
// on the pods that would cost most otherwise; see market.spendReservations.

// reservation returns which reservation the offer takes from; "" = none.
func (q *problem) reservation(offer int) string {
	if !q.reservations.offers.Has(offer) {
		return ""
	}
	return q.catalogue.Offers[offer].ReservationID
}

// keepReservation takes the offers out of the set that have another reservation than
// the offer, or one where it has none.
func (q *problem) keepReservation(set fit.Bits, offer int) {
	id := q.reservation(offer)
	if id == "" {
		set.Remove(q.reservations.offers)
		return
	}
	set.Keep(q.reservations.offers)
	for o := range set.All() {
		if q.reservation(o) != id {
			set.Unset(o)
		}
	}
}

// reservationLabel returns what asks the provider for the reservation of the
// offer, if the offer says.
func (q *problem) reservationLabel(offer int) (model.Requirement, bool) {
	id := q.reservation(offer)
	for _, r := range q.catalogue.Offers[offer].Requirements {
		if !r.Complement && len(r.Values) == 1 && r.Values[0] == id {
			return r, true
		}
	}
	return model.Requirement{}, false
}

// alike returns those of the offers that a launch counting on this one may
// become: the same reservation, or none.
func (q *problem) alike(offer int, offers fit.Bits) fit.Bits {
	if id := q.reservation(offer); id != "" {
		return offers.And(q.catalogue.Reserved(id))
	}
	return offers.Less(q.reservations.offers)
}

// sorts divides offers into those that one launch can become.
func (q *problem) sorts(offers fit.Bits) []fit.Bits {
	var out []fit.Bits
	for offers = slices.Clone(offers); !offers.Empty(); {
		for o := range offers.All() {
			sort := q.alike(o, offers)
			out, offers = append(out, sort), offers.Less(sort)
			break
		}
	}
	return out
}
