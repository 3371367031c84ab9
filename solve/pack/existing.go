package pack

import (
	"slices"

	"karpenter/model"
	"karpenter/solve/fit"
	"karpenter/solve/topology"
)

// keepPlanned leaves pods on the node an earlier plan chose for them, as long
// as they still fit there and the scheduler would put all of them there in some
// order. Without it a second look at the same situation could pack differently
// and find the last pod homeless.
func (k *Packer) keepPlanned() {
	if k.kept != nil {
		k.keep(k.kept)
		return
	}
	moves, pods := k.planned()
	if len(moves) == 0 {
		return
	}
	k.topology.Final(true)
	admitted := k.topology.Admit(moves)
	k.topology.Final(false)
	var stay []placement
	for i, m := range moves {
		for _, p := range pods[i][:admitted[i]] {
			stay = append(stay, placement{m.Kind, m.Site, p})
		}
		k.topology.Add(m.Kind, k.topology.At(m.Site), m.Site, -admitted[i])
	}
	k.keep(stay)
}

// planned lists the pods that still fit where an earlier plan put them, rules
// between pods not asked.
func (k *Packer) planned() (moves []topology.Move, pods [][]model.Pod) {
	wants := func(p model.Pod) bool { return p.Planned != "" }
	if !slices.ContainsFunc(k.demands, func(d *demand) bool { return slices.ContainsFunc(d.left, wants) }) {
		return nil, nil
	}
	rows := slices.Clone(k.nodes)
	byName := map[string]*fit.NodeRow{}
	for i := range rows {
		byName[rows[i].Name] = &rows[i]
		if claim := rows[i].Claim; claim != "" {
			byName[claim] = &rows[i]
		}
	}
	for _, d := range k.demands {
		index, shape := map[int]int{}, Soft(d.Shape)
		for _, p := range d.left {
			n := byName[p.Planned]
			if n == nil || alone(shape, n, 1) == 0 {
				continue
			}
			put(shape, n, 1)
			i, ok := index[n.Site]
			if !ok {
				i = len(moves)
				index[n.Site] = i
				moves, pods = append(moves, topology.Move{Kind: d.kind, Site: n.Site}), append(pods, nil)
			}
			moves[i].Pods++
			pods[i] = append(pods[i], p)
		}
	}
	return moves, pods
}

// keep leaves pods where it was seen that they stay.
func (k *Packer) keep(stay []placement) {
	rows, wholes := map[int]*fit.NodeRow{}, map[int]*demand{}
	for i := range k.nodes {
		rows[k.nodes[i].Site] = &k.nodes[i]
	}
	for _, d := range k.demands {
		wholes[d.kind] = d
	}
	stays := map[string]bool{}
	for _, p := range stay {
		k.topology.Add(p.kind, k.topology.At(p.site), p.site, 1)
		k.place(rows[p.site], wholes[p.kind], []model.Pod{p.pod})
		stays[p.pod.Key()] = true
	}
	for _, d := range k.demands {
		d.left = slices.DeleteFunc(d.left, func(p model.Pod) bool { return stays[p.Key()] })
	}
}

// room returns how many pods of d the node takes, at most limit, but for rules
// between pods on other keys than the hostname.
func (k *Packer) room(d *demand, n *fit.NodeRow, limit int) int {
	room := alone(d.Shape, n, limit)
	if room > 0 && !k.topology.Free(d.kind) {
		room = min(room, k.topology.Cap(d.kind, n.Site))
	}
	return room
}

// alone returns how many pods of a shape the node takes, at most limit, as far
// as the node by itself tells.
func alone(s *model.Shape, n *fit.NodeRow, limit int) int {
	room := fit.Room(n.Free, s.Requests, limit)
	if room == 0 || !n.Takes(s) {
		return 0
	}
	if len(s.HostPorts) > 0 {
		if fit.Conflict(s.HostPorts, n.Ports) {
			return 0
		}
		room = min(room, 1)
	}
	if len(s.Volumes) > 0 {
		room = min(room, n.Attachable(s.Volumes))
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
	put(d.Shape, n, len(pods))
	for _, p := range pods {
		k.placed = append(k.placed, placement{d.kind, n.Site, p})
	}
}

// put takes what pods of a shape use from what the node has.
func put(s *model.Shape, n *fit.NodeRow, pods int) {
	n.Free = n.Free.Minus(s.Requests.Times(int64(pods)))
	n.Ports = append(n.Ports, s.HostPorts...)
	for range pods {
		n.Attach(s.Volumes)
	}
}

// placement is a pod put on a node of the Snapshot.
type placement struct {
	kind int
	site int
	pod  model.Pod
}
