// SPDX-License-Identifier: Apache-2.0

package devices

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"karpenter/model"
)

// serving returns which class serves which extended resource. A class always serves
// one that is named after it. Of several classes with one name the newest serves it,
// of equally old ones the first by name.
func serving(classes map[string]*resourcev1.DeviceClass) map[string]*resourcev1.DeviceClass {
	out := map[string]*resourcev1.DeviceClass{}
	for _, name := range slices.Sorted(maps.Keys(classes)) {
		c := classes[name]
		out[resourcev1.ResourceDeviceClassPrefix+name] = c
		if r := c.Spec.ExtendedResourceName; r != nil {
			if known := out[*r]; known == nil || c.CreationTimestamp.After(known.CreationTimestamp.Time) {
				out[*r] = c
			}
		}
	}
	return out
}

// useOf returns the key in byUse for pods that request the resource. No claim
// has such a name.
func useOf(resource string) string { return "resource " + resource }

// resourcesOf returns the uses of resources that a DeviceClass may serve, each once.
func resourcesOf(p *corev1.Pod) []string {
	var out []string
	for _, containers := range [][]corev1.Container{p.Spec.InitContainers, p.Spec.Containers} {
		for i := range containers {
			for name, q := range containers[i].Resources.Requests {
				if mayBeServed(name) && !q.IsZero() && !slices.Contains(out, useOf(string(name))) {
					out = append(out, useOf(string(name)))
				}
			}
		}
	}
	slices.Sort(out)
	return out
}

// mayBeServed reports whether the scheduler asks DeviceClasses for the resource.
func mayBeServed(name corev1.ResourceName) bool {
	text := string(name)
	return strings.HasPrefix(text, resourcev1.ResourceDeviceClassPrefix) ||
		strings.Contains(text, "/") && !strings.Contains(text, corev1.ResourceDefaultNamespacePrefix) && !strings.HasPrefix(text, corev1.DefaultResourceRequestsPrefix)
}

// owner returns the keys in byUse of the pod for whose extended resources the
// claim was created, and records that the claim exists or no longer exists.
func (s *Store) owner(c *resourcev1.ResourceClaim, is bool) []string {
	if c == nil || c.Annotations[resourcev1.ExtendedResourceClaimAnnotation] != "true" {
		return nil
	}
	o := metav1.GetControllerOfNoCopy(c)
	if o == nil || o.Kind != "Pod" {
		return nil
	}
	key, claim := c.Namespace+"/"+o.Name, c.Namespace+"/"+c.Name
	if is {
		s.made[key] = claim
	} else if s.made[key] == claim {
		delete(s.made, key)
	}
	return s.byPod[key]
}

// serve adds what the pod needs of devices for extended resources that classes serve:
// the claim that the scheduler will make, with a request for each container that has
// any. An init container that ends uses what later containers request; of what such
// containers request beyond that, the most is requested once.
//
// Once the scheduler has made the claim, the pod waits: it is being bound, or the
// scheduler deletes the claim and looks at the pod again.
func (s *Store) serve(to *Answer, p *corev1.Pod) {
	claim := model.DeviceClaim{}
	var names []string
	for _, use := range resourcesOf(p) {
		resource := strings.TrimPrefix(use, useOf(""))
		class := s.serving[resource]
		if class == nil {
			continue
		}
		selectors, problem := selectorsOf(class.Spec.Selectors)
		if problem != "" {
			to.Refused = append(to.Refused, fmt.Sprintf("DeviceClass %s, which %s", class.Name, problem))
			continue
		}
		names = append(names, resource)
		for _, n := range countsOf(p, corev1.ResourceName(resource)) {
			claim.Requests = append(claim.Requests, model.DeviceRequest{
				Name: n.name, Resource: resource, Ways: []model.DeviceWay{{Class: class.Name, Selectors: selectors, Count: int(n.count)}},
			})
		}
	}
	if len(claim.Requests) == 0 {
		return
	}
	if made := s.claims[s.made[keyOf(p)]]; made != nil && p.Spec.NodeName == "" {
		if o := metav1.GetControllerOfNoCopy(made); o != nil && o.UID == p.UID {
			to.Waits = true
			return
		}
	}
	slices.SortFunc(claim.Requests, func(a, b model.DeviceRequest) int { return cmp.Compare(a.Name, b.Name) })
	claim.Name = strings.Join(names, " and ")
	to.Claims = append(to.Claims, claim)
}

// count is the number of devices that a container requests.
type count struct {
	name  string
	count int64
}

// countsOf returns the requests for a resource that the scheduler makes for the pod.
func countsOf(p *corev1.Pod, resource corev1.ResourceName) []count {
	containers := slices.Concat(p.Spec.InitContainers, p.Spec.Containers)
	ends := func(i int) bool {
		return i < len(p.Spec.InitContainers) && ptr.Deref(containers[i].RestartPolicy, "") != corev1.ContainerRestartPolicyAlways
	}
	wants := func(i int) int64 {
		q := containers[i].Resources.Requests[resource]
		n, _ := q.AsInt64()
		return n
	}
	var out []count
	var most count
	later := int64(0)
	for i := len(containers) - 1; i >= 0; i-- {
		n := wants(i)
		switch {
		case n == 0:
		case !ends(i):
			later += n
			out = append(out, count{requestName(&containers[i], i, resource), n})
		case n-later >= most.count && n > later:
			most = count{requestName(&containers[i], i, resource), n - later}
		}
	}
	if most.count > 0 {
		out = append(out, most)
	}
	return out
}

// requestName returns the name that the scheduler gives the request.
func requestName(c *corev1.Container, at int, resource corev1.ResourceName) string {
	i, _ := slices.BinarySearch(slices.Sorted(maps.Keys(c.Resources.Requests)), resource)
	return fmt.Sprintf("container-%d-request-%d", at, i)
}
