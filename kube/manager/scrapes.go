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
	// to make: gathering takes at most a twentieth of a core for each format,
	// up to mostFresh.
	freshness = 20
	// mostFresh is the maximum time: on a busy machine, answers take long to make.
	mostFresh = 30 * time.Second
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
	kept map[bool]*scraped // by whether they are in protobuf; an answer depends on nothing else
}

// scraped is an answer. The metrics of a large cluster are 100 MB of text, so an
// answer is kept compressed, also for clients that want it plain.
type scraped struct {
	header http.Header
	code   int
	packed []byte // of a gathering that succeeded
	why    []byte // of one that failed
}

// share returns a handler that bounds the cost of the metrics, those of next and
// of turns, and leaves other paths to next.
func share(next http.Handler, turns *Turns) http.Handler {
	s := &scrapes{next: next, turns: turns, making: make(chan struct{}, 1), kept: map[bool]*scraped{}}
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
	a := s.answer(strings.Contains(r.Header.Get("Accept"), "application/vnd.google.protobuf"))
	if a == nil {
		w.Header().Set("Retry-After", "1")
		http.Error(w, "too many scrapes at once", http.StatusServiceUnavailable)
		return
	}
	a.write(w, strings.Contains(r.Header.Get("Accept-Encoding"), "gzip"))
}

// write answers a client. It does not report errors, since the client may have
// disconnected.
func (a *scraped) write(w http.ResponseWriter, packed bool) {
	maps.Copy(w.Header(), a.header)
	if a.code == http.StatusOK && packed {
		w.Header().Set("Content-Encoding", "gzip")
	}
	w.WriteHeader(a.code)
	switch {
	case a.code != http.StatusOK:
		_, _ = w.Write(a.why)
	case packed:
		_, _ = w.Write(a.packed)
	default:
		if plain, err := gzip.NewReader(bytes.NewReader(a.packed)); err == nil {
			_, _ = io.Copy(w, plain)
		}
	}
}

// answer returns the cached answer, or makes one. It returns nil if too many
// clients wait.
func (s *scrapes) answer(protobuf bool) *scraped {
	if a := s.fresh(protobuf); a != nil {
		return a
	}
	defer s.waiting.Add(-1)
	if s.waiting.Add(1) > mostScrapes {
		return nil
	}
	s.making <- struct{}{}
	defer func() { <-s.making }()
	if a := s.fresh(protobuf); a != nil {
		return a
	}
	began := time.Now()
	a := s.scrape(protobuf)
	keep := min(max(leastFresh, freshness*time.Since(began)), mostFresh)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.kept[protobuf] = a
	time.AfterFunc(keep, func() { s.drop(protobuf) })
	return a
}

func (s *scrapes) fresh(protobuf bool) *scraped {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.kept[protobuf]
}

func (s *scrapes) drop(protobuf bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.kept, protobuf)
}

// scrape gathers the metrics, one part after the other; the answer of a part that
// fails is all. It goes on when the client that asked is removed, since others may
// wait for the answer.
func (s *scrapes) scrape(protobuf bool) *scraped {
	r := (&http.Request{Method: http.MethodGet, URL: &url.URL{Path: metricsPath}, Header: http.Header{}}).WithContext(context.Background())
	if protobuf {
		r.Header.Set("Accept", "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited")
	}
	var body bytes.Buffer
	packed, err := gzip.NewWriterLevel(&body, gzip.BestSpeed)
	if err != nil {
		return failed(err)
	}
	header := http.Header{}
	for _, part := range append([]http.Handler{s.next}, s.turns.handlers()...) {
		out := &recorder{header: http.Header{}, code: http.StatusOK, to: packed}
		part.ServeHTTP(out, r)
		if out.code != http.StatusOK {
			return &scraped{header: out.header, code: out.code, why: out.why.Bytes()}
		}
		header = out.header // the same of all parts
	}
	if err := packed.Close(); err != nil {
		return failed(err)
	}
	return &scraped{header: header, code: http.StatusOK, packed: body.Bytes()}
}

func failed(err error) *scraped {
	return &scraped{code: http.StatusInternalServerError, why: []byte(err.Error())}
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
