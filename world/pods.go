// SPDX-License-Identifier: Apache-2.0

package world

import (
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"karpenter/model"
)

// pod is a Pod with what it belongs to.
type pod struct {
	Pod
	key     string
	shape   *shape
	group   *group    // nil once it has ended
	at      int       // place in the group's waiting
	asked   int       // the space's, when the group was found
	budgets []*budget // that select it, sorted by name
	// doubted is since when it can not run on the node that it Awaits, zero = it can, and
	// forsaken that it has been so for too long.
	doubted  time.Time
	forsaken bool
	// launches are the claims created for it, oldest first.
	launches []launched
	// moved is when the pod in whose place it was made had to leave a node that
	// was removed; zero = none had.
	moved time.Time
}

// host is the pods bound to one node name that have not ended, sorted by key.
type host struct {
	pods []*pod
}

// shape is a model.Shape some pod has.
type shape struct {
	*model.Shape
	users    int              // pods with the shape, and daemons
	groups   map[*peer]*group // those of them that have not ended
	anti     []model.PodTerm  // its required anti-affinity
	byName   bool             // asks for nodes by name
	features []string         // labels for those that it demands
	names    []string         // of resources that it borrows from the axis

	selectors []*selector // as long as there are groups
}

// space is what is in one namespace.
type space struct {
	pods    map[string]*pod
	budgets map[string]*budget
	peers   peers // of pods that have not ended
	asked   int   // how often that what is asked about the pods has changed
}

// budget is a DisruptionBudget of a namespace.
type budget struct{ DisruptionBudget }

// plan is a decision about a pod.
type plan struct {
	target string // Node or NodeClaim; "" = none, whatever the pod's status says
	pod    string // key
	bound  bool   // it runs on a node that is to go away
	asked  string // node the pod's status was last to name
	drops  int    // how often that has been undone by others
}

func byPodKey(p *pod, key string) int { return strings.Compare(p.key, key) }

// SetPod takes in a Pod that is new or changed.
func (w *World) SetPod(p Pod) {
	w.mu.Lock()
	key := p.Key()
	old := w.pods[key]
	if old != nil && samePod(old.Pod, p) {
		w.notifyIf(old.asks(), p.UID)
		return
	}
	next := &pod{Pod: p, key: key}
	if old != nil && maps.Equal(old.Labels, p.Labels) {
		next.budgets = old.budgets
	} else {
		next.budgets = w.space(p.Namespace).selecting(p.Labels)
	}
	switch {
	case old == nil:
		w.inheritLaunches(next)
		w.succeed(next)
	case old.UID != p.UID:
		w.bequeath(old)
		w.ends(old)
		w.inheritLaunches(next)
		w.succeed(next)
	case old.Shape.Key == p.Shape.Key:
		next.launches = old.launches
	}
	if old != nil && old.UID == p.UID {
		next.moved = old.moved
		if old.Awaits == p.Awaits {
			next.doubted, next.forsaken = old.doubted, old.forsaken
		}
		if !old.Terminating && (p.Terminating || p.Terminal) {
			w.ends(old)
		}
	}
	if old != nil {
		w.removePod(old)
		w.follow(old, &p)
		if old.UID != p.UID || p.Terminal || p.Node != "" && p.Node != old.Node {
			w.unplan(old.UID)
		}
	}
	w.addPod(next)
	w.notifyIf(next.asks(), p.UID)
}

func samePod(a, b Pod) bool {
	if a.Shape.Key != b.Shape.Key {
		return false
	}
	b.Shape, b.Unknown = a.Shape, a.Unknown
	return reflect.DeepEqual(a, b)
}

// DeletePod takes in that the Pod is gone.
func (w *World) DeletePod(namespace, name string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if p := w.pods[namespace+"/"+name]; p != nil {
		w.bequeath(p)
		if !p.Terminating {
			w.ends(p)
		}
		w.removePod(p)
		w.unplan(p.UID)
	}
}

