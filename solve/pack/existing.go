package pack

import (
	"slices"

	"karpenter/model"
	"karpenter/solve/fit"
)

// keepPlanned leaves pods on the node an earlier plan chose for them, as long
// as they still fit there. Without it a second look at the same situation
// could pack differently and find the last pod homeless. Rules between pods
// may want some of them placed before others, so that it looks again until
// nobody moves.
func (k *Packer) keepPlanned() {
	if k.kept != nil {
		k.keep()
		return
	}
	planned := func(p model.Pod) bool { return p.Planned != "" }
	if !slices.ContainsFunc(k.demands, func(d *demand) bool { return slices.ContainsFunc(d.left, planned) }) {
		return
	}
	byName := map[string]*fit.NodeRow{}
	for i := range k.nodes {
		byName[k.nodes[i].Name] = &k.nodes[i]
		if claim := k.nodes[i].Claim; claim != "" {
			byName[claim] = &k.nodes[i]
		}
	}
	for moved := true; moved; {
		moved = false
		for _, d := range k.demands {
			d.left = slices.DeleteFunc(d.left, func(p model.Pod) bool {
				n := byName[p.Planned]
				if n == nil || k.room(d, n, 1) == 0 || !k.topology.Allows(d.kind, k.topology.At(n.Site)) {
					return false
				}
				k.topology.Add(d.kind, k.topology.At(n.Site), n.Site, 1)
				k.place(n, d, []model.Pod{p})
				moved = moved || !k.topology.Free(d.kind)
				return true
			})
		}
	}
}

// keep leaves pods where it was seen already that they stay.
func (k *Packer) keep() {
	rows := map[int]*fit.NodeRow{}
	for i := range k.nodes {
		rows[k.nodes[i].Site] = &k.nodes[i]
	}
	stays := map[string]bool{}
	for _, p := range k.kept {
		d := k.wholeOf(p.kind)
		k.topology.Add(p.kind, k.topology.At(p.site), p.site, 1)
		k.place(rows[p.site], d, []model.Pod{p.pod})
		stays[p.pod.Key()] = true
	}
	for _, d := range k.demands {
		d.left = slices.DeleteFunc(d.left, func(p model.Pod) bool { return stays[p.Key()] })
	}
}

// room returns how many pods of d the node takes, at most limit, as far as the
// node by itself tells.
func (k *Packer) room(d *demand, n *fit.NodeRow, limit int) int {
	room := fit.Room(n.Free, d.Shape.Requests, limit)
	if room == 0 || !n.Takes(d.Shape) {
		return 0
	}
	if !k.topology.Free(d.kind) {
		room = min(room, k.topology.Cap(d.kind, n.Site))
	}
	if len(d.Shape.HostPorts) > 0 {
		if fit.Conflict(d.Shape.HostPorts, n.Ports) {
			return 0
		}
		room = min(room, 1)
	}
	if len(d.Shape.Volumes) > 0 {
		room = min(room, n.Attachable(d.Shape.Volumes))
	}
	return room
}

// useExisting fills the nodes there are, hardest shape first, each on the
// first node that takes it. Demands that rules tie to a domain are settled for
// one on the way.
func (k *Packer) useExisting() {
	for _, d := range k.inOrder() {
		k.settle(d)
	}
}

func (k *Packer) place(n *fit.NodeRow, d *demand, pods []model.Pod) {
	n.Free = n.Free.Minus(d.Shape.Requests.Times(int64(len(pods))))
	n.Ports = append(n.Ports, d.Shape.HostPorts...)
	for range pods {
		n.Attach(d.Shape.Volumes)
	}
	for _, p := range pods {
		k.placed = append(k.placed, placement{d.kind, n.Site, p})
	}
}

// placement is a pod put on a node of the Snapshot.
type placement struct {
	kind int
	site int
	pod  model.Pod
}
