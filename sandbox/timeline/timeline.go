// SPDX-License-Identifier: Apache-2.0

// Package timeline says in words what happened to a fleet between two looks at it. It is one text for people at a
// terminal, for logs, and for the log of a demo.
package timeline

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"karpenter/sandbox/fleet"
)

// Kind is what an entry is about: one short word.
type Kind string

// The kinds of entries.
const (
	Now     Kind = "now"     // what there is, at first
	Launch  Kind = "launch"  // machines have been bought
	Up      Kind = "ready"   // machines take pods
	Down    Kind = "drain"   // machines are being removed
	Gone    Kind = "gone"    // machines are gone
	Refused Kind = "refused" // claims went without ever having been a machine
	Pods    Kind = "pods"
	Pool    Kind = "pool"
	Warning Kind = "warning" // the autoscaler says that something is wrong
	Trouble Kind = "trouble" // the sandbox itself has something to say, such as a process that died
)

// Entry is one thing that happened.
type Entry struct {
	Kind Kind
	Text string
}

const (
	kindsTold     = 5 // kinds of machines named in one entry
	workloadsTold = 4 // workloads that get entries of their own; with more, there is one entry for all
)

// Between tells what happened from one view to a later one, in the order cause before effect.
func Between(before, after *fleet.View) []Entry {
	var told []Entry
	told = append(told, pools(before, after)...)
	told = append(told, pods(before, after)...)
	told = append(told, machines(before, after)...)
	return append(told, warnings(before, after)...)
}

func pools(before, after *fleet.View) []Entry {
	type status struct {
		ready  bool
		reason string
	}
	was := map[string]status{}
	for _, p := range before.Pools {
		was[p.Name] = status{p.Ready, p.Reason}
	}
	var told []Entry
	for _, p := range after.Pools {
		old, known := was[p.Name]
		delete(was, p.Name)
		switch {
		case known && old == status{p.Ready, p.Reason}:
		case p.Ready:
			told = append(told, Entry{Pool, p.Name + " is ready" + limits(&p)})
		case p.Reason == "": // too new to say anything about
		default:
			told = append(told, Entry{Pool, fmt.Sprintf("%s is not ready: %s", p.Name, p.Reason)})
		}
	}
	for _, p := range before.Pools {
		if _, gone := was[p.Name]; gone {
			told = append(told, Entry{Pool, p.Name + " is gone"})
		}
	}
	return told
}

func limits(p *fleet.Pool) string {
	var parts []string
	for name, limit := range p.Limits {
		parts = append(parts, fmt.Sprintf("%s %s", limit.String(), name))
	}
	if len(parts) == 0 {
		return ""
	}
	slices.Sort(parts)
	return ", limited to " + strings.Join(parts, ", ")
}

func pods(before, after *fleet.View) []Entry {
	var changed []string
	for _, w := range after.Workloads {
		if count(&w) != count(new(before.Workload(w.Name))) {
			changed = append(changed, w.Name)
		}
	}
	for _, w := range before.Workloads {
		if gone := after.Workload(w.Name); gone.Pods() == 0 {
			changed = append(changed, w.Name)
		}
	}
	slices.Sort(changed)
	if len(changed) > workloadsTold {
		_, _, all := after.Totals()
		return []Entry{{Pods, fmt.Sprintf("%d workloads: %s", len(after.Workloads), count(&all))}}
	}
	var told []Entry
	for _, name := range changed {
		w := after.Workload(name)
		told = append(told, Entry{Pods, fmt.Sprintf("%s: %s", name, count(&w))})
	}
	return told
}

// count says how many pods are how far.
func count(w *fleet.Workload) string {
	var parts []string
	for _, c := range []struct {
		n    int
		what string
	}{{w.Waiting, "waiting"}, {w.Starting, "starting"}, {w.Running, "running"}, {w.Finished, "finished"}, {w.Stopping, "stopping"}} {
		if c.n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", c.n, c.what))
		}
	}
	if len(parts) == 0 {
		return "no pods"
	}
	return strings.Join(parts, ", ")
}

