// SPDX-License-Identifier: Apache-2.0

package script

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// grammar is the vocabulary of the language.
type grammar struct {
	types  []field[Type]
	pools  []field[Pool]
	pods   []field[Workload]
	faults []field[Fault]
}

func newGrammar() *grammar {
	return &grammar{types: typeFields(), pools: poolFields(), pods: podFields(), faults: faultFields()}
}

func typeFields() []field[Type] {
	return []field[Type]{
		amount("cpu", func(t *Type) *string { return &t.CPU }),
		amount("mem", func(t *Type) *string { return &t.Mem }),
		dollars("price", func(t *Type) *float64 { return &t.Price }),
		dollars("spot", func(t *Type) *float64 { return &t.Spot }),
		words("zones", "names of zones, separated by commas", func(t *Type) *[]string { return &t.Zones }, isName),
	}
}

func poolFields() []field[Pool] {
	return []field[Pool]{
		{"limits", "nodes:20, cpu:100 or mem:200Gi, separated by commas", setLimits, func(p *Pool) string { return p.Limits.String() }},
		words("budgets", "10% or 5, with @hourly/10m for when, with :Drifted for why, separated by commas", func(p *Pool) *[]string { return &p.Budgets }, isBudget),
		oneOf("policy", func(p *Pool) *string { return &p.Policy }, "WhenEmpty", "WhenEmptyOrUnderutilized", "Balanced"),
		{"after", "a duration such as 30s, or Never", func(p *Pool, s string) error {
			if s == "Never" {
				p.After = Never
				return nil
			}
			d, err := duration(s)
			p.After = d
			return err
		}, func(p *Pool) string {
			switch p.After {
			case Never:
				return "Never"
			case 0:
				return ""
			}
			return short(p.After)
		}},
		span("expire", func(p *Pool) *time.Duration { return &p.Expire }),
		span("grace", func(p *Pool) *time.Duration { return &p.Grace }),
		count("weight", 100, func(p *Pool) *int { return &p.Weight }),
		words("types", "names of types, separated by commas", func(p *Pool) *[]string { return &p.Types }, isName),
		words("zones", "names of zones, separated by commas", func(p *Pool) *[]string { return &p.Zones }, isName),
		words("capacity", "spot or on-demand, separated by commas", func(p *Pool) *[]string { return &p.Capacity }, isSold),
		text("label", "a word", func(p *Pool) *string { return &p.Label }, isWord),
		text("taint", "a word", func(p *Pool) *string { return &p.Taint }, isWord),
		count("static", 1000, func(p *Pool) *int { return &p.Static }),
	}
}

func podFields() []field[Workload] {
	place := []string{"node", "zone"}
	return []field[Workload]{
		count("count", 5000, func(w *Workload) *int { return &w.Count }),
		amount("cpu", func(w *Workload) *string { return &w.CPU }),
		amount("mem", func(w *Workload) *string { return &w.Mem }),
		flag("daemon", func(w *Workload) *bool { return &w.Daemon }),
		oneOf("apart", func(w *Workload) *string { return &w.Apart }, place...),
		oneOf("spread", func(w *Workload) *string { return &w.Spread }, place...),
		text("pool", "the name of a pool", func(w *Workload) *string { return &w.Pool }, isName),
		text("zone", "the name of a zone", func(w *Workload) *string { return &w.Zone }, isName),
		oneOf("capacity", func(w *Workload) *string { return &w.Capacity }, "spot", "on-demand"),
		text("tolerates", "the key of a taint", func(w *Workload) *string { return &w.Tolerates }, isWord),
		text("pdb", "how many pods may be away, a number or a percentage", func(w *Workload) *string { return &w.PDB }, isShare),
		text("protect", "true, or a duration such as 10m", func(w *Workload) *string { return &w.Protect }, isProtection),
		flag("surge", func(w *Workload) *bool { return &w.Surge }),
		count("buffer", 1000, func(w *Workload) *int { return &w.Buffer }),
		count("group", 1000, func(w *Workload) *int { return &w.Group }),
		flag("whole", func(w *Workload) *bool { return &w.Whole }),
		span("grace", func(w *Workload) *time.Duration { return &w.Grace }),
		span("life", func(w *Workload) *time.Duration { return &w.Life }),
	}
}

