// SPDX-License-Identifier: Apache-2.0

package world

import "karpenter/model"

// reservation returns the reservation that a claim which is not launched will
// take from: the provider has not counted it yet.
func (w *World) reservation(m *machine) string {
	if ct, _ := m.claim.Requirements.Value(model.LabelCapacityType); m.launched() || ct != model.Reserved {
		return ""
	}
	for _, t := range w.types[m.label(model.LabelNodePool)] {
		for i := range t.Offerings {
			if o := &t.Offerings[i]; o.ReservationID != "" && names(m.claim.Requirements, o) {
				return o.ReservationID
			}
		}
	}
	return ""
}

// names reports whether the requirements ask for the offering's reservation, by
// the label that the offering has for it.
func names(rs model.Requirements, o *model.Offering) bool {
	for _, r := range o.Requirements {
		if !r.Complement && len(r.Values) == 1 && r.Values[0] == o.ReservationID {
			asked, _ := rs.Value(r.Key)
			return asked == o.ReservationID
		}
	}
	return false
}
