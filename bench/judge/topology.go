// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"fmt"
	"math"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"

	"karpenter/bench/workload"
)

// group is pods that the same terms select and that carry the same terms.
type group struct {
	pod      *corev1.Pod // any of them
	carries  []*term
	selected []*term // by terms of any pod
}

// topology checks the required constraints between pods, for the cluster that
// the plan ends at: every pod the plan has placed must be able to be where it
// is, and pods bound before must not be disturbed.
func (j *Judge) topology() {
	for _, text := range j.unsure {
		j.fault("%s", text)
	}
	for i := range j.groups {
		g := &j.groups[i]
		g.selected = g.selected[:0]
		for _, t := range j.all {
			if t.matches(g.pod) {
				g.selected = append(g.selected, t)
			}
		}
	}
	for _, t := range j.all {
		t.counts, t.total = map[string]int{}, 0
	}
	j.order()
	checked := map[string]bool{}
	for i := range j.sites {
		s := &j.sites[i]
		for _, a := range s.pods {
			for _, t := range j.groups[a.group].carries {
				where := s.domain(t.key)
				id := fmt.Sprint(a.group, t.id, where)
				if checked[id] {
					continue
				}
				checked[id] = true
				if t.kind == spreadTerm {
					j.spread(a, t, where)
				}
			}
		}
	}
	j.apart()
}

// put counts a pod in its domains.
func (j *Judge) put(s *site, a *asked) {
	for _, t := range j.groups[a.group].selected {
		t.total++
		if where := s.domain(t.key); where != "" {
			t.counts[where]++
		}
	}
}

// order finds an order in which the scheduler could have bound the pods as far
// as affinity is concerned, and counts them.
func (j *Judge) order() {
	type waiting struct {
		site *site
		pod  *asked
	}
	var left []waiting
	for i := range j.sites {
		s := &j.sites[i]
		for _, a := range s.before {
			j.put(s, a)
		}
		for _, a := range s.pods {
			if j.attracted(a) {
				left = append(left, waiting{s, a})
			} else {
				j.put(s, a)
			}
		}
	}
	for len(left) > 0 {
		n := len(left)
		left = slices.DeleteFunc(left, func(w waiting) bool {
			ok := j.joins(w.site, w.pod)
			if ok {
				j.put(w.site, w.pod)
			}
			return ok
		})
		if len(left) < n {
			continue
		}
		at := slices.IndexFunc(left, func(w waiting) bool { return j.founds(w.site, w.pod) })
		if at < 0 {
			break
		}
		j.put(left[at].site, left[at].pod)
		left = slices.Delete(left, at, at+1)
	}
	for _, w := range left {
		j.fault("pod %s has no pod it needs beside it on %s", Key(w.pod.pod), w.site.name)
		j.put(w.site, w.pod)
	}
}

// attracted reports whether the pod has required affinity to others.
func (j *Judge) attracted(a *asked) bool {
	return slices.ContainsFunc(j.groups[a.group].carries, func(t *term) bool { return t.kind == affinityTerm })
}

// joins reports whether the pods that the pod needs are in its domains.
func (j *Judge) joins(s *site, a *asked) bool {
	for _, t := range j.groups[a.group].carries {
		if where := s.domain(t.key); t.kind == affinityTerm && (where == "" || t.counts[where] == 0) {
			return false
		}
	}
	return true
}

// founds reports whether the pod can be the first of those that need each other.
func (j *Judge) founds(s *site, a *asked) bool {
	for _, t := range j.groups[a.group].carries {
		if t.kind == affinityTerm && (s.domain(t.key) == "" || t.total > 0 || !t.matches(a.pod)) {
			return false
		}
	}
	return true
}

// spread checks the domain that pods like a were placed in.
func (j *Judge) spread(a *asked, t *term, where string) {
	if where == "" {
		j.fault("pods like %s need a settled %s", Key(a.pod), t.key)
		return
	}
	domains := j.eligible(a, t)
	fewest := math.MaxInt
	for domain := range domains {
		fewest = min(fewest, t.counts[domain])
	}
	if len(domains) == 0 || int32(len(domains)) < t.domains {
		fewest = 0
	}
	if skew := t.counts[where] - fewest; skew > int(t.skew) {
		j.fault("pods like %s are spread over %s with a skew of %d in %s", Key(a.pod), t.key, skew, where)
	}
}

// spreadKeys returns the labels by which the pod must be spread.
func (j *Judge) spreadKeys(a *asked) []string {
	var out []string
	for _, t := range j.groups[a.group].carries {
		if t.kind == spreadTerm {
			out = append(out, t.key)
		}
	}
	return out
}

