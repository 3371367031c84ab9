// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"fmt"
	"slices"
	"strings"

	"karpenter/model"
)

// Part is one part of what nodes cost: the instance, a volume, an address, or an
// amount that the user added.
type Part struct {
	Name         string  `json:"name"`
	PricePerHour float64 `json:"pricePerHour"` // dollars
}

// parts returns the parts of the price of a node; nil if that is the price of the
// instance alone, or is not known.
func parts(s *model.Snapshot, pool, instanceType, zone string, price model.Price) []Part {
	var out []Part
	for _, p := range priceParts(s, pool, instanceType, zone, price) {
		out = append(out, Part{p.Name, p.Price.Dollars()})
	}
	return out
}

func priceParts(s *model.Snapshot, pool, instanceType, zone string, price model.Price) []model.Part {
	p := poolOf(s, pool)
	if p == nil || len(p.Extras) == 0 {
		return nil
	}
	i := slices.IndexFunc(p.Types, func(t *model.InstanceType) bool { return t.Name == instanceType })
	if i < 0 {
		return nil
	}
	return p.Parts(price, p.Types[i].Capacity.At(model.CPU), zone)
}

// sums adds up parts of prices by name.
type sums struct {
	order []string
	of    map[string]model.Price
}

// node adds the parts of the price of a node. A price without parts is one of an
// instance.
func (x *sums) node(s *model.Snapshot, n *model.Node) {
	instanceType, _ := n.Labels.Value(model.LabelInstanceType)
	zone, _ := n.Labels.Value(model.LabelZone)
	all := priceParts(s, n.Pool, instanceType, zone, n.Price)
	if all == nil {
		all = []model.Part{{Name: model.PartInstance, Price: n.Price}}
	}
	for _, p := range all {
		if x.of == nil {
			x.of = map[string]model.Price{}
		}
		if _, known := x.of[p.Name]; !known {
			x.order = append(x.order, p.Name)
		}
		x.of[p.Name] += p.Price
	}
}

// parts returns the sums, nil if all is for instances.
func (x *sums) parts() []Part {
	if len(x.order) < 2 {
		return nil
	}
	var out []Part
	for _, name := range x.order {
		out = append(out, Part{name, x.of[name].Dollars()})
	}
	return out
}

// partsText writes parts on one line: "instance $0.1/h + /dev/xvda gp3: 20 GiB $0.0022/h".
func partsText(all []Part) string {
	texts := make([]string, len(all))
	for i, p := range all {
		texts[i] = fmt.Sprintf("%s %s", p.Name, dollars(p.PricePerHour))
	}
	return strings.Join(texts, " + ")
}
