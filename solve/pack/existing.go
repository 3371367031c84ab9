package pack

import (
	"slices"

	"karpenter/model"
	"karpenter/solve/fit"
)

// keepPlanned leaves pods on the node an earlier plan chose for them, as long
// as they still fit there. Without it a second look at the same situation
// could pack differently and find the last pod homeless.
func (k *Packer) keepPlanned() {
	byName := map[string]*fit.NodeRow{}
	for i := range k.nodes {
		byName[k.nodes[i].Name] = &k.nodes[i]
		if claim := k.nodes[i].Claim; claim != "" {
			byName[claim] = &k.nodes[i]
		}
	}
	for _, d := range k.demands {
		d.left = slices.DeleteFunc(d.left, func(p model.Pod) bool {
			n := byName[p.Planned]
			if n == nil || !n.Takes(d.Shape) || fit.Room(n.Free, d.Shape.Requests, 1) == 0 {
				return false
			}
			k.place(n, d, []model.Pod{p})
			return true
		})
	}
}

// useExisting fills the nodes there are, hardest shape first, each on the
// first node that takes it.
func (k *Packer) useExisting() {
	for _, d := range k.demands {
		for i := range k.nodes {
			if len(d.left) == 0 {
				break
			}
			n := &k.nodes[i]
			room := fit.Room(n.Free, d.Shape.Requests, len(d.left))
			if room == 0 || !n.Takes(d.Shape) {
				continue
			}
			k.place(n, d, d.left[:room])
			d.left = d.left[room:]
		}
	}
}

func (k *Packer) place(n *fit.NodeRow, d *demand, pods []model.Pod) {
	n.Free = n.Free.Minus(d.Shape.Requests.Times(int64(len(pods))))
	for _, p := range pods {
		k.placed = append(k.placed, model.Placement{Pod: p, Node: n.Name})
	}
}