func machines(before, after *fleet.View) []Entry {
	was, is := byName(before.Machines), byName(after.Machines)
	var launched, up, down, gone, refused []fleet.Machine
	for _, m := range after.Machines {
		old := was[m.Name]
		if m.Type != "" && old.Type == "" {
			launched = append(launched, m)
		}
		if m.State == fleet.Ready && old.State != fleet.Ready {
			up = append(up, m)
		}
		if m.State == fleet.Removing && old.State != fleet.Removing && m.Type != "" {
			down = append(down, m)
		}
	}
	for _, m := range before.Machines {
		if _, there := is[m.Name]; there {
			continue
		}
		if m.Type == "" {
			refused = append(refused, m)
		} else {
			gone = append(gone, m)
		}
	}
	var told []Entry
	tell := func(kind Kind, which []fleet.Machine, so string) {
		if len(which) > 0 {
			told = append(told, Entry{kind, fmt.Sprintf("%s%s: %s", plural(len(which), "node"), so, kinds(which))})
		}
	}
	tell(Launch, launched, standing(after))
	tell(Up, up, fmt.Sprintf(" (%d of %d)", after.Count(fleet.Ready), len(after.Machines)))
	tell(Down, down, "")
	tell(Gone, gone, standing(after))
	if len(refused) > 0 {
		told = append(told, Entry{Refused, plural(len(refused), "claim") + " gone without a machine"})
	}
	return told
}

func byName(all []fleet.Machine) map[string]fleet.Machine {
	named := make(map[string]fleet.Machine, len(all))
	for _, m := range all {
		named[m.Name] = m
	}
	return named
}

// Standing says what there is.
func Standing(v *fleet.View) string {
	_, _, all := v.Totals()
	return fmt.Sprintf("%d of %s ready, $%.3f/h; pods: %s", v.Count(fleet.Ready), plural(len(v.Machines), "node"), v.Price, count(&all))
}

func standing(v *fleet.View) string {
	bought := 0
	for i := range v.Machines {
		if v.Machines[i].Type != "" {
			bought++
		}
	}
	return fmt.Sprintf(" (now %d at $%.3f/h)", bought, v.Price)
}

// kinds names machines by type and price, the most numerous first.
func kinds(which []fleet.Machine) string {
	type kind struct {
		name, zone, capacityType string
		price                    float64
	}
	counts := map[kind]int{}
	for _, m := range which {
		counts[kind{m.Type, m.Zone, m.CapacityType, m.Price}]++
	}
	var all []kind
	for k := range counts {
		all = append(all, k)
	}
	slices.SortFunc(all, func(a, b kind) int {
		return cmp.Or(cmp.Compare(counts[b], counts[a]), cmp.Compare(a.name, b.name), cmp.Compare(a.zone, b.zone),
			cmp.Compare(a.capacityType, b.capacityType), cmp.Compare(a.price, b.price))
	})
	var parts []string
	for _, k := range all[:min(len(all), kindsTold)] {
		words := strings.Join(strings.Fields(k.name+" "+k.capacityType+" "+k.zone), " ")
		parts = append(parts, fmt.Sprintf("%d × %s $%.4f/h", counts[k], words, k.price))
	}
	text := strings.Join(parts, ", ")
	if rest := len(all) - kindsTold; rest > 0 {
		return fmt.Sprintf("%s and %s more", text, plural(rest, "kind"))
	}
	return text
}

func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// warnings tells new warnings, those as one that differ in nothing but their object and in numbers. What was warned of
// in the earlier view's notices already is told in short.
func warnings(before, after *fleet.View) []Entry {
	known := map[string]bool{}
	for _, n := range before.Notices {
		known[saying(&n)] = true
	}
	about := map[string][]fleet.Notice{}
	var order []string
	for _, n := range after.Notices[max(0, len(after.Notices)-(after.Noticed-before.Noticed)):] {
		if !n.Warning {
			continue
		}
		s := saying(&n)
		if about[s] == nil {
			order = append(order, s)
		}
		about[s] = append(about[s], n)
	}
	var told []Entry
	for _, s := range order {
		objects, message := about[s][0].Object, about[s][len(about[s])-1].Message
		if others := distinct(about[s]) - 1; others > 0 {
			objects = fmt.Sprintf("%s and %s", objects, plural(others, "other"))
		}
		if known[s] {
			message = "as before"
		}
		told = append(told, Entry{Warning, fmt.Sprintf("%s, %s: %s", about[s][0].Reason, objects, message)})
	}
	return told
}

// saying is what a notice says, numbers aside.
func saying(n *fleet.Notice) string {
	return n.Reason + strings.Map(func(r rune) rune {
		if unicode.IsDigit(r) {
			return -1
		}
		return r
	}, n.Message)
}

func distinct(notices []fleet.Notice) int {
	objects := map[string]bool{}
	for _, n := range notices {
		objects[n.Object] = true
	}
	return len(objects)
}
