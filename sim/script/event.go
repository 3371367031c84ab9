// SPDX-License-Identifier: Apache-2.0

package script

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// event reads what comes after "at".
func (p *parser) event(w []string) error {
	if len(w) < 2 {
		return errors.New("write when and what, such as at 10m scale web 4")
	}
	at, err := when(w[0])
	if err != nil {
		return err
	}
	e := Event{At: at}
	switch w[1] {
	case Scale:
		err = p.scale(&e, w[2:])
	case "delete":
		err = p.deletion(&e, w[2:])
	case Edit:
		err = p.edit(&e, w[2:])
	case Price:
		err = p.price(&e, w[2:])
	case Interrupt:
		e.Do = Interrupt
		if len(w) != 3 {
			return errors.New("write how many, such as interrupt 2")
		}
		e.Count, err = positive(w[2])
	case Sicken:
		err = p.sicken(&e, w[2:])
	case Poison, Unready, Unbound, Unstarted:
		err = p.lasting(&e, w[1:])
	default:
		return fmt.Errorf("%q is nothing that happens; write scale, delete, edit, price, interrupt, sicken, poison, unready, unbound or unstarted", w[1])
	}
	if err != nil {
		return err
	}
	p.script.Events = append(p.script.Events, e)
	return nil
}

func when(s string) (When, error) {
	if n, ok := strings.CutPrefix(s, "step:"); ok {
		step, err := number(n, 100_000_000)
		if err == nil && step > 0 {
			return When{Step: step}, nil
		}
	} else if d, err := duration(s); err == nil {
		return When{After: d}, nil
	}
	return When{}, fmt.Errorf("invalid moment %q; write a duration such as 10m, or step:500", s)
}

func positive(s string) (int, error) {
	n, err := number(s, 100_000)
	if err != nil || n == 0 {
		return 0, fmt.Errorf("%q is not a number of at least 1", s)
	}
	return n, nil
}

func (p *parser) scale(e *Event, w []string) error {
	e.Do = Scale
	if len(w) != 2 || !isName(w[0]) {
		return errors.New("write whom and to what size, such as scale web 4")
	}
	n, err := number(w[1], 5000)
	if err != nil {
		return fmt.Errorf("invalid size %q: want 0 to 5000", w[1])
	}
	e.Name, e.Count = w[0], n
	return nil
}

func (p *parser) deletion(e *Event, w []string) error {
	if len(w) < 2 || len(w) > 3 || !isName(w[1]) {
		return errors.New("write what, of whom and how many, such as delete pod web 2")
	}
	e.Do, e.Name, e.Count = "delete "+w[0], w[1], 1
	switch {
	case e.Do == DeletePool && len(w) == 3:
		return errors.New("a pool is deleted once: leave the number out")
	case e.Do != DeletePod && e.Do != DeleteNode && e.Do != DeleteClaim && e.Do != DeletePool:
		return fmt.Errorf("%q cannot be deleted; write pod, node, claim or pool", w[0])
	case len(w) == 2:
		return nil
	}
	n, err := positive(w[2])
	e.Count = n
	return err
}

func (p *parser) edit(e *Event, w []string) error {
	e.Do = Edit
	if len(w) < 2 || !isName(w[0]) {
		return errors.New("write which pool and what of it, such as edit general label=v2")
	}
	e.Name = w[0]
	trial := Pool{}
	for _, pair := range w[1:] {
		if err := setField(&trial, p.grammar.pools, pair); err != nil {
			return err
		}
	}
	if trial.Static > 0 {
		return errors.New("static cannot be edited: a pool is static for life")
	}
	// Printed as read, so that a value that switches something off survives.
	e.Edit = append(e.Edit, w[1:]...)
	return nil
}

func (p *parser) sicken(e *Event, w []string) error {
	e.Do = Sicken
	usage := errors.New("write nodes of which pool, how many and for how long, such as sicken general 1 10m")
	if len(w) != 3 || !isName(w[0]) {
		return usage
	}
	n, err := positive(w[1])
	if err != nil {
		return err
	}
	d, err := duration(w[2])
	if err != nil || d == 0 {
		return usage
	}
	e.Name, e.Count, e.For = w[0], n, d
	return nil
}

// lasting reads what is done to all nodes of a pool or pods of a workload for a
// while.
func (p *parser) lasting(e *Event, w []string) error {
	e.Do = w[0]
	if len(w) == 3 && isName(w[1]) && (e.Do == Poison || e.At.Step == 0) {
		d, err := duration(w[2])
		if e.Name, e.For = w[1], d; err == nil && d > 0 {
			return nil
		}
	}
	return fmt.Errorf("write whom and for how long, such as %s general 10m", e.Do)
}

func (p *parser) price(e *Event, w []string) error {
	e.Do = Price
	usage := errors.New("write which type, how many times its price, and where, such as price m2 x3 zone=a capacity=spot")
	if len(w) < 2 || !isName(w[0]) {
		return usage
	}
	digits, ok := strings.CutPrefix(w[1], "x")
	factor, err := strconv.ParseFloat(digits, 64)
	if !ok || err != nil || !(factor >= 0.01 && factor <= 1000) {
		return usage
	}
	e.Name, e.Factor = w[0], factor
	for _, pair := range w[2:] {
		key, value, _ := strings.Cut(pair, "=")
		switch {
		case key == "zone" && isName(value):
			e.Zone = value
		case key == "capacity" && isSold(value):
			e.Sold = value
		default:
			return usage
		}
	}
	return nil
}

// Apply sets the fields of the pool that the event Edit names.
func (e *Event) Apply(pool *Pool) error {
	fields := poolFields()
	for _, pair := range e.Edit {
		if err := setField(pool, fields, pair); err != nil {
			return err
		}
	}
	return nil
}
