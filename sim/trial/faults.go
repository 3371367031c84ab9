// SPDX-License-Identifier: Apache-2.0

package trial

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"karpenter/sim"
	"karpenter/sim/script"
)

// faults has the script's faults hit the calls of the process.
type faults struct {
	run    *sim.Run
	script *script.Faults
	rand   *rand.Rand
	vendor *vendor // whose cloud calls are to; nil = simcloud
}

func newFaults(r *sim.Run, s *script.Script) *faults {
	return &faults{run: r, script: script.NewFaults(s, r.Rand("faults")), rand: r.Rand("watches")}
}

func (f *faults) call(c sim.Call) script.Call {
	return script.Call{Since: time.Since(f.run.Started), Verb: c.Verb, Object: c.Kind}
}

// API implements sim.Faults.
func (f *faults) API(c sim.Call) sim.Fault {
	call := f.call(c)
	f.watches(call)
	kinds := []script.Kind{script.Throttle, script.Timeout}
	switch c.Verb {
	case "update", "patch", "patch-status", "apply-status":
		kinds = append(kinds, script.Conflict, script.Lost)
	case "create", "delete", "evict":
		kinds = append(kinds, script.Lost)
	}
	out := f.process(call)
	hit := f.script.Hit(call, kinds...)
	if hit == nil || out.Crash {
		return out
	}
	resource := schema.GroupResource{Resource: c.Kind}
	switch hit.Kind {
	case script.Throttle:
		out.Refuse = apierrors.NewTooManyRequests("the server has received too many requests", 1)
	case script.Timeout:
		out.Refuse = apierrors.NewTimeoutError("the request did not complete", 1)
	case script.Conflict:
		out.Refuse = apierrors.NewConflict(resource, c.Name, errors.New("the object has been modified"))
	case script.Lost:
		out.Lose = fmt.Errorf("%s %s %s: connection reset by peer", c.Verb, c.Kind, c.Name)
	}
	return out
}

// watches breaks or delays what the process hears.
func (f *faults) watches(c script.Call) {
	kinds := []string{"Pod", "Node", "NodeClaim", "NodePool"}
	if hit := f.script.Hit(c, script.Gap); hit != nil {
		f.run.Gap(f.kind(hit, kinds))
	}
	if hit := f.script.Hit(c, script.Stale); hit != nil {
		f.run.Freeze(f.kind(hit, kinds), time.Now().Add(hit.Lag))
	}
}

// kind is the one the fault names, or one that is drawn.
func (f *faults) kind(hit *script.Fault, kinds []string) string {
	if hit.Object != "" && slices.Contains(kinds, hit.Object) {
		return hit.Object
	}
	return kinds[f.rand.IntN(len(kinds))]
}

// process ends the process at the call, or has another replica take over.
func (f *faults) process(c script.Call) sim.Fault {
	if f.script.Hit(c, script.Leader) != nil {
		f.run.ChangeLeader()
	}
	if hit := f.script.Hit(c, script.Freeze); hit != nil {
		f.run.FreezeLeader(hit.Lag)
	}
	switch {
	case f.script.Hit(c, script.Crash) != nil:
		return sim.Fault{Crash: true}
	case f.script.Hit(c, script.CrashAfter) != nil:
		return sim.Fault{Crash: true, After: true}
	}
	return sim.Fault{}
}

// Cloud implements sim.Faults.
func (f *faults) Cloud(c sim.Call) sim.Fault {
	call := f.call(c)
	kinds := []script.Kind{script.CloudThrottle}
	changes := []string{"Create", "Delete"}
	if f.vendor != nil {
		changes = f.vendor.changes
	}
	switch {
	case slices.Contains(changes, c.Verb):
		kinds = append(kinds, script.CloudLost)
	case c.Verb == "List":
		kinds = append(kinds, script.PartialList)
	case c.Verb == "InstanceTypes":
		kinds = append(kinds, script.FewTypes)
	}
	out := f.process(call)
	hit := f.script.Hit(call, kinds...)
	if hit == nil || out.Crash {
		return out
	}
	switch hit.Kind {
	case script.CloudThrottle:
		out.Refuse = errors.New("RequestLimitExceeded: request limit exceeded")
		if f.vendor != nil {
			out.Refuse = f.vendor.throttled
		}
	case script.CloudLost:
		out.Lose = fmt.Errorf("%s %s: connection reset by peer", c.Verb, c.Name)
	case script.PartialList, script.FewTypes:
		out.Leave = 1 - float64(hit.Keep)/100
	}
	return out
}
