// SPDX-License-Identifier: Apache-2.0

package world

import (
	"cmp"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"karpenter/model"
)

// daemon is a DaemonSet with what its newest pod requests.
type daemon struct {
	name string
	own  *shape // of the template
	live *shape // of the newest pod; nil = no pod has been made from this template

	// Of the newest pod of any template.
	created time.Time
	uid     string

	claiming bool                // the template lets its pods claim devices
	claims   []model.DeviceClaim // of the newest pod that has any
	claimed  time.Time           // when that was made
	claimant string              // its UID
}

// SetDaemon takes in a DaemonSet that is new or changed. Where it has pods, the
// newest one knows better what a pod requests: admission may have changed that.
func (w *World) SetDaemon(d Daemon) {
	w.mu.Lock()
	defer w.mu.Unlock()
	old := w.daemons[d.Name]
	switch {
	case old == nil:
		w.daemons[d.Name] = &daemon{name: d.Name, own: w.intern(d.Shape, d.Unknown), claiming: d.Claims}
		for _, p := range w.pods {
			w.followDaemon(p)
		}
	case old.own.Key != d.Shape.Key:
		w.daemons[d.Name] = &daemon{
			name: d.Name, own: w.intern(d.Shape, d.Unknown), created: old.created, uid: old.uid,
			claims: old.claims, claimed: old.claimed, claimant: old.claimant,
		}
		w.releaseDaemon(old)
	}
	now := w.daemons[d.Name]
	if now.claiming = d.Claims; !now.claiming {
		now.claims, now.claimed, now.claimant = nil, time.Time{}, ""
	}
	w.listed.daemons = nil
}

// DeleteDaemon takes in that the DaemonSet, namespace/name, is gone.
func (w *World) DeleteDaemon(name string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if d := w.daemons[name]; d != nil {
		delete(w.daemons, name)
		w.releaseDaemon(d)
	}
	w.listed.daemons = nil
}

func (w *World) releaseDaemon(d *daemon) {
	w.release(d.own)
	if d.live != nil {
		w.release(d.live)
	}
}

// followDaemon learns from a pod what its DaemonSet requests now, if no newer
// pod has told. Its claims are there some time after the pod, so claims of an older pod
// count until then.
func (w *World) followDaemon(p *pod) {
	d := w.daemons[p.DaemonSet]
	if d != nil && d.claiming && len(p.Devices) > 0 && cmp.Or(p.Created.Compare(d.claimed), strings.Compare(p.UID, d.claimant)) >= 0 {
		if d.claimed, d.claimant = p.Created, p.UID; !reflect.DeepEqual(d.claims, p.Devices) {
			d.claims, w.listed.daemons = p.Devices, nil
		}
	}
	if d == nil || cmp.Or(p.Created.Compare(d.created), strings.Compare(p.UID, d.uid)) <= 0 {
		return
	}
	p.shape.users++
	if d.live != nil {
		w.release(d.live)
	}
	d.live, d.created, d.uid = p.shape, p.Created, p.UID
	w.listed.daemons = nil
}

// listDaemons returns the daemons sorted by name.
func (w *World) listDaemons() []model.Daemon {
	if w.listed.daemons == nil {
		w.listed.daemons = make([]model.Daemon, 0, len(w.daemons))
		for _, name := range slices.Sorted(maps.Keys(w.daemons)) {
			w.listed.daemons = append(w.listed.daemons, w.daemons[name].current(w.axis.Names()))
		}
	}
	return w.listed.daemons
}

// current returns the daemon as it is run now.
func (d *daemon) current(names []string) model.Daemon {
	if (d.live == nil || d.live.Requests.Equal(d.own.Requests)) && len(d.claims) == 0 {
		return model.Daemon{Name: d.name, Shape: d.own.Shape}
	}
	s := *d.own.Shape
	if s.Claims = d.claims; d.live != nil {
		s.Requests = d.live.Requests
	}
	s.Key = s.Identity(names)
	return model.Daemon{Name: d.name, Shape: &s}
}
