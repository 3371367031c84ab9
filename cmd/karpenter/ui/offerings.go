// SPDX-License-Identifier: Apache-2.0

package ui

import (
	"cmp"
	"slices"
	"strings"

	"karpenter/model"
)

// offering is a way to launch an instance type.
type offering struct {
	InstanceType string   `json:"instanceType"`
	Zone         string   `json:"zone"`
	CapacityType string   `json:"capacityType"`
	Reservation  string   `json:"reservation,omitempty"`
	Left         *int64   `json:"reservationLeft,omitempty"` // instances
	CostPerHour  float64  `json:"costPerHour"`               // of a node; 0 = not known
	Available    bool     `json:"available"`                 // false = out of capacity, or its price is not known
	Pools        []string `json:"nodePools"`                 // whose requirements allow it
	VCPU         float64  `json:"vCPU"`
	Memory       int64    `json:"memoryBytes"`
	Architecture string   `json:"architecture,omitempty"`

	price model.Price
	text  string // what is searched, in lower case
}

// offerings returns all offerings of all NodePools: those that the requirements of one allow before others, the cheapest
// first and those without a known price last. Pools that pay the same for one share a row.
func offerings(s *model.Snapshot) []offering {
	type key struct {
		instanceType, zone, capacityType, reservation string
		price                                         model.Price
		available                                     bool
	}
	at := map[key]int{}
	out := []offering{}
	for i := range s.Pools {
		pool := &s.Pools[i]
		for _, t := range pool.Types {
			for j := range t.Offerings {
				o := &t.Offerings[j]
				k := key{t.Name, o.Zone, o.CapacityType, o.ReservationID, o.Price, o.Available}
				_, kind := t.Requirements.Intersects(pool.Requirements)
				_, place := o.Requirements.Intersects(pool.Requirements)
				if row, known := at[k]; known {
					if kind && place {
						out[row].Pools = append(out[row].Pools, pool.Name)
					}
					continue
				}
				at[k] = len(out)
				row := offering{
					InstanceType: t.Name, Zone: o.Zone, CapacityType: o.CapacityType, Reservation: o.ReservationID,
					CostPerHour: o.Price.Dollars(), Available: o.Available, Pools: []string{},
					VCPU: float64(t.Capacity.At(model.CPU)) / 1000, Memory: t.Capacity.At(model.Memory), price: o.Price,
				}
				row.Architecture, _ = t.Requirements.Value(model.LabelArch)
				if kind && place {
					row.Pools = append(row.Pools, pool.Name)
				}
				if o.ReservationID != "" {
					left := o.ReservationLeft
					row.Left = &left
				}
				out = append(out, row)
			}
		}
	}
	for i := range out {
		o := &out[i]
		sold := "available"
		switch {
		case o.Available:
		case o.price == 0:
			sold = "no-price"
		default:
			sold = "sold-out"
		}
		o.text = strings.ToLower(strings.Join(append([]string{o.InstanceType, o.Zone, o.CapacityType, o.Reservation, o.Architecture, sold}, o.Pools...), " "))
	}
	slices.SortFunc(out, func(a, b offering) int {
		return cmp.Or(order(len(a.Pools) == 0, len(b.Pools) == 0), order(a.price == 0, b.price == 0), cmp.Compare(a.price, b.price), cmp.Compare(a.InstanceType, b.InstanceType), cmp.Compare(a.Zone, b.Zone), cmp.Compare(a.CapacityType, b.CapacityType))
	})
	return out
}

// offeringList is the offerings that were found.
type offeringList struct {
	Total     int        `json:"total"`   // offerings that there are
	Matched   int        `json:"matched"` // that every word was found in
	Offerings []offering `json:"offerings"`
}

// search returns the first offerings that every word of the query is found in.
func (s *state) search(query string, most int) offeringList {
	words := strings.Fields(strings.ToLower(query))
	out := offeringList{Total: len(s.offers), Offerings: []offering{}}
	for i := range s.offers {
		o := &s.offers[i]
		if slices.ContainsFunc(words, func(w string) bool { return !strings.Contains(o.text, w) }) {
			continue
		}
		out.Matched++
		if len(out.Offerings) < most {
			out.Offerings = append(out.Offerings, *o)
		}
	}
	return out
}
