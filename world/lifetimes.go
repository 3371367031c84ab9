// SPDX-License-Identifier: Apache-2.0

package world

import (
	"math/bits"
	"slices"
	"time"
)

const (
	// remembers is of how many pods of a class that ended it is kept how long they lived.
	remembers = 16
	// enough is how many of them must have ended for the class to have a usual lifetime.
	enough = 5
	// mostClasses is how many classes without pods are kept.
	mostClasses = 4096
)

// class is the pods of one Pod.Class. Only classes of pods that nothing replaces when
// they end have a name: if such pods end soon, their node is empty soon.
type class struct {
	pods  map[*pod]bool   // that have not ended
	lived []time.Duration // of those that ended last, oldest first
	usual time.Duration   // within which nine of ten of them ended; 0 = not known
	at    time.Time       // when the last one ended
}

// classKey returns the name of the pod's class; "" = it is of none.
func classKey(p *pod) string {
	if p.Class == "" || p.Daemon || p.Static || p.Buffer != "" || p.Created.IsZero() {
		return ""
	}
	return p.Namespace + "/" + p.Class
}

// live counts the pod in its class.
func (w *World) live(p *pod) {
	key := classKey(p)
	if key == "" || p.Terminal {
		return
	}
	c := w.classes[key]
	if c == nil {
		c = &class{pods: map[*pod]bool{}}
		w.classes[key] = c
	}
	c.pods[p] = true
}

// unlive undoes live.
func (w *World) unlive(p *pod) {
	c := w.classes[classKey(p)]
	if c == nil {
		return
	}
	if delete(c.pods, p); len(c.pods) == 0 && len(c.lived) == 0 {
		delete(w.classes, classKey(p))
	}
}

// lived notes how long a pod lived that has ended of its own.
func (w *World) lived(p *pod) {
	c := w.classes[classKey(p)]
	if c == nil || p.Terminating || w.now.IsZero() {
		return
	}
	if len(c.lived) == 0 {
		w.forgetClass()
	}
	c.at = w.now
	c.lived = append(c.lived, max(w.now.Sub(p.Created), 0))
	c.lived = c.lived[max(len(c.lived)-remembers, 0):]
	if len(c.lived) < enough {
		return
	}
	sorted := slices.Sorted(slices.Values(c.lived))
	usual := roundLifetime(sorted[(len(sorted)*9+9)/10-1])
	if usual == c.usual {
		return
	}
	c.usual = usual
	for p := range c.pods {
		w.touchHost(p.Node)
	}
}

// forgetClass makes room for one more class that has lifetimes: if there are too many
// classes without pods, it drops the one of which none has ended for longest.
func (w *World) forgetClass() {
	if len(w.classes) < mostClasses {
		return
	}
	oldest := ""
	for key, c := range w.classes {
		if o := w.classes[oldest]; len(c.pods) == 0 && (o == nil || c.at.Before(o.at) || c.at.Equal(o.at) && key < oldest) {
			oldest = key
		}
	}
	delete(w.classes, oldest)
}

// roundLifetime rounds up by at most a quarter, so that the estimate rarely changes.
func roundLifetime(d time.Duration) time.Duration {
	minutes := uint64(max((d+time.Minute-1)/time.Minute, 1))
	if n := bits.Len64(minutes); n > 3 {
		step := uint64(1) << (n - 3)
		minutes = (minutes + step - 1) / step * step
	}
	return time.Duration(minutes) * time.Minute
}

// podsEnd returns by when the pods that keep the machine have usually ended; zero if
// one of them stays, has outlived its class or is of a class that is not known. It
// sees to it that the machine is looked at again when a pod outlives its class.
func (w *World) podsEnd(m *machine, now time.Time) time.Time {
	var last time.Time
	for _, p := range w.podsOf(m) {
		if !p.Reschedulable {
			continue
		}
		c := w.classes[classKey(p)]
		if c == nil || c.usual == 0 {
			return time.Time{}
		}
		end := p.Created.Add(c.usual)
		if !now.Before(end) {
			return time.Time{}
		}
		w.changesAt(m, end)
		if end.After(last) {
			last = end
		}
	}
	return last
}
