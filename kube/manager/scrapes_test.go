// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"compress/gzip"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// slow gathers metrics for a quarter of a second.
type slow struct{ gathered, atOnce, most atomic.Int64 }

func (s *slow) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.most.Store(max(s.most.Load(), s.atOnce.Add(1)))
	defer s.atOnce.Add(-1)
	<-time.After(250 * time.Millisecond)
	w.Header().Set("Content-Type", "text/plain")
	fmt.Fprintf(w, "%d as %q in %q", s.gathered.Add(1), r.Header.Get("Accept"), r.Header.Get("Accept-Encoding"))
}

func ask(h http.Handler, method, path string, header ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, path, nil)
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

// TestScrapesAreShared covers many who scrape at once, and one who does not stop.
func TestScrapesAreShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &slow{}
		h := share(s, nil)
		var all sync.WaitGroup
		var ok, refused atomic.Int64
		for i := range 100 {
			all.Go(func() {
				switch w := ask(h, "GET", "/metrics", "Accept", fmt.Sprintf("text/plain;q=0.%d", i), "X-Own", fmt.Sprint(i)); w.Code {
				case http.StatusOK:
					ok.Add(1)
				case http.StatusServiceUnavailable:
					refused.Add(1)
				default:
					t.Errorf("answered %d", w.Code)
				}
			})
		}
		all.Wait()
		if ok.Load() != mostScrapes || refused.Load() != 100-mostScrapes || s.gathered.Load() != 1 {
			t.Errorf("%d answered, %d refused, gathered %d times", ok.Load(), refused.Load(), s.gathered.Load())
		}

		began := time.Now()
		for i := 0; time.Since(began) < time.Minute; i++ {
			encodings := []string{"", "gzip", "gzip, br", "identity"}
			accepts := []string{"", "text/plain", "application/vnd.google.protobuf;x=" + fmt.Sprint(i)}
			if w := ask(h, "GET", fmt.Sprintf("/metrics?a=%d", i), "Accept", accepts[i%3], "Accept-Encoding", encodings[i%4]); w.Code != 200 {
				t.Fatal(w.Code)
			}
			<-time.After(10 * time.Millisecond)
		}
		if n, most := s.gathered.Load(), s.most.Load(); most != 1 || n > 2*12+1 {
			t.Errorf("gathered %d times in a minute, %d at once", n, most)
		}
		<-time.After(10 * time.Second) // the answers that are kept are dropped
		synctest.Wait()
	})
}

// TestScrapesByForm covers what an answer depends on, and what is not shared.
func TestScrapesByForm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := share(&slow{}, nil)
		for _, tc := range []struct{ accept, encoding, want string }{
			{"", "", `1 as "" in ""`},
			{"text/plain", "identity", `1 as "" in ""`},
			{"application/openmetrics-text", "gzip;q=1", `1 as "" in ""`},
			{"application/vnd.google.protobuf;proto=x", "", `2 as "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited" in ""`},
		} {
			w := ask(h, "GET", "/metrics", "Accept", tc.accept, "Accept-Encoding", tc.encoding)
			if packed := w.Header().Get("Content-Encoding") == "gzip"; packed != strings.HasPrefix(tc.encoding, "gzip") {
				t.Errorf("%q in %q: compressed is %v", tc.accept, tc.encoding, packed)
			}
			if got := unpacked(t, w); got != tc.want || w.Header().Get("Content-Type") != "text/plain" {
				t.Errorf("%q in %q: %q, want %q", tc.accept, tc.encoding, got, tc.want)
			}
		}
		if w := ask(h, "POST", "/metrics"); w.Code != http.StatusMethodNotAllowed {
			t.Errorf("POST: %d", w.Code)
		}
		<-time.After(6 * time.Second)
		if got := ask(h, "GET", "/metrics").Body.String(); got != `3 as "" in ""` {
			t.Errorf("after 6 seconds: %q", got)
		}
		if got := ask(h, "GET", "/debug/pprof/").Body.String(); got != `4 as "" in ""` {
			t.Errorf("a profile: %q", got)
		}
		<-time.After(10 * time.Second)
	})
}

