// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"net/http"
	"slices"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// Turns registers collectors as a registry does, but gathers them one after the
// other. A registry gathers all series before it writes the first one: 60,000
// with a thousand nodes. Safe for concurrent use. Make one with NewTurns.
type Turns struct {
	known *prometheus.Registry // all collectors, so that no two publish the same; never gathered

	mu    sync.Mutex
	turns []turn
}

// turn is one collector and the handler for its metrics.
type turn struct {
	collector prometheus.Collector
	handler   http.Handler
}

// NewTurns returns one without collectors.
func NewTurns() *Turns { return &Turns{known: prometheus.NewRegistry()} }

// Register implements prometheus.Registerer.
func (t *Turns) Register(c prometheus.Collector) error {
	if err := t.known.Register(c); err != nil {
		return err
	}
	alone := prometheus.NewRegistry()
	if err := alone.Register(c); err != nil {
		return err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.turns = append(t.turns, turn{c, promhttp.HandlerFor(alone, promhttp.HandlerOpts{ErrorHandling: promhttp.HTTPErrorOnError})})
	return nil
}

// MustRegister implements prometheus.Registerer.
func (t *Turns) MustRegister(all ...prometheus.Collector) {
	for _, c := range all {
		if err := t.Register(c); err != nil {
			panic(err)
		}
	}
}

// Unregister implements prometheus.Registerer.
func (t *Turns) Unregister(c prometheus.Collector) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.turns = slices.DeleteFunc(t.turns, func(x turn) bool { return x.collector == c })
	return t.known.Unregister(c)
}

// handlers returns what answers with the metrics of each collector.
func (t *Turns) handlers() []http.Handler {
	if t == nil {
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	out := make([]http.Handler, len(t.turns))
	for i, x := range t.turns {
		out[i] = x.handler
	}
	return out
}
