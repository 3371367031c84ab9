// SPDX-License-Identifier: Apache-2.0

package script

import (
	"fmt"
	"strings"
)

// String prints the script so that Parse reads the same.
func (s *Script) String() string {
	g := newGrammar()
	var b strings.Builder
	fmt.Fprintf(&b, "seed %d\nrun %s rest %s\n", s.Seed, short(s.Run), short(s.Rest))
	if len(s.Gates) > 0 {
		fmt.Fprintf(&b, "gates %s\n", strings.Join(s.Gates, " "))
	}
	for i := range s.Types {
		lineOf(&b, "type "+s.Types[i].Name, &s.Types[i], g.types)
	}
	for i := range s.Pools {
		lineOf(&b, "pool "+s.Pools[i].Name, &s.Pools[i], g.pools)
	}
	for i := range s.Pods {
		lineOf(&b, "pods "+s.Pods[i].Name, &s.Pods[i], g.pods)
	}
	for i := range s.Events {
		fmt.Fprintf(&b, "%s\n", &s.Events[i])
	}
	for i := range s.Faults {
		fmt.Fprintf(&b, "%s\n", &s.Faults[i])
	}
	return b.String()
}

func lineOf[T any](b *strings.Builder, head string, t *T, fields []field[T]) {
	b.WriteString(head)
	printFields(b, t, fields)
	b.WriteByte('\n')
}

// String prints the line of the fault.
func (f *Fault) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "fault %s", f.Kind)
	printFields(&b, f, faultFields())
	return b.String()
}

// String prints the moment as the language writes it.
func (w When) String() string {
	if w.Step > 0 {
		return fmt.Sprintf("step:%d", w.Step)
	}
	return short(w.After)
}

// String prints the line of the event.
func (e *Event) String() string {
	head := fmt.Sprintf("at %s %s", e.At, e.Do)
	switch e.Do {
	case Scale, DeletePod, DeleteNode, DeleteClaim:
		return fmt.Sprintf("%s %s %d", head, e.Name, e.Count)
	case Poison, Unready, Unbound, Unstarted:
		return fmt.Sprintf("%s %s %s", head, e.Name, short(e.For))
	case Sicken:
		return fmt.Sprintf("%s %s %d %s", head, e.Name, e.Count, short(e.For))
	case Interrupt:
		return fmt.Sprintf("%s %d", head, e.Count)
	case Edit:
		return fmt.Sprintf("%s %s %s", head, e.Name, strings.Join(e.Edit, " "))
	case Price:
		out := fmt.Sprintf("%s %s x%s", head, e.Name, decimal(e.Factor))
		if e.Zone != "" {
			out += " zone=" + e.Zone
		}
		if e.Sold != "" {
			out += " capacity=" + e.Sold
		}
		return out
	}
	return head + " " + e.Name
}
