// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"bytes"
	"compress/gzip"
	"context"
	"io"
	"maps"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

const (
	metricsPath = "/metrics"
	// mostScrapes is how many requests for metrics can wait for an answer.
	mostScrapes = 10
	// leastFresh is the minimum time for which an answer is reused for all
	// clients.
	leastFresh = time.Second
	// freshness is how long an answer is kept, as a multiple of the time it took
	// to make: gathering takes at most a twentieth of a core for each variant.
	freshness = 20
)

// scrapes bounds the cost of requests for metrics. Gathering metrics visits
// every pod, and by default any client that reaches the port can ask. So one
// answer is made at a time, and it is reused for a while.
type scrapes struct {
	next  http.Handler // answers with the metrics of controller-runtime's registry
	turns *Turns       // the others; may be nil

	waiting atomic.Int64
	making  chan struct{} // full while an answer is made

	mu   sync.Mutex
	kept map[variant]*scraped
}

// variant is what an answer depends on. The number of variants is small for all
// possible requests.
type variant struct{ protobuf, gzip bool }

// scraped is an answer.
type scraped struct {
	header http.Header
	code   int
	body   []byte
}

// share returns a handler that bounds the cost of the metrics, those of next and
// of turns, and leaves other paths to next.
func share(next http.Handler, turns *Turns) http.Handler {
	s := &scrapes{next: next, turns: turns, making: make(chan struct{}, 1), kept: map[variant]*scraped{}}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != metricsPath {
			next.ServeHTTP(w, r)
			return
		}
		s.ServeHTTP(w, r)
	})
}

// ServeHTTP implements http.Handler.
func (s *scrapes) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		http.Error(w, "metrics can only be read", http.StatusMethodNotAllowed)
		return
	}
	a := s.answer(variant{
		protobuf: strings.Contains(r.Header.Get("Accept"), "application/vnd.google.protobuf"),
		gzip:     strings.Contains(r.Header.Get("Accept-Encoding"), "gzip"),
	})
	if a == nil {
		w.Header().Set("Retry-After", "1")
		http.Error(w, "too many scrapes at once", http.StatusServiceUnavailable)
		return
	}
	maps.Copy(w.Header(), a.header)
	w.WriteHeader(a.code)
	_, _ = w.Write(a.body) // the client may have disconnected
}

// answer returns the cached answer, or makes one. It returns nil if too many
// clients wait.
func (s *scrapes) answer(v variant) *scraped {
	if a := s.fresh(v); a != nil {
		return a
	}
	defer s.waiting.Add(-1)
	if s.waiting.Add(1) > mostScrapes {
		return nil
	}
	s.making <- struct{}{}
	defer func() { <-s.making }()
	if a := s.fresh(v); a != nil {
		return a
	}
	began := time.Now()
	a := s.scrape(v)
	keep := max(leastFresh, freshness*time.Since(began))
	s.mu.Lock()
	defer s.mu.Unlock()
	s.kept[v] = a
	time.AfterFunc(keep, func() { s.drop(v) })
	return a
}

func (s *scrapes) fresh(v variant) *scraped {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.kept[v]
}

func (s *scrapes) drop(v variant) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.kept, v)
}

// scrape gathers the metrics, one part after the other; the answer of a part that
// fails is all. It goes on when the client that asked is removed, since others may
// wait for the answer.
func (s *scrapes) scrape(v variant) *scraped {
	r := (&http.Request{Method: http.MethodGet, URL: &url.URL{Path: metricsPath}, Header: http.Header{}}).WithContext(context.Background())
	if v.protobuf {
		r.Header.Set("Accept", "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited")
	}
	var body bytes.Buffer
	var to io.Writer = &body
	end := func() error { return nil }
	header := http.Header{}
	if v.gzip {
		packed := gzip.NewWriter(&body)
		to, end = packed, packed.Close
	}
	for _, part := range append([]http.Handler{s.next}, s.turns.handlers()...) {
		out := &recorder{header: http.Header{}, code: http.StatusOK, to: to}
		part.ServeHTTP(out, r)
		if out.code != http.StatusOK {
			return &scraped{header: out.header, code: out.code, body: out.why.Bytes()}
		}
		header = out.header // the same of all parts
	}
	if err := end(); err != nil {
		return &scraped{code: http.StatusInternalServerError, body: []byte(err.Error())}
	}
	if v.gzip {
		header.Set("Content-Encoding", "gzip")
	}
	return &scraped{header: header, code: http.StatusOK, body: body.Bytes()}
}

// recorder takes the answer of a part.
type recorder struct {
	header http.Header
	code   int
	to     io.Writer    // receives successful output
	why    bytes.Buffer // the text of a failure
}

func (r *recorder) Header() http.Header  { return r.header }
func (r *recorder) WriteHeader(code int) { r.code = code }

func (r *recorder) Write(p []byte) (int, error) {
	if r.code != http.StatusOK {
		return r.why.Write(p)
	}
	return r.to.Write(p)
}
