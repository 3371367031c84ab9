// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"

	"karpenter/model"
)

// goingAway says how many nodes are on their way out already.
func goingAway(s *model.Snapshot) []string {
	n := 0
	for i := range s.Nodes {
		if s.Nodes[i].Claim != "" && s.Nodes[i].Deleting {
			n++
		}
	}
	if n == 0 {
		return nil
	}
	return []string{counted(n, "node") + " being removed: counted now, not after"}
}

// static explains static pools, which decisions about pods do not change.
func static(s *model.Snapshot) []string {
	var out []string
	for i := range s.Pools {
		p := &s.Pools[i]
		if p.Static == nil || p.Unavailable != "static" {
			continue
		}
		switch missing := p.Static.Replicas - p.Static.Active - p.Static.Pending; {
		case missing > 0:
			out = append(out, fmt.Sprintf("NodePool %s is static and has %d of its %d nodes: up to %d more are launched, not counted", p.Name, p.Static.Replicas-missing, p.Static.Replicas, missing))
		case missing < 0:
			out = append(out, fmt.Sprintf("NodePool %s is static and has %d nodes more than its %d: they are removed, not counted", p.Name, -missing, p.Static.Replicas))
		}
	}
	return out
}

func counted(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
