// SPDX-License-Identifier: Apache-2.0

package devices

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/dynamic-resource-allocation/resourceclaim"
	"k8s.io/utils/ptr"

	"karpenter/cloud"
	"karpenter/kube/pods"
	"karpenter/model"
)

// Answer is what the ResourceClaims of a pod mean for where it can run.
type Answer struct {
	Claims []model.DeviceClaim  // without an allocation, in the pod's order; then the claim for extended resources
	Terms  []model.Requirements // where the allocated claims can be used: one of the terms must hold; none = anywhere
	// Refused says why no node can take the pod, in words that follow "pods with".
	Refused []string
	// Waits reports that the pod must not be planned yet: the scheduler has not
	// processed it, or is about to allocate a claim for another pod.
	Waits bool
	// Binds says that the scheduler is binding the pod to the node that its status names:
	// it has reserved devices there for it, and may wait for them to be attached.
	Binds bool
}

// mostConsumers is how many pods can use a claim at the same time.
const mostConsumers = resourcev1.ResourceClaimReservedForMaxSize

// Of returns the Answer for the pod, which need not be in the Store. Only pods
// in the Store count as other users of its claims.
func (s *Store) Of(p *corev1.Pod) Answer {
	var out Answer
	s.mu.RLock()
	defer s.mu.RUnlock()
	for i := range p.Spec.ResourceClaims {
		name, own, err := resourceclaim.Name(p, &p.Spec.ResourceClaims[i])
		if err == nil && name == nil {
			continue // none is needed
		}
		var c *resourcev1.ResourceClaim
		if err == nil {
			c = s.claims[p.Namespace+"/"+*name]
		}
		if c == nil || c.DeletionTimestamp != nil && c.Status.Allocation == nil || own && resourceclaim.IsForPod(p, c, true) != nil {
			out.Waits = true
			continue
		}
		s.add(&out, p, p.Spec.ResourceClaims[i].Name, c)
	}
	if len(s.serving) > 0 {
		s.serve(&out, p)
	}
	return out
}

// add adds to the Answer what one claim of the pod means.
func (s *Store) add(to *Answer, p *corev1.Pod, name string, c *resourcev1.ResourceClaim) {
	key := c.Namespace + "/" + c.Name
	to.Binds = to.Binds || c.Status.Allocation != nil && coming(p) && resourceclaim.IsReservedForPod(p, c, false)
	if c.Status.Allocation != nil && !s.movesWith(p, c) {
		if len(c.Status.ReservedFor) >= mostConsumers && p.Spec.NodeName == "" && !resourceclaim.IsReservedForPod(p, c, true) {
			to.Refused = append(to.Refused, fmt.Sprintf("ResourceClaim %s, which %d pods use, the most there can be", key, mostConsumers))
		}
		if selector := c.Status.Allocation.NodeSelector; selector != nil {
			to.Terms = both(to.Terms, s.terms(selector))
		}
		return
	}
	claim, problem := s.claim(c)
	if problem != "" {
		to.Refused = append(to.Refused, "ResourceClaim "+key+", "+problem)
		return
	}
	claim.Name = name
	if !pods.DaemonSet(p) { // what the next pod of a DaemonSet gets, on another node, does not depend on this one
		noWorse(claim.Requests, results(c))
	}
	for other, user := range s.byUse[key] {
		if other != keyOf(p) {
			claim.Shared = key
			to.Waits = to.Waits || c.Status.Allocation == nil && p.Spec.NodeName == "" && coming(user)
		}
	}
	to.Claims = append(to.Claims, claim)
}

// noWorse limits the requests of a pod that moves to the alternative that each of them
// has, and to better ones. Once the pod is gone, the pod that replaces it may have
// any.
func noWorse(requests []model.DeviceRequest, have []resourcev1.DeviceRequestAllocationResult) {
	for i := range requests {
		r := &requests[i]
		for _, h := range have {
			at := slices.IndexFunc(r.Ways, func(w model.DeviceWay) bool { return w.Name != "" && h.Request == r.Name+"/"+w.Name })
			if at >= 0 {
				r.Ways = r.Ways[:at+1]
				break
			}
		}
	}
}

// coming reports whether the scheduler has found a node for the pod and is
// about to bind it. The status of such a pod names the node.
func coming(p *corev1.Pod) bool {
	return p.Spec.NodeName == "" && p.DeletionTimestamp == nil && p.Status.NominatedNodeName != ""
}

// movesWith reports whether devices must be found for the claim, which has some, when the
// pod leaves its node: it is released then, as only pods there hold it. A PodGroup holds
// it as long as it exists. Devices that are of no single node are there again for the
// pod that comes next. While a pool of the claim is not published completely, as when its
// driver starts again, it returns false.
func (s *Store) movesWith(p *corev1.Pod, c *resourcev1.ResourceClaim) bool {
	if p.Spec.NodeName == "" || !slices.ContainsFunc(results(c), func(r resourcev1.DeviceRequestAllocationResult) bool {
		return s.pools[poolKey{r.Driver, r.Pool}].standing() == ofNode
	}) || slices.ContainsFunc(results(c), func(r resourcev1.DeviceRequestAllocationResult) bool {
		return s.pools[poolKey{r.Driver, r.Pool}].standing() == unknown
	}) {
		return false
	}
	for _, r := range c.Status.ReservedFor {
		if r.APIGroup != "" || r.Resource != "pods" {
			return false
		}
		if r.UID == p.UID {
			continue
		}
		holder := s.byUse[c.Namespace+"/"+c.Name][c.Namespace+"/"+r.Name]
		if holder == nil || holder.UID != r.UID || holder.Spec.NodeName != p.Spec.NodeName {
			return false
		}
	}
	return true
}

