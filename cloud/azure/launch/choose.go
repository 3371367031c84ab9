// SPDX-License-Identifier: Apache-2.0

package launch

import (
	"cmp"
	"errors"
	"hash/fnv"
	"slices"
	"strings"

	"karpenter/api/azure/v1beta1"
	v1 "karpenter/api/v1"
	"karpenter/cloud"
	"karpenter/model"
)

// Choose returns the cheapest way to launch the claim. At equal prices it prefers
// spot to on-demand, zones to regional placement, and types by name. Of zones that
// are then equal it takes one by the claim's UID, so that claims spread over the
// zones and a repeated launch chooses the same one. If nothing fits, the error is a
// cloud.InsufficientCapacityError.
func Choose(types []*cloud.InstanceType, claim *v1.NodeClaim) (cloud.Choice, error) {
	best := ties(types, claim)
	if len(best) == 0 {
		return cloud.Choice{}, &cloud.InsufficientCapacityError{Err: errors.New("no instance types available")}
	}
	least := slices.MinFunc(best, compare)
	best = slices.DeleteFunc(best, func(c cloud.Choice) bool { return compare(c, least) != 0 })
	return best[draw(claim, len(best))], nil
}

// ties returns the choices that cost least.
func ties(types []*cloud.InstanceType, claim *v1.NodeClaim) []cloud.Choice {
	var out []cloud.Choice
	for c := range cloud.Choices(types, cloud.Demand(claim), claim.Spec.Resources.Requests) {
		if len(out) > 0 && c.Offering.Price > out[0].Offering.Price {
			break
		}
		out = append(out, c)
	}
	return out
}

// compare orders choices of equal prices.
func compare(a, b cloud.Choice) int {
	return cmp.Or(
		cmp.Compare(rank(a.Offering), rank(b.Offering)),
		strings.Compare(a.Type.Name, b.Type.Name),
	)
}

// rank is lower for what is preferred.
func rank(o *cloud.Offering) int {
	out := 0
	if o.CapacityType() != model.Spot {
		out += 2
	}
	if scope, _ := o.Requirements.Value(v1beta1.PlacementScopeLabelKey); scope != v1beta1.PlacementScopeZonal {
		out++
	}
	return out
}

// draw returns a number below n that depends on the claim.
func draw(claim *v1.NodeClaim, n int) int {
	h := fnv.New64a()
	_, _ = h.Write([]byte(claim.UID)) // never fails
	return int(h.Sum64() % uint64(n))
}

// UltraSSD reports whether the claim demands that ultra disks can be attached.
func UltraSSD(claim *v1.NodeClaim) bool {
	r, ok := cloud.Demand(claim).Get(v1beta1.SKUUltraSSDLabelKey)
	return ok && r.Has("true") && !r.Has("false")
}