func faultFields() []field[Fault] {
	return []field[Fault]{
		span("from", func(f *Fault) *time.Duration { return &f.From }),
		span("for", func(f *Fault) *time.Duration { return &f.For }),
		count("every", 1_000_000, func(f *Fault) *int { return &f.Every }),
		count("times", 1_000_000, func(f *Fault) *int { return &f.Times }),
		count("at", 1_000_000, func(f *Fault) *int { return &f.At }),
		text("call", "a verb of the API or a method of the provider", func(f *Fault) *string { return &f.Call }, isWord),
		text("object", "a kind of object, such as NodeClaim", func(f *Fault) *string { return &f.Object }, isWord),
		text("type", "the name of a type", func(f *Fault) *string { return &f.Type }, isName),
		text("zone", "the name of a zone", func(f *Fault) *string { return &f.Zone }, isName),
		oneOf("capacity", func(f *Fault) *string { return &f.Capacity }, "spot", "on-demand"),
		span("lag", func(f *Fault) *time.Duration { return &f.Lag }),
		count("keep", 99, func(f *Fault) *int { return &f.Keep }),
	}
}

// kinds are all kinds of faults.
func kinds() []Kind {
	return []Kind{
		Conflict, Throttle, Timeout, Lost, Gap, Stale,
		NoCapacity, CloudThrottle, CloudLost, CloudLag, PartialList, FewTypes, NoJoin,
		Crash, CrashAfter, Leader, Freeze,
	}
}

// String prints the limits as the language writes them, "" for none.
func (l Limits) String() string {
	var parts []string
	if l.Nodes > 0 {
		parts = append(parts, fmt.Sprintf("nodes:%d", l.Nodes))
	}
	if l.CPU != "" {
		parts = append(parts, "cpu:"+l.CPU)
	}
	if l.Mem != "" {
		parts = append(parts, "mem:"+l.Mem)
	}
	return strings.Join(parts, ",")
}

func setLimits(p *Pool, s string) error {
	p.Limits = Limits{}
	for _, part := range strings.Split(s, ",") {
		key, value, _ := strings.Cut(part, ":")
		var err error
		switch key {
		case "nodes":
			p.Limits.Nodes, err = number(value, 100_000)
			if p.Limits.Nodes == 0 {
				err = errValue
			}
		case "cpu":
			p.Limits.CPU, err = quantity(value)
		case "mem":
			p.Limits.Mem, err = quantity(value)
		default:
			err = errValue
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// Fields is the manual of all keys, one per line.
func Fields() string {
	g := newGrammar()
	var b strings.Builder
	manual(&b, "type", g.types)
	manual(&b, "pool", g.pools)
	manual(&b, "pods", g.pods)
	manual(&b, "fault", g.faults)
	return b.String()
}

func manual[T any](b *strings.Builder, verb string, fields []field[T]) {
	for _, f := range fields {
		fmt.Fprintf(b, "%-6s %-10s %s\n", verb, f.key, f.want)
	}
}

// setField reads one key=value into t.
func setField[T any](t *T, fields []field[T], pair string) error {
	key, value, ok := strings.Cut(pair, "=")
	i := slices.IndexFunc(fields, func(f field[T]) bool { return f.key == key })
	if !ok || i < 0 {
		var known []string
		for _, f := range fields {
			known = append(known, f.key)
		}
		return fmt.Errorf("unknown key %q in this line; keys are %s", pair, strings.Join(known, ", "))
	}
	if fields[i].set(t, value) != nil {
		return fmt.Errorf("%s=%s cannot be read; write %s", key, value, fields[i].want)
	}
	return nil
}

// printFields prints the fields that are set, each after a blank.
func printFields[T any](b *strings.Builder, t *T, fields []field[T]) {
	for _, f := range fields {
		if s := f.get(t); s != "" {
			fmt.Fprintf(b, " %s=%s", f.key, s)
		}
	}
}
