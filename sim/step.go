// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"context"
	"fmt"
	"slices"
	"testing/synctest"
	"time"
)

// source is what a step can come from.
type source int

const (
	aCall source = iota
	aStray
	anInformer
	aListener
	aQueue
	anActor
)

// choice is one step that can be made now.
type choice struct {
	source   source
	index    int // among those of the source
	weight   float64
	of       *process // nil = of none
	call     *waiting
	informer *informer
	listener *listener
	queue    requests
}

// most is the largest number of events that are delivered in one step.
const most = 6

// step makes one step and says which.
func (p *play) step(end time.Time) (string, error) {
	if what, err := p.elect(); what != "" || err != nil {
		return what, err
	}
	if what, err := p.obey(); what != "" || err != nil {
		return what, err
	}
	p.gather()
	if len(p.choices) == 0 || p.hurry > 0 && p.rand.Float64() < p.hurry {
		return p.pass(end), nil
	}
	return p.do(p.draw())
}

// obey does what actors want done to the process.
func (p *play) obey() (string, error) {
	switch {
	case p.orders.crash:
		p.orders.crash = false
		return "the process crashes", p.restart(false)
	case p.orders.relead:
		p.orders.relead = false
		return "the leader changes", p.restart(true)
	case p.orders.freeze > 0:
		d := p.orders.freeze
		p.orders.freeze = 0
		p.freeze(d)
		return fmt.Sprintf("the leader is frozen for %s", d), nil
	}
	if len(p.orders.gaps) == 0 {
		return "", nil
	}
	for _, i := range p.process.cache.sorted() {
		if p.orders.gaps[i.gvk.Kind] {
			delete(p.orders.gaps, i.gvk.Kind)
			return "watch of " + i.gvk.Kind + " lists again", i.relist()
		}
	}
	clear(p.orders.gaps)
	return "", nil
}

// restart ends the process and starts another one. Calls it was about to make
// may arrive later if strays are wanted.
func (p *play) restart(strays bool) error {
	for _, w := range p.process.gate.list() {
		if strays && w.stray != nil && p.rand.IntN(2) == 0 {
			p.strays = append(p.strays, w.stray())
		}
	}
	p.takeover = time.Time{}
	p.process.end(synctest.Wait)
	p.result.Restarts++
	return p.startProcess()
}

// gather lists what can be done now.
func (p *play) gather() {
	p.choices = p.choices[:0]
	now := time.Now()
	replicas := p.awake()
	for _, r := range replicas {
		for i, w := range r.gate.list() {
			if !w.due.After(now) {
				p.offer(choice{source: aCall, index: i, call: w, of: r}, w.By+" calls")
			}
		}
	}
	for i := range p.strays {
		p.offer(choice{source: aStray, index: i}, "stray")
	}
	for _, r := range replicas {
		p.gatherNews(r)
	}
	for i := range p.actors {
		a := &p.actors[i]
		if wake := a.Wake(); !a.idle || !wake.IsZero() && !wake.After(now) {
			p.offer(choice{source: anActor, index: i}, a.Name())
		}
	}
}

// gatherNews lists what the replica can be told and handed now.
func (p *play) gatherNews(r *process) {
	now := time.Now()
	for i, x := range r.cache.sorted() {
		if !p.orders.frozen[x.gvk.Kind].After(now) && x.behind() > 0 {
			p.offer(choice{source: anInformer, index: i, informer: x}, "watch "+x.gvk.Kind)
		}
		for _, l := range x.listeners {
			if l.backlog() > 0 {
				p.offer(choice{source: aListener, index: i, listener: l}, l.who)
			}
		}
	}
	for i, q := range r.queues {
		if q.ready() > 0 {
			p.offer(choice{source: aQueue, index: i, queue: q}, q.name())
		}
	}
}

// offer adds a choice. Each source has its pace for the whole run, so that in
// some runs some caches lag far behind, some controllers are slow, and so on.
func (p *play) offer(c choice, name string) {
	pace, known := p.paces[name]
	if !known {
		pace = []float64{1, 1, 1, 0.3, 0.05}[p.rand.IntN(5)]
		p.paces[name] = pace
	}
	c.weight = pace
	p.choices = append(p.choices, c)
}

