// SPDX-License-Identifier: Apache-2.0

package fit

import (
	"fmt"
	"slices"

	"karpenter/model"
)

// volumeWording names where volumes can be used.
func volumeWording(r model.Requirement) string {
	if impossible(r) {
		return "volumes with no " + r.Key + " in common"
	}
	if r.Key == model.FieldName {
		return "volumes on node " + listed(r.Values)
	}
	return "volumes in " + r.String()
}

// impossible reports whether no label meets r, nor the lack of it.
func impossible(r model.Requirement) bool { return r.Operator() == model.DoesNotExist && r.Present }

// volumeHint says what would help a pod whose volumes can be used only where r
// holds, when none of the offers left is there.
func (c *Catalogue) volumeHint(pool int, left Bits, r model.Requirement) string {
	p := &c.Pools[pool]
	own, defined := p.Requirements.Get(r.Key)
	switch {
	case r.Key == model.FieldName:
		return "the scheduler has chosen an existing node for the volume, and waits for it to be made there"
	case impossible(r):
		return "no node can use them all; restore them in one place from snapshots, or use them in pods apart"
	case r.Key == model.LabelHostname:
		return "the volume is tied to an existing node, which is full or gone"
	case !c.launches(r.Key) && !defined && !c.wellKnown.Has(r.Key):
		return c.undefined(pool, r.Key)
	}
	offered := c.known(pool, r.Key)
	reach := slices.ContainsFunc(offered, r.Has)
	switch here := c.values(left, own); {
	case reach && len(here) > 0 && !slices.ContainsFunc(offered, func(v string) bool { return r.Has(v) && own.Has(v) }):
		return fmt.Sprintf("the NodePool's requirement %s excludes where they can be used; allow %s there", own, listed(filter(offered, r.Has)))
	case reach:
		return fmt.Sprintf("the steps above leave %s only; relax one of them, or restore the volumes there from snapshots", listed(here))
	case len(offered) > 0:
		return fmt.Sprintf("the NodeClass offers %s only; have it offer where they can be used, or restore the volumes there from snapshots", listed(offered))
	}
	return "the NodePool has " + own.String()
}

func filter(values []string, keep func(string) bool) []string {
	return slices.DeleteFunc(slices.Clone(values), func(v string) bool { return !keep(v) })
}