// unpacked returns the body, decompressed if the header names gzip.
func unpacked(t *testing.T, w *httptest.ResponseRecorder) string {
	t.Helper()
	if w.Header().Get("Content-Encoding") != "gzip" {
		return w.Body.String()
	}
	r, err := gzip.NewReader(w.Body)
	if err != nil {
		t.Fatal(err)
	}
	r.Multistream(false) // not everyone reads several
	text, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestSlowScrapes has a gathering that takes minutes: its answer is not kept for an hour.
func TestSlowScrapes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := 0
		h := share(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			<-time.After(3 * time.Minute)
			n++
			fmt.Fprint(w, n)
		}), nil)
		for i, pause := range []time.Duration{mostFresh - time.Second, 2 * time.Second, 0} {
			if got, want := ask(h, "GET", "/metrics").Body.String(), []string{"1", "1", "2"}[i]; got != want {
				t.Errorf("request %d: got %s, want %s", i, got, want)
			}
			<-time.After(pause)
		}
		<-time.After(time.Minute)
	})
}

// broken is a collector that cannot be gathered.
type broken struct{ prometheus.Gauge }

func (b broken) Collect(out chan<- prometheus.Metric) {
	b.Gauge.Collect(out)
	b.Gauge.Collect(out)
}

// TestMetricsAreGatheredInTurns covers metrics of several registries in one answer, in every form.
func TestMetricsAreGatheredInTurns(t *testing.T) {
	gauge := func(name string) prometheus.Gauge {
		return prometheus.NewGauge(prometheus.GaugeOpts{Name: name, Help: "Help."})
	}
	others := prometheus.NewRegistry()
	others.MustRegister(gauge("other"))
	turns := NewTurns()
	h := share(promhttp.HandlerFor(others, promhttp.HandlerOpts{}), turns)
	ask := func(header ...string) *httptest.ResponseRecorder {
		t.Helper()
		<-time.After(2 * leastFresh) // longer than answers are kept
		return ask(h, "GET", "/metrics", header...)
	}
	synctest.Test(t, func(t *testing.T) {
		one, two := gauge("one"), gauge("two")
		turns.MustRegister(one, two)
		if turns.Register(gauge("one")) == nil {
			t.Error("the same metric was registered twice")
		}
		for _, encoding := range []string{"", "gzip"} {
			w := ask("Accept-Encoding", encoding)
			parser := expfmt.NewTextParser(model.LegacyValidation)
			families, err := parser.TextToMetricFamilies(strings.NewReader(unpacked(t, w)))
			if names := slices.Sorted(maps.Keys(families)); err != nil || !slices.Equal(names, []string{"one", "other", "two"}) {
				t.Errorf("in %q: %v, %v", encoding, names, err)
			}
			if got := w.Header().Get("Content-Type"); !strings.HasPrefix(got, "text/plain; version=0.0.4") {
				t.Errorf("in %q: %s", encoding, got)
			}
		}
		w := ask("Accept", "application/vnd.google.protobuf")
		decoder, names := expfmt.NewDecoder(w.Body, expfmt.ResponseFormat(w.Header())), []string{}
		for {
			family := dto.MetricFamily{}
			if err := decoder.Decode(&family); err != nil {
				if err != io.EOF {
					t.Error(err)
				}
				break
			}
			names = append(names, family.GetName())
		}
		if !slices.Equal(names, []string{"other", "one", "two"}) {
			t.Errorf("in protobuf: %v", names)
		}
		if !turns.Unregister(two) || strings.Contains(ask().Body.String(), "two") {
			t.Error("a collector that was taken out is still gathered")
		}
		turns.MustRegister(broken{two})
		if w := ask(); w.Code != http.StatusInternalServerError || !strings.Contains(w.Body.String(), "two") || strings.Contains(w.Body.String(), "HELP") {
			t.Errorf("a collector that fails: %d %s", w.Code, w.Body)
		}
		<-time.After(10 * time.Second)
		synctest.Wait()
	})
}
