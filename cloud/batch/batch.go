// SPDX-License-Identifier: Apache-2.0

// Package batch makes one call of many that are made at about the same time.
//
// A Batcher collects what its callers hand in, by key, until nothing more has
// come for a moment, or the oldest has waited long enough, or there is enough.
// Then it makes one call for all and gives each caller its own answer.
package batch

import (
	"context"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// inFlight is how many calls one Batcher has under way at most.
const inFlight = 100

// Config says what a Batcher does, and when.
type Config[In, Out any] struct {
	Name  string        // in metrics
	Idle  time.Duration // a batch is closed when nothing has come for so long,
	Most  time.Duration // when its first item has waited so long,
	Items int           // or when it has so many
	// Key returns which items may share a call: those with equal keys. Nil
	// means all.
	Key func(In) string
	// Call answers each item at its place. Its context is not cancelled when
	// callers go away; a call under way is for others too.
	Call    func(ctx context.Context, items []In) []Answer[Out]
	Metrics *Metrics
}

// Answer is what came of one item.
type Answer[Out any] struct {
	Value Out
	Err   error
}

// Batcher joins calls. Safe for concurrent use.
type Batcher[In, Out any] struct {
	config Config[In, Out]
	slots  chan struct{}

	mu   sync.Mutex
	open map[string]*batch[In, Out] // by key
}

// New returns a Batcher. Everything in the Config but Key is required.
func New[In, Out any](c Config[In, Out]) *Batcher[In, Out] {
	return &Batcher[In, Out]{config: c, slots: make(chan struct{}, inFlight), open: map[string]*batch[In, Out]{}}
}

// batch is items that will share a call.
type batch[In, Out any] struct {
	context context.Context // of the first caller, without its end
	began   time.Time
	items   []In
	answers []chan Answer[Out]
	timers  [2]*time.Timer // idle, most
}

// Do hands in an item and waits for its answer. When the caller's context ends
// before that, so does the waiting, but not the call.
func (b *Batcher[In, Out]) Do(ctx context.Context, item In) (Out, error) {
	select {
	case answer := <-b.add(ctx, item):
		return answer.Value, answer.Err
	case <-ctx.Done():
		var none Out
		return none, ctx.Err()
	}
}

func (b *Batcher[In, Out]) add(ctx context.Context, item In) <-chan Answer[Out] {
	key := ""
	if b.config.Key != nil {
		key = b.config.Key(item)
	}
	answer := make(chan Answer[Out], 1) // no one may be waiting any more
	b.mu.Lock()
	defer b.mu.Unlock()
	g, ok := b.open[key]
	if !ok {
		g = &batch[In, Out]{context: context.WithoutCancel(ctx), began: time.Now()}
		b.open[key] = g
		run := func() { b.close(key, g) }
		g.timers = [2]*time.Timer{time.AfterFunc(b.config.Idle, run), time.AfterFunc(b.config.Most, run)}
	}
	g.items, g.answers = append(g.items, item), append(g.answers, answer)
	g.timers[0].Reset(b.config.Idle)
	if len(g.items) >= b.config.Items {
		b.closeLocked(key, g)
	}
	return answer
}

func (b *Batcher[In, Out]) close(key string, g *batch[In, Out]) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closeLocked(key, g)
}

// closeLocked makes the batch's call, unless that is done already.
func (b *Batcher[In, Out]) closeLocked(key string, g *batch[In, Out]) {
	if b.open[key] != g {
		return
	}
	delete(b.open, key)
	for _, timer := range g.timers {
		timer.Stop()
	}
	go b.call(g)
}

func (b *Batcher[In, Out]) call(g *batch[In, Out]) {
	b.slots <- struct{}{}
	defer func() { <-b.slots }()
	b.config.Metrics.observe(b.config.Name, time.Since(g.began), len(g.items))
	for i, answer := range b.config.Call(g.context, g.items) {
		g.answers[i] <- answer
	}
}

// Metrics tells how batches turned out, of several Batchers.
type Metrics struct {
	time *prometheus.HistogramVec
	size *prometheus.HistogramVec
}

// NewMetrics registers karpenter_cloudprovider_batcher_batch_time_seconds, with
// the bounds given, and karpenter_cloudprovider_batcher_batch_size.
func NewMetrics(reg prometheus.Registerer, seconds []float64) *Metrics {
	m := &Metrics{
		time: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Namespace: "karpenter", Subsystem: "cloudprovider", Name: "batcher_batch_time_seconds",
			Help: "Duration of the batching window per batcher", Buckets: seconds,
		}, []string{"batcher"}),
		size: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Namespace: "karpenter", Subsystem: "cloudprovider", Name: "batcher_batch_size",
			Help: "Size of the request batch per batcher", Buckets: sizes(),
		}, []string{"batcher"}),
	}
	reg.MustRegister(m.time, m.size)
	return m
}

// sizes are 1, 2, 4, and then multiples of 5: more closely where most are.
func sizes() []float64 {
	return []float64{1, 2, 4, 5, 10, 15, 20, 25, 30, 40, 50, 60, 70, 80, 90, 100,
		125, 150, 175, 200, 225, 250, 275, 300, 350, 400, 450, 500, 550, 600, 700, 800, 900, 1000}
}

func (m *Metrics) observe(name string, window time.Duration, size int) {
	m.time.WithLabelValues(name).Observe(window.Seconds())
	m.size.WithLabelValues(name).Observe(float64(size))
}
