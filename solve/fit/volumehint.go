package fit

import (
	"fmt"
	"slices"

	"karpenter/model"
)

// volumeHint says what would help a pod whose volumes can be used only where r
// holds, when none of the offers left is there.
func (c *Catalogue) volumeHint(pool int, left Bits, r model.Requirement) string {
	p := &c.Pools[pool]
	own, defined := p.Requirements.Get(r.Key)
	switch {
	case r.Key == model.FieldName:
		return "the scheduler has chosen an existing node for the volume, and waits for it to be made there"
	case r.Operator() == model.DoesNotExist:
		return "no node can use all of its volumes; they have to be in one place, or used by pods apart"
	case r.Key == model.LabelHostname:
		return "the volume is tied to an existing node, which is full or gone"
	case len(c.known(Range{To: len(c.Offers)}, r.Key)) == 0 && !defined && !c.wellKnown.Has(r.Key):
		return c.undefined(p, r.Key)
	}
	offered := c.known(p.Offers, r.Key)
	reach := slices.ContainsFunc(offered, r.Has)
	switch here := c.values(left, own); {
	case reach && len(here) > 0 && !slices.ContainsFunc(offered, func(v string) bool { return r.Has(v) && own.Has(v) }):
		return fmt.Sprintf("the NodePool's requirement %s excludes where the volume is; allow %s there", own, listed(filter(offered, r.Has)))
	case reach:
		return fmt.Sprintf("the steps above leave %s only; relax one of them, or restore the volume there from a snapshot", listed(here))
	case len(offered) > 0:
		return fmt.Sprintf("the NodeClass offers %s only; have it offer where the volume is, or restore the volume from a snapshot", listed(offered))
	}
	return "the NodePool has " + own.String()
}

func filter(values []string, keep func(string) bool) []string {
	return slices.DeleteFunc(slices.Clone(values), func(v string) bool { return !keep(v) })
}
