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
	out := slices.Clone(offers)
	q.keepAlike(fit.Range{To: len(q.catalogue.Offers)}.Window(), out, offer)
	return out
}

// keepAlike is alike in a set of the window, which it changes.
func (q *problem) keepAlike(window fit.Window, set fit.Bits, offer int) {
	if id := q.reservation(offer); id != "" {
		q.catalogue.Reserved(id).Keep(window, set)
		return
	}
	set.Remove(window.Of(q.reservations.offers))
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
