// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"cmp"
	"context"
	"fmt"
	"hash"
	"hash/fnv"
	"io"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"karpenter/sim/simcloud"
	"karpenter/sim/store"
)

// farewell is how long a process that has ended may take to find out, where it
// waits for the clock.
const farewell = time.Minute

// startPoll is how often controllers look whether their caches are full.
const startPoll = 100 * time.Millisecond

// play is the state of a run.
type play struct {
	*Run
	setup    Setup
	rand     *rand.Rand
	process  *process   // the leader
	earlier  []*process // leaders that were frozen and do not know yet that another leads
	workers  []*process // what awake has returned
	takeover time.Time  // when another replica takes over from one that is frozen; zero = not
	wake     chan struct{}
	strays   []func() error // calls of ended processes that are still on their way
	actors   []actor
	laws     []Law
	faults   Faults // nil = none
	vendor   Vendor // nil = the cloud is simcloud's own
	seen     Seen
	hash     hash.Hash64
	result   Result

	version int64              // of API and cloud together when it was last looked at
	paces   map[string]float64 // how eagerly each source of steps is drawn from
	hurry   float64            // how often time passes although there is something to do
	choices []choice
	made    *waiting // the call that was released in this step
	late    bool     // made is by an earlier leader
}

// actor is an Actor with what the run knows of it.
type actor struct {
	Actor
	idle bool
}

// Play makes a run in a bubble of testing/synctest. The test fails only if the
// simulation cannot be set up; a broken law is in the Result.
func Play(t *testing.T, s Setup) Result {
	t.Helper()
	var out Result
	synctest.Test(t, func(t *testing.T) {
		p := &play{setup: s, hash: fnv.New64a(), paces: map[string]float64{}, wake: make(chan struct{}, 1)}
		if err := p.begin(); err != nil {
			t.Errorf("set up the simulation: %v", err)
			return
		}
		p.result.Err = p.run()
		for len(p.earlier) > 0 {
			p.part(0)
		}
		p.process.end(synctest.Wait)
		if p.vendor != nil {
			time.Sleep(farewell)
		}
		p.result.Hash, p.result.Steps = p.hash.Sum64(), p.seen.Step
		p.result.Lasted = time.Since(p.Started)
		out = p.result
	})
	return out
}

func (p *play) begin() error {
	p.Run = &Run{Cloud: simcloud.New(p.setup.types()), Started: time.Now(), seed: p.setup.Seed}
	p.Store = store.New(p.setup.Server, p.Rand("store"))
	p.orders = orders{gaps: map[string]bool{}, frozen: map[string]time.Time{}}
	p.rand = p.Rand("order")
	if hurry := []float64{0, 0.005, 0.03}[p.rand.IntN(3)]; !p.setup.Steady {
		p.hurry = hurry
	}
	api := p.API("setup")
	for _, o := range p.setup.Objects {
		if err := api.Create(context.Background(), o.DeepCopyObject().(client.Object)); err != nil {
			return err
		}
	}
	if p.setup.Vendor != nil {
		var err error
		if p.vendor, err = p.setup.Vendor(p.Run); err != nil {
			return err
		}
	}
	if p.setup.Actors != nil {
		list, err := p.setup.Actors(p.Run)
		if err != nil {
			return err
		}
		for _, a := range list {
			p.actors = append(p.actors, actor{Actor: a})
		}
	}
	if p.setup.Laws != nil {
		p.laws = p.setup.Laws(p.Run)
	}
	if p.setup.Faults != nil {
		p.faults = p.setup.Faults(p.Run)
	}
	p.seen = Seen{Started: p.Started, API: p.Store, Cloud: p.Cloud, Quiet: p.Started}
	return p.startProcess()
}

func (p *play) startProcess() error {
	var err error
	p.process, err = newProcess(habitat{
		store: p.Store, cloud: p.Cloud, settings: p.setup.Config, rand: p.rand, slow: p.slow(), logs: p.setup.Transcript,
		vendor: p.vendor, publishIn: p.setup.PublishIn, planner: p.setup.Planner, workers: cmp.Or(p.setup.Workers, workers), wake: p.wake,
	})
	if err != nil {
		return err
	}
	p.process.start(context.Background(), synctest.Wait)
	return nil
}