// eligible returns the domains that count for the pod: of nodes that have all labels by which
// it must be spread.
func (j *Judge) eligible(a *asked, t *term) map[string]bool {
	keys := j.spreadKeys(a)
	id := fmt.Sprint(a.class, t.key, t.affinity, t.taints, keys)
	if out, ok := j.domains[id]; ok {
		return out
	}
	wants := nodeaffinity.GetRequiredNodeAffinity(a.pod)
	out, seen := map[string]bool{}, map[string]bool{}
	for i := range j.sites {
		s := &j.sites[i]
		where := s.domain(t.key)
		lacks := func(key string) bool { return s.domain(key) == "" }
		if s.node == nil || seen[where] && out[where] || slices.ContainsFunc(keys, lacks) {
			continue
		}
		seen[where] = true
		if match, err := wants.Match(s.node); t.affinity && (err != nil || !match) {
			continue
		}
		if t.taints && !workload.Tolerates(s.node, a.pod) {
			continue
		}
		out[where] = true
	}
	j.domains[id] = out
	return out
}

// crowd is the pods of one domain that an anti-affinity term is about.
type crowd struct {
	now, before struct{ both, carriers, selected int }
	example     *asked
}

// pairs returns how many pairs of pods violate the term.
func pairs(both, carriers, selected int) int {
	return both*(both-1)/2 + both*(carriers+selected) + carriers*selected
}

// apart checks anti-affinity: of the pods that carry a term and those that it
// selects, none share a domain unless both were there before.
func (j *Judge) apart() {
	crowds := map[crowdKey]*crowd{}
	for i := range j.sites {
		s := &j.sites[i]
		for _, a := range s.before {
			j.crowd(crowds, s, a, false)
		}
		for _, a := range s.pods {
			j.crowd(crowds, s, a, true)
		}
	}
	for id, c := range crowds {
		n, o := c.now, c.before
		if pairs(n.both, n.carriers, n.selected) > pairs(o.both, o.carriers, o.selected) {
			j.fault("%d pods like %s share %s %s", n.both+n.carriers+n.selected, Key(c.example.pod), id.term.key, id.where)
		}
	}
}

type crowdKey struct {
	term  *term
	where string
}

// crowd counts a pod in the crowds it belongs to.
func (j *Judge) crowd(crowds map[crowdKey]*crowd, s *site, a *asked, fresh bool) {
	g := &j.groups[a.group]
	note := func(t *term, carries, selected bool) {
		where := s.domain(t.key)
		if where == "" {
			if carries && fresh {
				j.fault("pods like %s need a settled %s", Key(a.pod), t.key)
			}
			return
		}
		id := crowdKey{t, where}
		c := crowds[id]
		if c == nil {
			c = &crowd{}
			crowds[id] = c
		}
		for _, n := range []*struct{ both, carriers, selected int }{&c.now, &c.before} {
			switch {
			case carries && selected:
				n.both++
			case carries:
				n.carriers++
			default:
				n.selected++
			}
			if fresh {
				break // it was not there before
			}
		}
		if fresh {
			c.example = a
		}
	}
	for _, t := range g.carries {
		if t.kind == antiTerm {
			note(t, true, slices.Contains(g.selected, t))
		}
	}
	for _, t := range g.selected {
		if t.kind == antiTerm && !slices.Contains(g.carries, t) {
			note(t, false, true)
		}
	}
}

// ports checks that no two pods of a node use the same port of it.
func (j *Judge) ports() {
	for i := range j.sites {
		s := &j.sites[i]
		var used []corev1.ContainerPort
		for k, a := range slices.Concat(s.before, s.pods) {
			others := len(used)
			for _, c := range a.pod.Spec.Containers {
				for _, p := range c.Ports {
					if p.HostPort == 0 {
						continue
					}
					if k >= len(s.before) && slices.ContainsFunc(used[:others], func(o corev1.ContainerPort) bool { return clash(p, o) }) {
						j.fault("host port %d of pod %s is taken on %s", p.HostPort, Key(a.pod), s.name)
					}
					used = append(used, p)
				}
			}
		}
	}
}

func clash(a, b corev1.ContainerPort) bool {
	everywhere := func(ip string) bool { return ip == "" || ip == "0.0.0.0" }
	protocol := func(p corev1.Protocol) corev1.Protocol {
		if p == "" {
			return corev1.ProtocolTCP
		}
		return p
	}
	return a.HostPort == b.HostPort && protocol(a.Protocol) == protocol(b.Protocol) &&
		(a.HostIP == b.HostIP || everywhere(a.HostIP) || everywhere(b.HostIP))
}