func (p *play) draw() choice {
	sum := 0.0
	for i := range p.choices {
		sum += p.choices[i].weight
	}
	x := p.rand.Float64() * sum
	for i := range p.choices {
		if x -= p.choices[i].weight; x < 0 {
			return p.choices[i]
		}
	}
	return p.choices[len(p.choices)-1]
}

func (p *play) do(c choice) (string, error) {
	switch c.source {
	case aCall:
		return p.answer(c.of, c.call)
	case aStray:
		stray := p.strays[c.index]
		p.strays = slices.Delete(p.strays, c.index, c.index+1)
		return "a call of an earlier process arrives", ignore(stray())
	case anInformer:
		n := 1 + p.rand.IntN(min(most, c.informer.behind()))
		what := fmt.Sprintf("watch of %s brings %d", c.informer.gvk.Kind, n)
		for range n {
			if err := c.informer.tell(); err != nil {
				return what, err
			}
		}
		return what, nil
	case aListener:
		n := 1 + p.rand.IntN(min(most, c.listener.backlog()))
		go func() {
			for range n {
				c.listener.hear()
			}
		}()
		return fmt.Sprintf("%s hears %d of %s", c.listener.who, n, c.listener.of.gvk.Kind), nil
	case aQueue:
		item := c.queue.hand(p.rand.IntN(c.queue.ready()))
		return c.queue.name() + " is handed " + item, nil
	default:
		a := &p.actors[c.index]
		progress, err := a.Step(context.Background())
		a.idle = !progress
		return a.Name(), err
	}
}

// ignore is for calls whose answer is not waited for.
func ignore(error) error { return nil }

// answer carries a call out, or has it fail.
func (p *play) answer(by *process, w *waiting) (string, error) {
	what := fmt.Sprintf("%s: %s %s %s %s", w.By, w.Target, w.Verb, w.Kind, w.Name)
	p.late = by != p.process
	if p.late {
		by.gate.release(w, Fault{})
		p.made = w
		return what + ", by an earlier leader", nil
	}
	if !w.decided {
		w.decided = true
		w.fault = p.faultOf(w.Call)
		if w.fault.Delay > 0 {
			w.due = time.Now().Add(w.fault.Delay)
			return what + " is slow", nil
		}
	}
	f := w.fault
	switch {
	case f.Crash && !f.After:
		return what + ": the process crashes before it", p.restart(false)
	case f.Crash:
		f.Refuse, f.Lose = nil, errEnded
		p.process.gate.release(w, f)
		synctest.Wait()
		p.made = w
		return what + ": the process crashes after it", p.restart(false)
	}
	p.process.gate.release(w, f)
	p.made = w
	return what, nil
}

func (p *play) faultOf(c Call) Fault {
	switch {
	case p.faults == nil, c.Target == fromCache:
		return Fault{}
	case c.Target == Cloud:
		return p.faults.Cloud(c)
	}
	return p.faults.API(c)
}

// pass lets time pass until something is due; a little less if there is
// something to do already.
func (p *play) pass(end time.Time) string {
	now := time.Now()
	next := end
	sooner := func(t time.Time) {
		if t.After(now) && t.Before(next) {
			next = t
		}
	}
	for _, r := range p.awake() {
		for _, q := range r.queues {
			sooner(q.due())
		}
		for _, w := range r.gate.list() {
			sooner(w.due)
		}
	}
	p.dues(sooner)
	for i := range p.actors {
		sooner(p.actors[i].Wake())
	}
	for _, until := range p.orders.frozen {
		sooner(until)
	}
	sooner(p.Cloud.Next())
	if p.process.awaits() {
		sooner(now.Add(startPoll))
	}
	if len(p.choices) > 0 {
		sooner(now.Add(time.Duration(p.rand.Int64N(int64(2 * time.Second)))))
	}
	if p.vendor == nil {
		time.Sleep(next.Sub(now))
		return "time passes"
	}
	// What the provider does on its own, no one knows beforehand.
	for len(p.wake) > 0 {
		<-p.wake
	}
	select {
	case <-time.After(next.Sub(now)):
	case <-p.wake:
	}
	return "time passes"
}
