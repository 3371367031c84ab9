// SPDX-License-Identifier: Apache-2.0

package top

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Kind is what an entry is about: one short word.
type Kind string

// The kinds of entries.
const (
	Launched Kind = "launch"  // nodes have an instance
	Started  Kind = "ready"   // nodes take pods
	Draining Kind = "remove"  // nodes are being removed
	Gone     Kind = "gone"    // nodes are gone
	PodsKind Kind = "pods"    // what became of pods
	PoolKind Kind = "pool"    // NodePools became ready, or ceased to be
	Warned   Kind = "warning" // Karpenter published a Warning event
	Trouble  Kind = "trouble" // the program that shows this reports something
)

// Entry is one thing that happened.
type Entry struct {
	At   time.Time
	Kind Kind
	Text string
}

const (
	mostTypes     = 5 // kinds of nodes that one entry names
	mostWorkloads = 4 // workloads that get entries of their own; with more there is one for all
)

// Between returns what happened from one View to a later one, causes before
// effects.
func Between(before, after *View) []Entry {
	var out []Entry
	say := func(kind Kind, text string) { out = append(out, Entry{after.Now, kind, text}) }
	poolChanges(before, after, say)
	podChanges(before, after, say)
	nodeChanges(before, after, say)
	newWarnings(before, after, say)
	return out
}

func poolChanges(before, after *View, say func(Kind, string)) {
	was := map[string]Pool{}
	for _, p := range before.Pools {
		was[p.Name] = p
	}
	for _, p := range after.Pools {
		old, known := was[p.Name]
		delete(was, p.Name)
		switch {
		case known && old.Ready == p.Ready && old.Reason == p.Reason:
		case p.Ready:
			say(PoolKind, p.Name+" is ready")
		case p.Reason != "":
			say(PoolKind, fmt.Sprintf("%s is not ready: %s", p.Name, p.Reason))
		}
	}
	for _, p := range before.Pools {
		if _, gone := was[p.Name]; gone {
			say(PoolKind, p.Name+" is gone")
		}
	}
}

func podChanges(before, after *View, say func(Kind, string)) {
	was := map[string]Workload{}
	for _, w := range before.Workloads {
		was[w.Namespace+"/"+w.Name] = w
	}
	var changed []Workload
	for _, w := range after.Workloads {
		key := w.Namespace + "/" + w.Name
		if old := was[key]; counts(&old) != counts(&w) {
			changed = append(changed, w)
		}
		delete(was, key)
	}
	for _, w := range before.Workloads {
		if _, gone := was[w.Namespace+"/"+w.Name]; gone {
			changed = append(changed, Workload{Namespace: w.Namespace, Name: w.Name})
		}
	}
	if len(changed) > mostWorkloads {
		_, _, all := after.Totals()
		say(PodsKind, fmt.Sprintf("%d workloads: %s", len(after.Workloads), counts(&all)))
		return
	}
	for _, w := range changed {
		say(PodsKind, fmt.Sprintf("%s: %s", w.Name, counts(&w)))
	}
}

