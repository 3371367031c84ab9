// SPDX-License-Identifier: Apache-2.0

package world

import (
	"maps"
	"slices"
)

// SetBuffer takes in the pods that stand in for what a CapacityBuffer,
// namespace/name, keeps room for. They replace those it had; those that are
// the same as before stay where they are planned. They count as pending for as
// long as the buffer has them, and are never told where they are planned.
func (w *World) SetBuffer(buffer string, pods []Pod) {
	w.mu.Lock()
	gone, kept, changed := w.buffers[buffer], map[string]bool{}, false
	for _, p := range pods {
		p.Buffer = buffer
		kept[p.Key()] = true
		changed = w.setStandIn(p) || changed
	}
	for _, key := range slices.Sorted(maps.Keys(gone)) {
		if p := w.pods[key]; !kept[key] && p != nil {
			w.removePod(p)
			w.unplan(p.UID)
		}
	}
	delete(w.buffers, buffer)
	if len(kept) > 0 {
		w.buffers[buffer] = kept
	}
	w.notifyIf(changed, buffer)
}

// DeleteBuffer takes in that the CapacityBuffer is gone, or keeps no room.
func (w *World) DeleteBuffer(buffer string) { w.SetBuffer(buffer, nil) }

// setStandIn enters one pod of a buffer and reports whether that is news.
func (w *World) setStandIn(p Pod) bool {
	key := p.Key()
	old := w.pods[key]
	if old != nil && samePod(old.Pod, p) {
		return false
	}
	if old != nil {
		w.removePod(old)
	}
	if old != nil && old.UID != p.UID {
		w.unplan(old.UID)
	}
	w.addPod(&pod{Pod: p, key: key})
	return true
}

// podKey returns what a pod is found by: namespace/name, or a text like no
// name of a pod when it only stands in for a buffer.
func podKey(namespace, name, buffer string) string {
	if buffer != "" {
		return namespace + "/buffer/" + name
	}
	return namespace + "/" + name
}