// both returns terms of which one holds exactly if a term of a and a term of b
// hold.
func both(a, b []model.Requirements) []model.Requirements {
	if len(a) == 0 {
		return b
	}
	var out []model.Requirements
	for _, x := range a {
		for _, y := range b {
			out = append(out, x.And(y...))
		}
	}
	return out
}

// claim converts the claim, without its name. If that is not possible, it
// returns the reason, in words that follow the name of the claim.
func (s *Store) claim(c *resourcev1.ResourceClaim) (out model.DeviceClaim, problem string) {
	for i := range c.Spec.Devices.Requests {
		r, problem := s.request(&c.Spec.Devices.Requests[i])
		if problem != "" {
			return out, problem
		}
		out.Requests = append(out.Requests, r)
	}
	for _, k := range c.Spec.Devices.Constraints {
		next := model.DeviceConstraint{Requests: k.Requests, Match: string(ptr.Deref(k.MatchAttribute, "")), Distinct: string(ptr.Deref(k.DistinctAttribute, ""))}
		if next.Match == "" && next.Distinct == "" {
			return out, "which has a constraint of an unknown kind"
		}
		out.Constraints = append(out.Constraints, next)
	}
	return out, ""
}

func (s *Store) request(r *resourcev1.DeviceRequest) (out model.DeviceRequest, problem string) {
	out.Name = r.Name
	ways := r.FirstAvailable
	if e := r.Exactly; e != nil {
		ways = []resourcev1.DeviceSubRequest{{
			DeviceClassName: e.DeviceClassName, Selectors: e.Selectors, AllocationMode: e.AllocationMode, Count: e.Count,
			Tolerations: e.Tolerations, Capacity: e.Capacity, DerivedAttributes: e.DerivedAttributes,
		}}
	}
	if len(ways) == 0 {
		return out, "whose request " + r.Name + " is of an unknown kind"
	}
	for i := range ways {
		w, problem := s.way(&ways[i])
		if problem != "" {
			return out, "whose request " + r.Name + " " + problem
		}
		w.Admin = r.Exactly != nil && ptr.Deref(r.Exactly.AdminAccess, false)
		out.Ways = append(out.Ways, w)
	}
	return out, ""
}

// way converts one alternative of a request. If that is not possible, it
// returns the reason, in words that follow the name of the request.
func (s *Store) way(w *resourcev1.DeviceSubRequest) (out model.DeviceWay, problem string) {
	class := s.classes[w.DeviceClassName]
	if class == nil {
		return out, "is for DeviceClass " + w.DeviceClassName + ", which does not exist"
	}
	out = model.DeviceWay{Name: w.Name, Class: w.DeviceClassName}
	if out.Selectors, problem = selectorsOf(slices.Concat(class.Spec.Selectors, w.Selectors)); problem != "" {
		return out, problem
	}
	switch mode := cmp.Or(w.AllocationMode, resourcev1.DeviceAllocationModeExactCount); mode {
	case resourcev1.DeviceAllocationModeExactCount:
		out.Count = int(cmp.Or(w.Count, 1))
	case resourcev1.DeviceAllocationModeAll:
		out.All = true
	default:
		return out, fmt.Sprintf("has the unknown allocationMode %s", mode)
	}
	if len(w.DerivedAttributes) > 0 {
		return out, "has derivedAttributes (not supported yet)"
	}
	for _, t := range w.Tolerations {
		if t.Operator == "" || t.Operator == resourcev1.DeviceTolerationOpEqual || t.Operator == resourcev1.DeviceTolerationOpExists {
			out.Tolerations = append(out.Tolerations, model.Toleration{
				Key: t.Key, Value: t.Value, Effect: model.Effect(t.Effect), Exists: t.Operator == resourcev1.DeviceTolerationOpExists,
			})
		}
	}
	out.Takes, problem = amounts(w.Capacity)
	return out, problem
}

func selectorsOf(all []resourcev1.DeviceSelector) (out []string, problem string) {
	for _, sel := range all {
		if sel.CEL == nil {
			return nil, "has a selector of an unknown kind"
		}
		out = append(out, sel.CEL.Expression)
	}
	return out, ""
}

func amounts(c *resourcev1.CapacityRequirements) (out []model.DeviceAmount, problem string) {
	if c == nil {
		return nil, ""
	}
	for _, name := range slices.Sorted(maps.Keys(c.Requests)) {
		q := c.Requests[name]
		v := cloud.Thousandths(q)
		if q.Sign() < 0 || v == cloud.MostThousandths {
			return nil, fmt.Sprintf("asks for %s of %s, which no device has", q.String(), name)
		}
		out = append(out, model.DeviceAmount{Name: string(name), Value: v})
	}
	return out, ""
}
