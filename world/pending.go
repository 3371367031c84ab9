// SPDX-License-Identifier: Apache-2.0

package world

import (
	"cmp"
	"slices"
	"strings"

	"karpenter/model"
)

// group is the pods of one shape that no selector tells apart.
type group struct {
	shape   *shape
	peer    *peer // nil = no selector asks about such pods
	members int

	waiting []*pod      // members that ask for a node, in any order
	list    []model.Pod // of waiting, oldest first; nil = to be made
}

// seen returns how selectors see the group.
func (g *group) seen() model.Peer {
	if g.peer == nil {
		return model.Peer{}
	}
	return g.peer.Peer
}

func byText(a, b *group) int {
	textOf := func(p *peer) (string, string) {
		if p == nil {
			return "", ""
		}
		return p.Namespace, p.text
	}
	if c := strings.Compare(a.shape.Key, b.shape.Key); c != 0 {
		return c
	}
	spaceA, textA := textOf(a.peer)
	spaceB, textB := textOf(b.peer)
	return cmp.Or(strings.Compare(spaceA, spaceB), strings.Compare(textA, textB))
}

// join enters the pod in the group of its shape with the peer.
func (w *World) join(p *pod, seen *peer) {
	g := p.shape.groups[seen]
	if g == nil {
		g = &group{shape: p.shape, peer: seen}
		p.shape.groups[seen] = g
		if seen != nil {
			seen.groups++
		}
	}
	g.members++
	p.group = g
	if p.asks() {
		w.await(p)
	}
}

// part undoes join.
func (w *World) part(p *pod) {
	g := p.group
	p.group = nil
	if p.asks() {
		w.unwait(p, g)
	}
	if g.members--; g.members > 0 {
		return
	}
	delete(g.shape.groups, g.peer)
	if g.peer == nil {
		return
	}
	if g.peer.groups--; g.peer.groups == 0 {
		w.spaces[p.Namespace].peers.remove(g.peer)
	}
}

func (w *World) await(p *pod) {
	g := p.group
	if len(g.waiting) == 0 {
		i, _ := slices.BinarySearchFunc(w.waiting, g, byText)
		w.waiting = slices.Insert(w.waiting, i, g)
	}
	p.at = len(g.waiting)
	g.waiting = append(g.waiting, p)
	w.listed.pending = nil
	if len(g.list) == 0 {
		g.list = nil
		return
	}
	if m := w.model(p); byAge(g.list[len(g.list)-1], m) < 0 {
		g.list = append(g.list, m) // Snapshots taken before do not see that far
		return
	}
	g.list = nil
}

func (w *World) unwait(p *pod, g *group) {
	last := g.waiting[len(g.waiting)-1]
	g.waiting[p.at], last.at = last, p.at
	g.waiting[len(g.waiting)-1] = nil
	g.waiting = g.waiting[:len(g.waiting)-1]
	g.list, w.listed.pending = nil, nil
	if len(g.waiting) == 0 {
		i, _ := slices.BinarySearchFunc(w.waiting, g, byText)
		w.waiting = slices.Delete(w.waiting, i, i+1)
	}
}

// relist has what is said of the pod looked up again: it is planned elsewhere.
func (w *World) relist(p *pod) {
	if p.group != nil {
		p.group.list, w.listed.pending = nil, nil
		w.touchHost(p.Node)
	}
}

// PendingUIDs returns the UIDs of the pods that ask for a node, sorted.
func (w *World) PendingUIDs() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	var out []string
	for _, g := range w.waiting {
		for _, p := range g.waiting {
			out = append(out, p.UID)
		}
	}
	slices.Sort(out)
	return out
}

// listPending returns the pods that need a place by shape and peer: those that
// ask for one and those that will lose theirs.
func (w *World) listPending() []model.Pending {
	if w.listed.pending != nil || len(w.waiting) == 0 && len(w.going) == 0 {
		return w.listed.pending
	}
	leaving := w.leaving()
	groups := slices.Clip(w.waiting)
	for g := range leaving {
		if len(g.waiting) == 0 {
			groups = append(groups, g)
		}
	}
	if len(groups) > len(w.waiting) {
		slices.SortFunc(groups, byText)
	}
	var out []model.Pending
	for _, g := range groups {
		pods := slices.Clip(w.list(g))
		if more := leaving[g]; len(more) > 0 {
			pods = slices.Concat(pods, more)
			slices.SortFunc(pods, byAge)
		}
		out = append(out, model.Pending{Shape: g.shape.Shape, Peer: g.seen(), Pods: pods})
	}
	w.listed.pending = out
	return out
}

// list returns the pods of the group that ask for a node, oldest first.
func (w *World) list(g *group) []model.Pod {
	if g.list != nil || len(g.waiting) == 0 {
		return g.list
	}
	slices.SortFunc(g.waiting, func(a, b *pod) int {
		return age(a.Buffer, b.Buffer, a.Created.Compare(b.Created), a.UID, b.UID)
	})
	g.list = make([]model.Pod, len(g.waiting))
	for i, p := range g.waiting {
		p.at, g.list[i] = i, w.model(p)
	}
	return g.list
}

// byAge puts the oldest first, and pods that exist before those of buffers.
func byAge(a, b model.Pod) int {
	return age(a.Buffer, b.Buffer, a.Created.Compare(b.Created), a.UID, b.UID)
}

func age(bufferA, bufferB string, created int, uidA, uidB string) int {
	if bufferA != bufferB {
		return strings.Compare(bufferA, bufferB)
	}
	if created != 0 {
		return created
	}
	return strings.Compare(uidA, uidB)
}

// leaving returns the pods of machines that are being removed.
func (w *World) leaving() map[*group][]model.Pod {
	out := map[*group][]model.Pod{}
	for m := range w.going {
		for i, g := range m.moves.groups {
			out[g] = append(out[g], m.moves.list[i].Pods...)
		}
	}
	return out
}

// model returns the pod as decisions see it.
func (w *World) model(p *pod) model.Pod {
	return model.Pod{
		Namespace: p.Namespace, Name: p.Name, UID: p.UID, Created: p.Created,
		Planned: w.target(p), From: p.Node, Buffer: p.Buffer, Claims: p.Claims, Workload: p.Workload, Group: p.Group,
	}
}