// addPod enters the pod wherever it counts.
func (w *World) addPod(p *pod) {
	p.shape = w.intern(p.Shape, p.Unknown)
	p.Shape, p.Unknown = p.shape.Shape, nil
	w.pods[p.key] = p
	w.space(p.Namespace).pods[p.key] = p
	w.followDaemon(p)
	w.live(p)
	w.enlist(p)
	if p.Nominated != "" && p.Node == "" && !p.Terminal {
		w.named[p.UID] = p
	}
	w.bind(p, 1)
	w.expect(p)
	if p.Terminal {
		return
	}
	if len(p.shape.groups) == 0 {
		w.enter(p.shape)
	}
	p.asked = w.space(p.Namespace).asked
	w.join(p, w.meet(p.Namespace, p.Labels))
	if p.Node == "" {
		return
	}
	h := w.hosts[p.Node]
	if h == nil {
		h = &host{}
		w.hosts[p.Node] = h
	}
	i, _ := slices.BinarySearchFunc(h.pods, p.key, byPodKey)
	h.pods = slices.Insert(h.pods, i, p)
	w.touchHost(p.Node)
}

// removePod undoes addPod.
func (w *World) removePod(p *pod) {
	delete(w.pods, p.key)
	delete(w.named, p.UID)
	w.bind(p, -1)
	w.unexpect(p)
	w.unlive(p)
	w.discharge(p)
	if p.group != nil {
		w.part(p)
		if len(p.shape.groups) == 0 {
			w.leave(p.shape)
		}
	}
	s := w.space(p.Namespace)
	delete(s.pods, p.key)
	w.dropSpace(p.Namespace, s)
	w.release(p.shape)
	if h := w.hosts[p.Node]; h != nil {
		if i, ok := slices.BinarySearchFunc(h.pods, p.key, byPodKey); ok {
			h.pods = slices.Delete(h.pods, i, i+1)
			w.touchHost(p.Node)
		}
		if len(h.pods) == 0 {
			delete(w.hosts, p.Node)
		}
	}
}

// bind counts the pod, or counts it no more, if the scheduler is binding it to a node.
func (w *World) bind(p *pod, by int) {
	if p.Binding == "" || p.Node != "" || p.Terminal {
		return
	}
	if w.binding[p.Binding] += by; w.binding[p.Binding] == 0 {
		delete(w.binding, p.Binding)
	}
	w.touchHost(p.Binding)
}

// touchHost has the machine of a node name looked at again.
func (w *World) touchHost(node string) {
	if m := w.machines[w.nodeIDs[node]]; m != nil {
		w.touch(m)
	}
}

// intern returns the one shape there is for a key, with one more user. Its
// requests include the unknown ones.
func (w *World) intern(s *model.Shape, unknown map[string]int64) *shape {
	out := w.shapes[s.Key]
	if out == nil {
		names := slices.Sorted(maps.Keys(unknown))
		if len(names) > 0 {
			whole := *s
			for _, name := range names {
				whole.Requests = whole.Requests.With(w.axis.Borrow(name), unknown[name])
			}
			s = &whole
		}
		out = newShape(s)
		out.names = names
		w.shapes[s.Key] = out
		if len(s.Claims) > 0 {
			w.claiming++
		}
		w.need(out, 1)
	}
	out.users++
	return out
}

// release takes a user from the shape, and forgets a shape that has none. What
// was made of it for Snapshots is made again before the next one.
func (w *World) release(s *shape) {
	if s.users--; s.users > 0 {
		return
	}
	delete(w.shapes, s.Key)
	if len(s.Claims) > 0 {
		w.claiming--
	}
	w.need(s, -1)
	for _, name := range s.names {
		w.axis.Return(name)
	}
}

func newShape(s *model.Shape) *shape {
	out := &shape{Shape: s, groups: map[*peer]*group{}, features: featuresOf(s)}
	for _, t := range s.PodTerms {
		if t.Anti && t.Weight == 0 {
			out.anti = append(out.anti, t)
		}
	}
	for _, t := range slices.Concat(s.Terms, s.VolumeTerms, s.DeviceTerms, s.GroupTerms) {
		_, named := t.Get(model.FieldName)
		out.byName = out.byName || named
	}
	for _, p := range s.Preferences {
		_, named := p.Term.Get(model.FieldName)
		out.byName = out.byName || named
	}
	return out
}