// counts says how many pods are how far.
func counts(w *Workload) string {
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

func nodeChanges(before, after *View, say func(Kind, string)) {
	was, is := map[string]Node{}, map[string]Node{}
	for _, n := range before.Nodes {
		was[n.key()] = n
	}
	var launched, started, draining, gone []Node
	for _, n := range after.Nodes {
		is[n.key()] = n
		old := was[n.key()]
		if n.Type != "" && old.Type == "" {
			launched = append(launched, n)
		}
		if n.State == Ready && old.State != Ready {
			started = append(started, n)
		}
		if n.State == Removing && old.State != Removing && n.Type != "" {
			draining = append(draining, n)
		}
	}
	refused := 0
	for _, n := range before.Nodes {
		switch _, there := is[n.key()]; {
		case there:
		case n.Type == "":
			refused++
		default:
			gone = append(gone, n)
		}
	}
	tell := func(kind Kind, which []Node, so string, why bool) {
		if len(which) > 0 {
			say(kind, fmt.Sprintf("%s%s: %s%s", counted(len(which), "node"), so, types(which), because(which, why)))
		}
	}
	tell(Launched, launched, standing(after), true)
	tell(Started, started, fmt.Sprintf(" (%d of %d)", after.Count(Ready), len(after.Nodes)), false)
	tell(Draining, draining, "", true)
	tell(Gone, gone, standing(after), false)
	if refused > 0 {
		say(Gone, counted(refused, "NodeClaim")+" gone without an instance")
	}
}

// because names the reasons of the nodes, the most frequent first.
func because(which []Node, wanted bool) string {
	if !wanted {
		return ""
	}
	n := map[string]int{}
	var order []string
	for i := range which {
		_, why, found := strings.Cut(which[i].Why, "launched ")
		if !found {
			why = strings.TrimPrefix(which[i].Why, "removed: ")
		}
		if why == "" {
			continue
		}
		if n[why] == 0 {
			order = append(order, why)
		}
		n[why]++
	}
	slices.SortStableFunc(order, func(a, b string) int { return cmp.Compare(n[b], n[a]) })
	if len(order) == 0 {
		return ""
	}
	if len(order) > 2 {
		order = append(order[:2], "other reasons")
	}
	return " — " + strings.Join(order, "; ")
}

// Standing says in one line what there is.
func Standing(v *View) string {
	_, _, all := v.Totals()
	return fmt.Sprintf("%d of %s ready, %s; pods: %s", v.Count(Ready), counted(len(v.Nodes), "node"), v.hourly(), counts(&all))
}

func standing(v *View) string {
	launched := 0
	for i := range v.Nodes {
		if v.Nodes[i].Type != "" {
			launched++
		}
	}
	return fmt.Sprintf(" (now %d at %s)", launched, v.hourly())
}

// types names nodes by type and price, the most numerous first.
func types(which []Node) string {
	type kind struct {
		name, zone, capacityType string
		price                    float64
		priced                   bool
	}
	n := map[kind]int{}
	var all []kind
	for i := range which {
		k := kind{which[i].Type, which[i].Zone, which[i].CapacityType, which[i].Price, which[i].Priced}
		if n[k] == 0 {
			all = append(all, k)
		}
		n[k]++
	}
	slices.SortFunc(all, func(a, b kind) int {
		return cmp.Or(cmp.Compare(n[b], n[a]), cmp.Compare(a.name, b.name), cmp.Compare(a.zone, b.zone),
			cmp.Compare(a.capacityType, b.capacityType), cmp.Compare(a.price, b.price))
	})
	var parts []string
	for _, k := range all[:min(len(all), mostTypes)] {
		price := "$?/h"
		if k.priced {
			price = fmt.Sprintf("$%.4f/h", k.price)
		}
		parts = append(parts, fmt.Sprintf("%d × %s %s", n[k], strings.Join(strings.Fields(k.name+" "+k.capacityType+" "+k.zone), " "), price))
	}
	text := strings.Join(parts, ", ")
	if rest := len(all) - mostTypes; rest > 0 {
		return fmt.Sprintf("%s and %s more", text, counted(rest, "kind"))
	}
	return text
}

func counted(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// newWarnings tells warnings that were not there before, those as one that differ in
// nothing but their object and in numbers.
func newWarnings(before, after *View, say func(Kind, string)) {
	known := map[string]bool{}
	for i := range before.Warnings {
		known[before.Warnings[i].key] = true
	}
	about := map[string][]Warning{}
	var order []string
	for _, w := range after.Warnings {
		if known[w.key] {
			continue
		}
		s := saying(&w)
		if about[s] == nil {
			order = append(order, s)
		}
		about[s] = append(about[s], w)
	}
	for _, s := range order {
		objects := about[s][0].Object
		if others := len(about[s]) - 1; others > 0 {
			objects = fmt.Sprintf("%s and %s", objects, counted(others, "other"))
		}
		say(Warned, fmt.Sprintf("%s, %s: %s", about[s][0].Reason, objects, about[s][len(about[s])-1].Message))
	}
}

// saying is what a warning says, numbers aside.
func saying(w *Warning) string {
	return w.Reason + strings.Map(func(r rune) rune {
		if '0' <= r && r <= '9' {
			return -1
		}
		return r
	}, w.Message)
}
