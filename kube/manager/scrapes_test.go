// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
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
		h := share(s)
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
		if n, most := s.gathered.Load(), s.most.Load(); most != 1 || n > 4*12+1 {
			t.Errorf("gathered %d times in a minute, %d at once", n, most)
		}
		<-time.After(10 * time.Second) // the answers that are kept are dropped
		synctest.Wait()
	})
}

// TestScrapesByForm covers what an answer depends on, and what is not shared.
func TestScrapesByForm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := share(&slow{})
		for _, tc := range []struct{ accept, encoding, want string }{
			{"", "", `1 as "" in ""`},
			{"text/plain", "identity", `1 as "" in ""`},
			{"application/openmetrics-text", "gzip;q=1", `2 as "" in "gzip"`},
			{"application/vnd.google.protobuf;proto=x", "", `3 as "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited" in ""`},
		} {
			w := ask(h, "GET", "/metrics", "Accept", tc.accept, "Accept-Encoding", tc.encoding)
			if got := w.Body.String(); got != tc.want || w.Header().Get("Content-Type") != "text/plain" {
				t.Errorf("%q in %q: %q, want %q", tc.accept, tc.encoding, got, tc.want)
			}
		}
		if w := ask(h, "POST", "/metrics"); w.Code != http.StatusMethodNotAllowed {
			t.Errorf("POST: %d", w.Code)
		}
		<-time.After(6 * time.Second)
		if got := ask(h, "GET", "/metrics").Body.String(); got != `4 as "" in ""` {
			t.Errorf("after 6 seconds: %q", got)
		}
		if got := ask(h, "GET", "/debug/pprof/").Body.String(); got != `5 as "" in ""` {
			t.Errorf("a profile: %q", got)
		}
		<-time.After(10 * time.Second)
	})
}
