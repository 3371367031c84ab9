// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"sync"
	"time"

	kube "karpenter/kube/manager"
)

// errEnded is what calls of a process are answered that is being ended.
var errEnded = errors.New("the process has ended")

// gate holds each call of a process until the run carries it out.
type gate struct {
	fence *kube.Fence   // nil = nothing keeps the process from changes
	wake  chan struct{} // has something in it after a call has arrived

	mu      sync.Mutex
	waiting []*waiting
	arrived int
	open    bool // while the process is wired: no one would let its calls through
	ended   bool
}

func newGate(fence *kube.Fence, wake chan struct{}) *gate {
	return &gate{fence: fence, wake: wake, open: true}
}

// shut has calls wait from now on.
func (g *gate) shut() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.open = false
}

// door is the gate as a Vendor knows it.
func (g *gate) door(ctx context.Context, verb, name string, input any, writes bool, do func() error) error {
	return g.pass(ctx, request{
		writes: writes,
		Call:   Call{Target: Cloud, By: controllerOf(ctx), Verb: verb, Name: name},
		detail: func() string {
			text, err := json.Marshal(input)
			if err != nil {
				return err.Error()
			}
			return string(text)
		},
		carry: func(float64) error { return do() },
	})
}

// request is a call, and how it is carried out.
type request struct {
	Call
	writes bool                      // it changes something
	detail func() string             // tells calls apart that are otherwise equal
	carry  func(leave float64) error // out
	stray  func() func() error       // returns how to carry it out when the caller has gone on
}

// waiting is a call that has arrived at the gate.
type waiting struct {
	request
	order  int
	answer chan Fault

	// Once the run has looked at it:
	decided bool
	fault   Fault
	due     time.Time

	// Once it is answered:
	effect bool
	err    error
}

// pass makes the call when its turn has come.
func (g *gate) pass(ctx context.Context, r request) error {
	g.mu.Lock()
	if g.ended {
		g.mu.Unlock()
		return errEnded
	}
	if g.open {
		g.mu.Unlock()
		return r.carry(0)
	}
	g.arrived++
	w := &waiting{request: r, order: g.arrived, answer: make(chan Fault, 1)}
	g.waiting = append(g.waiting, w)
	g.mu.Unlock()
	select {
	case g.wake <- struct{}{}:
	default:
	}
	select {
	case f := <-w.answer:
		w.err = f.Refuse
		if w.err == nil && w.writes {
			w.err = g.fence.Check()
		}
		if w.err == nil {
			w.effect = true
			w.err = cmp.Or(w.carry(f.Leave), f.Lose)
		}
		return w.err
	case <-ctx.Done():
		g.drop(w)
		return ctx.Err()
	}
}

func (g *gate) drop(w *waiting) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.waiting = slices.DeleteFunc(g.waiting, func(x *waiting) bool { return x == w })
}

// list returns the calls at the gate in an order that does not depend on which
// of several goroutines was faster.
func (g *gate) list() []*waiting {
	g.mu.Lock()
	defer g.mu.Unlock()
	slices.SortFunc(g.waiting, func(a, b *waiting) int {
		c := cmp.Or(cmp.Compare(a.Target, b.Target), cmp.Compare(a.By, b.By), cmp.Compare(a.Verb, b.Verb), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name))
		if c == 0 {
			c = cmp.Or(cmp.Compare(a.detail(), b.detail()), cmp.Compare(a.order, b.order))
		}
		return c
	})
	return slices.Clone(g.waiting)
}

// release answers a call with what is wrong with it.
func (g *gate) release(w *waiting, f Fault) {
	g.drop(w)
	w.answer <- f
}

// end answers all calls, and those to come, with errEnded.
func (g *gate) end() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.ended = true
	for _, w := range g.waiting {
		w.answer <- Fault{Refuse: errEnded}
	}
	g.waiting = nil
}
