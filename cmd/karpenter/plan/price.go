// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"slices"
	"strings"

	v1 "karpenter/api/v1"
	"karpenter/cloud/nodeprice"
	"karpenter/model"
)

// extras says what the prices of nodes have besides their instances.
func extras(s *model.Snapshot) []string {
	pools := map[string][]string{}
	var order []string
	for i := range s.Pools {
		text := extrasText(s.Pools[i].Extras)
		if text == "" {
			continue
		}
		if pools[text] == nil {
			order = append(order, text)
		}
		pools[text] = append(pools[text], s.Pools[i].Name)
	}
	var out []string
	for _, text := range order {
		noun := "NodePool"
		if len(pools[text]) > 1 {
			noun = "NodePools"
		}
		out = append(out, fmt.Sprintf("the price of each node of %s %s includes %s", noun, some(pools[text]), text))
	}
	return out
}

func extrasText(all []model.Extra) string {
	texts := make([]string, len(all))
	for i, e := range all {
		texts[i] = fmt.Sprintf("%s $%s/h", e.Name, Price(e.Price.Dollars()))
		if e.Zone != "" {
			texts[i] += " in " + e.Zone
		}
	}
	return strings.Join(texts, ", ")
}

// amounts are what the user adds to the prices of the pool's nodes.
func amounts(p *model.Pool) nodeprice.Amounts {
	var out nodeprice.Amounts
	for _, e := range p.Extras {
		switch {
		case e.Name == nodeprice.PerNode && !e.VCPU:
			out.Node = e.Price
		case e.Name == nodeprice.PerVCPU && e.VCPU:
			out.VCPU = e.Price
		}
	}
	return out
}

// reprice has the pool, which costs what from does, cost what the annotations of
// its manifest say. An amount without an annotation stays: whether that is the
// setting of the controller is not known here.
func (a *applied) reprice(p *v1.NodePool, out, from *model.Pool) {
	was := amounts(from)
	out.Types, out.Extras = from.Types, from.Extras
	is, err := was.Of(p)
	if err != nil {
		a.notes = append(a.notes, fmt.Sprintf("NodePool %s keeps its additional prices: %s", p.Name, err))
	}
	if is == was {
		return
	}
	out.Extras = slices.DeleteFunc(slices.Clone(from.Extras), func(e model.Extra) bool {
		return e.Name == nodeprice.PerNode || e.Name == nodeprice.PerVCPU
	})
	out.Extras = append(out.Extras, is.Extras()...)
	out.Types = make([]*model.InstanceType, len(from.Types))
	cpu := map[string]int64{}
	for i, t := range from.Types {
		out.Types[i], cpu[t.Name] = t.Without(from.Extras).With(out.Extras), t.Capacity.At(model.CPU)
	}
	for i := range a.next.Nodes {
		n := &a.next.Nodes[i]
		name, _ := n.Labels.Value(model.LabelInstanceType)
		if n.Pool == p.Name && n.Price != 0 {
			n.Price += model.Extras(is.Extras(), cpu[name], "") - model.Extras(was.Extras(), cpu[name], "")
		}
	}
}
