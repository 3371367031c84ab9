package pack

import (
	"slices"
	"strings"

	"karpenter/model"
	"karpenter/solve/fit"
	"karpenter/solve/topology"
)

// verify looks at all that was planned as the scheduler will, with every node
// there, and takes pods that it would refuse out of the plan again.
func (k *Packer) verify() {
	if !slices.ContainsFunc(k.demands, func(d *demand) bool { return !k.topology.Free(d.kind) }) {
		return
	}
	moves, pods, nodes := k.moves()
	final := topology.New(k.snapshot, nodes...)
	admitted := final.Admit(moves)
	refused := map[string]bool{}
	for i, m := range moves {
		for _, p := range pods[i][admitted[i]:] {
			refused[p.Key()] = true
			k.wholeOf(m.Kind).stuck = append(k.wholeOf(m.Kind).stuck, p)
		}
	}
	if len(refused) > 0 {
		k.unplace(refused)
	}
	k.topology = final
}

// moves lists what was planned by kind and node, with the nodes to be bought.
func (k *Packer) moves() (moves []topology.Move, pods [][]model.Pod, nodes []model.Node) {
	index := map[topology.Move]int{}
	add := func(kind, site int, some ...model.Pod) {
		i, ok := index[topology.Move{Kind: kind, Site: site}]
		if !ok {
			i = len(moves)
			index[topology.Move{Kind: kind, Site: site}] = i
			moves, pods = append(moves, topology.Move{Kind: kind, Site: site}), append(pods, nil)
		}
		moves[i].Pods += len(some)
		pods[i] = append(pods[i], some...)
	}
	for _, p := range k.placed {
		add(p.kind, p.site, p.pod)
	}
	for _, b := range k.bins {
		node := model.Node{Labels: k.labelsOf(b), Taints: k.pool(b.offer).Taints}
		for n := range b.count {
			site := len(k.snapshot.Nodes) + len(nodes)
			nodes = append(nodes, node)
			for _, t := range b.take {
				add(k.demands[t.demand].kind, site, t.chosen[n*t.pods:(n+1)*t.pods]...)
			}
		}
	}
	return moves, pods, nodes
}

// labelsOf is what is known of the labels of a node of the bin: those that
// rules between pods ask about stay open as far as the launch leaves them so.
func (k *Packer) labelsOf(b bin) model.Requirements {
	offer := &k.catalogue.Offers[b.offer]
	labels := k.demandsOf(b).And(k.catalogue.Types[offer.Type].Requirements...)
	return labels.And(offer.Requirements.Without(k.topology.Keys...)...)
}

// wholeOf returns the demand of all pods of a kind.
func (k *Packer) wholeOf(kind int) *demand {
	i := slices.IndexFunc(k.demands, func(d *demand) bool { return d.kind == kind && d.whole == nil })
	return k.demands[i]
}

// unplace takes pods off the nodes they were planned on.
func (k *Packer) unplace(refused map[string]bool) {
	gone := func(p model.Pod) bool { return refused[p.Key()] }
	k.placed = slices.DeleteFunc(k.placed, func(p placement) bool { return gone(p.pod) })
	k.unroll(0)
	for i := range k.bins {
		b := &k.bins[i]
		for j := range b.take {
			b.take[j].chosen = slices.DeleteFunc(slices.Clone(b.take[j].chosen), gone)
			b.take[j].pods = len(b.take[j].chosen)
		}
		b.take = slices.DeleteFunc(b.take, func(t portion) bool { return t.pods == 0 })
	}
	k.bins = slices.DeleteFunc(k.bins, func(b bin) bool {
		if len(b.take) == 0 {
			k.limits.take(k.catalogue.Types[k.catalogue.Offers[b.offer].Type].Pool, k.capacity(b.offer), -1)
		}
		return len(b.take) == 0
	})
}

// learn notes where fewer nodes could be bought than pods were settled for,
// and reports whether that is news that may help pods that have no place.
func (k *Packer) learn() bool {
	if !slices.ContainsFunc(k.demands, func(d *demand) bool { return len(d.stuck) > 0 }) {
		return false
	}
	short, settled := map[lesson]int{}, map[lesson]int{}
	for _, d := range k.demands {
		if d.whole != nil {
			l := lesson{d.kind, d.cell.name()}
			short[l] += d.short
			settled[l] += len(d.Pods)
		}
	}
	news := false
	for l, n := range short {
		if most, known := k.learned[l]; n > 0 && (!known || settled[l]-n < most) {
			k.learned[l] = settled[l] - n
			news = true
		}
	}
	return news
}

// name tells the cell from others of the same demand.
func (c *cell) name() string { return strings.Join(c.names, "\x00") }

// separate sets what keeps pods of the demands from sharing new nodes.
func (k *Packer) separate() {
	k.groups = nil
	var members [][]int // demands by kind
	for i, d := range k.demands {
		for len(members) <= d.kind {
			members = append(members, nil)
		}
		members[d.kind] = append(members[d.kind], i)
	}
	of := func(kinds []int) (set []int) {
		for _, kind := range kinds {
			if kind < len(members) {
				set = append(set, members[kind]...)
			}
		}
		return set
	}
	apart := k.topology.Apart()
	for i, d := range k.demands {
		d.most, d.apart = 0, nil
		if most := k.topology.Most(d.kind); most < topology.Unbounded {
			d.most = most
		}
		for _, j := range of(apart[d.kind]) {
			d.keepFrom(j, len(k.demands))
		}
		if len(d.Shape.HostPorts) > 0 {
			d.most = 1
			for j, o := range k.demands {
				if i != j && conflict(d, o) {
					d.keepFrom(j, len(k.demands))
				}
			}
		}
	}
	k.group(of)
}

func (k *Packer) group(of func(kinds []int) []int) {
	for _, g := range k.topology.Groups() {
		together := group{limit: g.Limit, members: fit.NewBits(len(k.demands))}
		for _, i := range of(g.Kinds) {
			together.members.Set(i)
		}
		k.groups = append(k.groups, together)
	}
}

func conflict(a, b *demand) bool { return fit.Conflict(a.Shape.HostPorts, b.Shape.HostPorts) }

// keepFrom has d share no new node with another of so many demands.
func (d *demand) keepFrom(other, demands int) {
	if d.apart == nil {
		d.apart = fit.NewBits(demands)
	}
	d.apart.Set(other)
}