// slow returns which controllers' reads wait for their turn in this life of the
// process: one of eight.
func (p *play) slow() func(controller string) bool {
	life, known := fmt.Sprint("slow reads ", p.result.Restarts, " "), map[string]bool{}
	var mu sync.Mutex
	return func(controller string) bool {
		mu.Lock()
		defer mu.Unlock()
		slow, drawn := known[controller]
		if !drawn {
			slow = p.Rand(life+controller).IntN(8) == 0 && !p.setup.Steady
			known[controller] = slow
		}
		return slow
	}
}

// run makes steps until the run has lasted long enough.
func (p *play) run() error {
	end := p.Started.Add(p.setup.Lasts)
	for time.Now().Before(end) {
		if p.seen.Step >= p.setup.MostSteps {
			return fmt.Errorf("%d steps in %s are too many", p.seen.Step, time.Since(p.Started))
		}
		p.seen.Step++
		what, err := p.step(end)
		if err != nil {
			return fmt.Errorf("step %d, %s: %w", p.seen.Step, what, err)
		}
		synctest.Wait()
		if err := p.look(what); err != nil {
			return err
		}
	}
	p.seen.Now = time.Now()
	for _, law := range p.laws {
		if err := law.End(&p.seen); err != nil {
			return fmt.Errorf("in the end, after %d steps: %s: %w", p.seen.Step, law.Name(), err)
		}
	}
	return nil
}

// look writes down what the step did, and holds it against the laws.
func (p *play) look(what string) error {
	if p.vendor != nil {
		if err := p.vendor.Look(); err != nil {
			return fmt.Errorf("step %d, %s: look at the cloud: %w", p.seen.Step, what, err)
		}
	}
	told, failure := p.process.news()
	for _, r := range p.earlier {
		more, err := r.news()
		told, failure = append(told, more...), cmp.Or(failure, err)
	}
	p.seen.Now, p.seen.What, p.seen.Changes, p.seen.Told = time.Now(), what, p.Store.Changes(), told
	p.seen.Calls = p.seen.Calls[:0]
	if w := p.made; w != nil && w.Target != fromCache {
		p.seen.Calls = append(p.seen.Calls, Made{Call: w.Call, Writes: w.writes, Late: p.late, Effect: w.effect, Err: w.err})
		p.result.Calls++
	}
	p.made = nil
	p.write()
	if failure != nil {
		return fmt.Errorf("step %d, %s: %w", p.seen.Step, what, failure)
	}
	version := p.Store.Version() + p.Cloud.Version()
	if version == p.version && len(told) == 0 && len(p.seen.Calls) == 0 {
		return nil
	}
	if version != p.version {
		for i := range p.actors {
			p.actors[i].idle = false
		}
	}
	p.version = version
	for _, law := range p.laws {
		if err := law.Check(&p.seen); err != nil {
			return fmt.Errorf("step %d at %s, %s: %s: %w", p.seen.Step, p.seen.Now.Sub(p.Started), what, law.Name(), err)
		}
	}
	return nil
}

// write adds the step to the transcript.
func (p *play) write() {
	at := p.seen.Now.Sub(p.Started)
	out := io.Writer(p.hash)
	if p.setup.Transcript != nil {
		out = io.MultiWriter(p.hash, p.setup.Transcript)
	}
	fmt.Fprintf(out, "%5d %s %s\n", p.seen.Step, at, p.seen.What)
	for _, c := range p.seen.Calls {
		if c.Err != nil {
			fmt.Fprintf(out, "      answer: %v\n", c.Err)
		}
		if c.Effect && (c.Target == Cloud && (c.Verb == "Create" || c.Verb == "Delete")) {
			p.seen.Quiet = p.seen.Now
		}
	}
	for _, c := range p.seen.Changes {
		fmt.Fprintf(out, "      %s: %s %s %s v%s\n", c.By, c.Verb, c.Kind, named(c.Object()), c.Object().GetResourceVersion())
		if c.By == processName {
			p.seen.Quiet = p.seen.Now
		}
	}
	for _, e := range p.seen.Told {
		fmt.Fprintf(out, "      event %s %s %s %s: %s\n", e.Type, e.Reason, e.Kind, e.Name, e.Message)
	}
}
