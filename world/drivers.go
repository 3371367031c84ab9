// SPDX-License-Identifier: Apache-2.0

package world

import (
	"maps"
	"slices"
	"time"

	"karpenter/model"
)

const (
	// toInstall is how long an initialized node may lack a driver of volumes that the scheduler
	// waits for, as when the driver starts, before pods with such volumes are planned elsewhere.
	toInstall = 10 * time.Minute
	// unlikely is how long new nodes of a pool count as without a driver, after its nodes were.
	unlikely = time.Hour
)

// drivers is what is known of drivers of volumes that the scheduler wants to see on a
// node before it binds pods with such volumes there.
type drivers struct {
	required map[string]bool               // by name
	missing  map[site]map[string]time.Time // by driver: since when last all nodes that should have it had it not
}

// site is the nodes of a pool with one architecture: images for another may lack a driver.
type site struct{ pool, arch string }

// RequireDriver takes in whether the scheduler binds pods with volumes of the driver only to
// nodes that list it.
func (w *World) RequireDriver(driver string, required bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.required[driver] == required {
		return
	}
	w.required[driver] = required
	if !required {
		delete(w.required, driver)
	}
	for _, m := range w.machines {
		w.touch(m)
	}
}

// lacks returns the required drivers that the machine should have by now, and has not. Before
// that it counts as if it had them, so that no other node is launched for pods that wait.
func (w *World) lacks(m *machine, now time.Time) []string {
	if m.node == nil || !m.initialized() {
		m.lacking = nil
		return nil
	}
	var out []string
	for _, driver := range slices.Sorted(maps.Keys(w.required)) {
		if _, runs := w.limits[m.node.Name][driver]; runs {
			delete(m.lacking, driver)
			continue
		}
		if m.lacking == nil {
			m.lacking = map[string]time.Time{}
		}
		if _, known := m.lacking[driver]; !known {
			m.lacking[driver] = now
		}
		if ends := m.lacking[driver].Add(toInstall); now.Before(ends) {
			w.changesAt(m, ends)
		} else {
			out = append(out, driver)
		}
	}
	return out
}

// learnDrivers finds out which required drivers the next nodes of pools will not have.
func (w *World) learnDrivers(now time.Time) {
	if len(w.required)+len(w.missing) == 0 {
		return
	}
	lacking, having := map[site]map[string]bool{}, map[site]map[string]bool{}
	note := func(in map[site]map[string]bool, at site, driver string) {
		if in[at] == nil {
			in[at] = map[string]bool{}
		}
		in[at][driver] = true
	}
	for _, m := range w.machines {
		at := site{m.label(model.LabelNodePool), m.label(model.LabelArch)}
		for driver := range w.required {
			if since, lacks := m.lacking[driver]; !lacks && m.node != nil && m.initialized() {
				note(having, at, driver)
			} else if lacks && now.Sub(since) >= toInstall {
				note(lacking, at, driver)
			}
		}
	}
	for at, found := range lacking {
		for driver := range found {
			if having[at][driver] {
				continue
			}
			if w.missing[at] == nil {
				w.missing[at] = map[string]time.Time{}
			}
			if _, known := w.missing[at][driver]; !known {
				w.forgotten[at.pool] = true
			}
			w.missing[at][driver] = now
		}
	}
	for at, found := range w.missing {
		for driver, last := range found {
			if having[at][driver] || !w.required[driver] || now.Sub(last) >= unlikely {
				delete(found, driver)
				w.forgotten[at.pool] = true
			}
		}
		if len(found) == 0 {
			delete(w.missing, at)
		}
	}
}
