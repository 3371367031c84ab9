// SPDX-License-Identifier: Apache-2.0

package pack

import (
	"slices"

	"karpenter/model"
	"karpenter/solve/fit"
)

// alone returns how many pods of a shape the node takes, at most limit, as far
// as the node by itself tells.
func alone(s *model.Shape, n *fit.NodeRow, limit int) int {
	room := fit.Room(n.Free, s.Requests, limit)
	if room == 0 || !n.Takes(s) {
		return 0
	}
	if len(s.HostPorts) > 0 {
		if fit.Conflict(s.HostPorts, n.Ports()) {
			return 0
		}
		room = min(room, 1)
	}
	if len(s.Volumes) > 0 {
		room = min(room, n.Attachable(s.Volumes))
	}
	if room > 0 && len(s.Claims) > 0 {
		room = n.Load().Room(s.Claims, room)
	}
	return room
}

// put takes what pods of a shape use from what the node has.
func put(s *model.Shape, n *fit.NodeRow, pods int) {
	n.Free = n.Free.Minus(s.Requests.Times(int64(pods)))
	if len(s.HostPorts)+len(s.Claims) > 0 {
		n.Hold(slices.Concat(n.Ports(), s.HostPorts), n.Load().With(s.Claims, pods))
	}
	for range pods {
		n.Attach(s.Volumes)
	}
}
