// SPDX-License-Identifier: Apache-2.0

package capacitybuffer

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"karpenter/model"
)

// shares divides the limits of a namespace among its buffers. Resource quotas
// do not count pods that do not exist, so without these limits any user who can
// create a buffer could fill a NodePool. Older buffers come first.
type shares map[string]map[string]*ask // by namespace and name

// ask is what a buffer asks for.
type ask struct {
	created time.Time
	each    model.Resources // of one pod, itself included
	wanted  int             // pods
	granted int             // pods
}

// set records what the buffer requests, nil for nothing. It returns how many
// pods the buffer is granted, and the other buffers of the namespace that are
// granted more or fewer than before.
func (s shares) set(namespace, name string, a *ask, limits []model.Limit) (granted int, changed []string) {
	if a == nil {
		delete(s[namespace], name)
	} else {
		if s[namespace] == nil {
			s[namespace] = map[string]*ask{}
		}
		s[namespace][name] = a
	}
	all := s[namespace]
	if len(all) == 0 {
		delete(s, namespace)
	}
	left := slices.Clone(limits)
	for _, other := range slices.SortedFunc(maps.Keys(all), func(x, y string) int {
		return cmp.Or(all[x].created.Compare(all[y].created), strings.Compare(x, y))
	}) {
		before := all[other].granted
		all[other].grant(left)
		if other != name && all[other].granted != before {
			changed = append(changed, other)
		}
	}
	if a == nil {
		return 0, changed
	}
	return a.granted, changed
}

// grant takes the requests of as many pods as possible from what is left.
func (a *ask) grant(left []model.Limit) {
	a.granted = a.wanted
	for _, l := range left {
		if each := a.each.At(l.Resource); each > 0 {
			a.granted = min(a.granted, int(max(l.Max, 0)/each))
		}
	}
	for i, l := range left {
		left[i].Max -= int64(a.granted) * a.each.At(l.Resource)
	}
}

// limits returns the limits for all buffers of one namespace together.
func (r *Reconciler) limits() []model.Limit {
	most := r.Convert.Resources(r.Limits)
	var out []model.Limit
	for name := range r.Limits {
		i := r.Convert.Axis.Index(string(name))
		out = append(out, model.Limit{Resource: i, Max: most.At(i)})
	}
	return out
}

// limited returns those of the requests that there are limits for.
func (r *Reconciler) limited(requests corev1.ResourceList) corev1.ResourceList {
	out := corev1.ResourceList{}
	for name, q := range requests {
		if _, ok := r.Limits[name]; ok {
			out[name] = q
		}
	}
	return out
}

// text shows the limits.
func text(limits corev1.ResourceList) string {
	var out []string
	for _, name := range slices.Sorted(maps.Keys(limits)) {
		q := limits[name]
		out = append(out, string(name)+"="+q.String())
	}
	return strings.Join(out, ",")
}
