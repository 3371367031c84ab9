// SPDX-License-Identifier: Apache-2.0

package script

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Error is a line that cannot be read.
type Error struct {
	Line int    // from 1; 0 = the script as a whole
	Text string // of the line
	What string // what is wrong, and what to write instead
}

// Error implements error.
func (e *Error) Error() string {
	if e.Line == 0 {
		return e.What
	}
	return fmt.Sprintf("line %d: %s\n\t%s", e.Line, e.What, e.Text)
}

// Parse reads a script. The error names every line that is wrong.
func Parse(text string) (*Script, error) {
	p := &parser{script: &Script{}, grammar: newGrammar()}
	var errs []error
	for i, line := range strings.Split(text, "\n") {
		bare, _, _ := strings.Cut(line, "#")
		fields := strings.Fields(bare)
		if len(fields) == 0 {
			continue
		}
		if err := p.line(fields); err != nil {
			errs = append(errs, &Error{Line: i + 1, Text: strings.TrimSpace(line), What: err.Error()})
		}
	}
	if len(errs) == 0 {
		errs = p.script.check()
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return p.script, nil
}

type parser struct {
	script  *Script
	grammar *grammar
}

func (p *parser) line(w []string) error {
	verbs := map[string]func([]string) error{
		"seed": p.seed, "run": p.run, "gates": p.gates, "type": p.machineType,
		"pool": p.pool, "pods": p.pods, "at": p.event, "fault": p.fault,
	}
	read, ok := verbs[w[0]]
	if !ok {
		return fmt.Errorf("%q begins no line; lines begin with seed, run, gates, type, pool, pods, at or fault", w[0])
	}
	return read(w[1:])
}

func (p *parser) seed(w []string) error {
	if len(w) == 1 {
		if n, err := strconv.ParseUint(w[0], 10, 64); err == nil {
			p.script.Seed = n
			return nil
		}
	}
	return errors.New("write seed and a number, such as seed 17")
}

func (p *parser) run(w []string) error {
	if len(w) == 3 && w[1] == "rest" {
		run, err1 := duration(w[0])
		rest, err2 := duration(w[2])
		if err1 == nil && err2 == nil {
			p.script.Run, p.script.Rest = run, rest
			return nil
		}
	}
	return errors.New("write two durations, such as run 30m rest 20m")
}

func (p *parser) gates(w []string) error {
	for _, gate := range w {
		if !isWord(gate) {
			return fmt.Errorf("unknown feature gate %q", gate)
		}
		p.script.Gates = append(p.script.Gates, gate)
	}
	return nil
}

// named reads a name and the fields after it.
func named[T any](w []string, t *T, name *string, fields []field[T]) error {
	if len(w) == 0 || !isName(w[0]) {
		return errors.New("a name comes first: lower-case letters, digits, - and .")
	}
	*name = w[0]
	for _, pair := range w[1:] {
		if err := setField(t, fields, pair); err != nil {
			return err
		}
	}
	return nil
}

func (p *parser) machineType(w []string) error {
	t := Type{}
	if err := named(w, &t, &t.Name, p.grammar.types); err != nil {
		return err
	}
	if t.CPU == "" || t.Mem == "" || t.Price == 0 || t.Zones == nil {
		return errors.New("a type needs cpu, mem, price and zones")
	}
	if slices.ContainsFunc(p.script.Types, func(o Type) bool { return o.Name == t.Name }) {
		return fmt.Errorf("there is a type %s already", t.Name)
	}
	p.script.Types = append(p.script.Types, t)
	return nil
}

func (p *parser) pool(w []string) error {
	pool := Pool{}
	if err := named(w, &pool, &pool.Name, p.grammar.pools); err != nil {
		return err
	}
	if p.script.pool(pool.Name) != nil {
		return fmt.Errorf("there is a pool %s already", pool.Name)
	}
	p.script.Pools = append(p.script.Pools, pool)
	return nil
}

func (p *parser) pods(w []string) error {
	load := Workload{}
	if err := named(w, &load, &load.Name, p.grammar.pods); err != nil {
		return err
	}
	switch {
	case load.CPU == "" && load.Mem == "":
		return errors.New("pods need cpu or mem")
	case load.Daemon && (load.Count > 0 || load.PDB != "" || load.Apart != "" || load.Spread != "" || load.Life > 0 || load.Buffer > 0):
		return errors.New("pods of a daemon have no count, pdb, apart, spread, buffer or life")
	case p.script.workload(load.Name) != nil:
		return fmt.Errorf("there are pods %s already", load.Name)
	}
	p.script.Pods = append(p.script.Pods, load)
	return nil
}

func (p *parser) fault(w []string) error {
	if len(w) == 0 || !slices.Contains(kinds(), Kind(w[0])) {
		var names []string
		for _, k := range kinds() {
			names = append(names, string(k))
		}
		return fmt.Errorf("the kind of fault comes first: one of %s", strings.Join(names, ", "))
	}
	f := Fault{Kind: Kind(w[0])}
	for _, pair := range w[1:] {
		if err := setField(&f, p.grammar.faults, pair); err != nil {
			return err
		}
	}
	switch {
	case (f.Kind == Stale || f.Kind == CloudLag || f.Kind == Freeze) != (f.Lag > 0):
		return errors.New("lag belongs to stale, cloud-lag and freeze, which need it")
	case (f.Kind == PartialList || f.Kind == FewTypes) != (f.Keep > 0):
		return errors.New("keep belongs to partial-list and few-types, which need it")
	}
	p.script.Faults = append(p.script.Faults, f)
	return nil
}