func (w *World) space(namespace string) *space {
	s := w.spaces[namespace]
	if s == nil {
		s = &space{pods: map[string]*pod{}, budgets: map[string]*budget{}, peers: newPeers()}
		w.spaces[namespace] = s
	}
	return s
}

func (w *World) dropSpace(namespace string, s *space) {
	if len(s.pods) == 0 && len(s.budgets) == 0 {
		delete(w.spaces, namespace)
	}
}

// selecting returns the budgets that select pods with these labels, sorted by
// name.
func (s *space) selecting(labels map[string]string) []*budget {
	var out []*budget
	for _, b := range s.budgets {
		if b.Selects(labels) {
			out = append(out, b)
		}
	}
	slices.SortFunc(out, func(a, b *budget) int { return strings.Compare(a.Name, b.Name) })
	return out
}

// SetDisruptionBudget takes in a PodDisruptionBudget that is new or changed.
func (w *World) SetDisruptionBudget(d DisruptionBudget) {
	w.mu.Lock()
	defer w.mu.Unlock()
	s := w.space(d.Namespace)
	old := s.budgets[d.Name]
	if old != nil && old.Selector == d.Selector {
		changed := old.Allowed <= 0 != (d.Allowed <= 0) || old.Never != d.Never || old.UnreadyExempt != d.UnreadyExempt
		old.DisruptionBudget = d
		if changed {
			w.touchSelected(s, old)
		}
		return
	}
	if old != nil {
		w.dropBudget(s, old)
	}
	next := &budget{d}
	s.budgets[d.Name] = next
	for _, p := range s.pods {
		if next.Selects(p.Labels) {
			i, _ := slices.BinarySearchFunc(p.budgets, next.Name, byBudgetName)
			p.budgets = slices.Insert(p.budgets, i, next)
			w.touchHost(p.Node)
		}
	}
}

// DeleteDisruptionBudget takes in that the PodDisruptionBudget is gone.
func (w *World) DeleteDisruptionBudget(namespace, name string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	s := w.space(namespace)
	if b := s.budgets[name]; b != nil {
		w.dropBudget(s, b)
	}
	w.dropSpace(namespace, s)
}

// dropBudget takes the budget from the namespace and its pods.
func (w *World) dropBudget(s *space, b *budget) {
	delete(s.budgets, b.Name)
	for _, p := range s.pods {
		if i := slices.Index(p.budgets, b); i >= 0 {
			p.budgets = slices.Delete(p.budgets, i, i+1)
			w.touchHost(p.Node)
		}
	}
}

// touchSelected has the machines looked at again on which pods of the budget
// run.
func (w *World) touchSelected(s *space, b *budget) {
	for _, p := range s.pods {
		if slices.Contains(p.budgets, b) {
			w.touchHost(p.Node)
		}
	}
}

func byBudgetName(b *budget, name string) int { return strings.Compare(b.Name, name) }

// protected reports whether the pod says it must not be disrupted. One that
// ends anyway cannot say so.
func (p *pod) protected(now time.Time) bool {
	return !p.Terminal && !p.Terminating && p.Protected && (p.ProtectedUntil.IsZero() || now.Before(p.ProtectedUntil))
}

// evictable reports whether an eviction of the pod would be asked for.
func (p *pod) evictable(now time.Time) bool {
	return !p.Terminal && !p.Terminating && !p.Stays && !p.Static && !p.protected(now)
}

// leaves reports whether the pod needs a place now because its node is going
// away: unless nothing will ever move it from there.
func (p *pod) leaves(now time.Time) bool {
	return p.Reschedulable && !p.protected(now) && !(p.evictable(now) && p.stuck())
}

// keeps reports whether a node that is going away stays because of the pod, which no one
// moves.
func (p *pod) keeps(now time.Time) bool {
	return !p.Stays && !p.Static && (p.protected(now) || p.evictable(now) && p.stuck())
}

// stuck reports whether the budgets of the pod never let it go.
func (p *pod) stuck() bool {
	if len(p.budgets) != 1 {
		return len(p.budgets) > 1
	}
	return p.budgets[0].Never && !p.budgets[0].exempts(p)
}

func (b *budget) exempts(p *pod) bool { return b.UnreadyExempt && p.Unready }
