// SPDX-License-Identifier: Apache-2.0

package script

import (
	"fmt"
	"slices"
	"strings"
)

func (s *Script) pool(name string) *Pool {
	i := slices.IndexFunc(s.Pools, func(p Pool) bool { return p.Name == name })
	if i < 0 {
		return nil
	}
	return &s.Pools[i]
}

func (s *Script) workload(name string) *Workload {
	i := slices.IndexFunc(s.Pods, func(w Workload) bool { return w.Name == name })
	if i < 0 {
		return nil
	}
	return &s.Pods[i]
}

func (s *Script) hasType(name string) bool {
	return slices.ContainsFunc(s.Types, func(t Type) bool { return t.Name == name })
}

// check returns what is wrong with the script as a whole.
func (s *Script) check() []error {
	var errs []error
	wrong := func(format string, args ...any) {
		errs = append(errs, &Error{What: fmt.Sprintf(format, args...)})
	}
	if s.Run == 0 {
		wrong("nothing says how long to run; write a line such as run 30m rest 20m")
	}
	if len(s.Types) == 0 {
		wrong("the cloud offers nothing; write a line such as type m2 cpu=2 mem=8Gi price=0.1 zones=a")
	}
	for _, p := range s.Pools {
		for _, t := range p.Types {
			if !s.hasType(t) {
				wrong("pool %s names type %s, which no line describes", p.Name, t)
			}
		}
		if p.Static > 0 && (p.Weight > 0 || p.Limits.CPU != "" || p.Limits.Mem != "") {
			wrong("pool %s is static and so has neither weight nor limits but nodes", p.Name)
		}
	}
	for _, w := range s.Pods {
		if w.Pool != "" && s.pool(w.Pool) == nil {
			wrong("pods %s name pool %s, which no line describes", w.Name, w.Pool)
		}
	}
	for _, e := range s.Events {
		s.checkEvent(&e, wrong)
	}
	return errs
}

func (s *Script) checkEvent(e *Event, wrong func(string, ...any)) {
	known, what := true, "pool"
	switch e.Do {
	case Scale, DeletePod, Unbound, Unstarted:
		known, what = s.workload(e.Name) != nil, "pods"
	case Price:
		known, what = s.hasType(e.Name), "type"
	case Interrupt:
	default:
		known = s.pool(e.Name) != nil
	}
	if !known {
		wrong("%s names %s %s, which no line describes", e.Do, what, e.Name)
	}
	if e.Do == Scale && known && s.workload(e.Name).Daemon {
		wrong("pods %s are of a daemon, which is not scaled", e.Name)
	}
	if e.Do == Edit && slices.ContainsFunc(e.Edit, func(p string) bool { return strings.HasPrefix(p, "types=") }) {
		after := Pool{}
		if e.Apply(&after) == nil && slices.ContainsFunc(after.Types, func(t string) bool { return !s.hasType(t) }) {
			wrong("edit %s names a type that no line describes", e.Name)
		}
	}
}
