// SPDX-License-Identifier: Apache-2.0

package meter

import (
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/utils/clock"
)

// Requests measures the requests to the API server.
type Requests struct {
	clock    clock.PassiveClock
	total    *prometheus.CounterVec
	duration *prometheus.HistogramVec
}

// NewRequests registers the metrics.
func NewRequests(reg prometheus.Registerer, clk clock.PassiveClock) *Requests {
	r := &Requests{
		clock: clk,
		total: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "client_go_request_total", Help: "Number of requests to the API server, by HTTP status, <error> where there was no answer.",
		}, []string{"code", "method"}),
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "client_go_request_duration_seconds", Buckets: prometheus.DefBuckets,
			Help: "Time until the API server begins to answer, watches not counted. The kind is what the path calls it, such as nodes; " +
				"requests that are about no object have none.",
		}, []string{"verb", "group", "version", "kind", "subresource"}),
	}
	reg.MustRegister(r.total, r.duration)
	return r
}

// Wrap returns a transport whose requests are measured; rest.Config.Wrap takes it.
func (r *Requests) Wrap(next http.RoundTripper) http.RoundTripper { return measured{r, next} }

type measured struct {
	*Requests
	next http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (m measured) RoundTrip(q *http.Request) (*http.Response, error) {
	began := m.clock.Now()
	answer, err := m.next.RoundTrip(q)
	code := "<error>"
	if err == nil {
		code = strconv.Itoa(answer.StatusCode)
	}
	m.total.WithLabelValues(code, q.Method).Inc()
	if q.URL.Query().Get("watch") == "" {
		group, version, kind, subresource := about(q.URL.Path)
		m.duration.WithLabelValues(q.Method, group, version, kind, subresource).Observe(m.clock.Since(began).Seconds())
	}
	return answer, err
}

// WrappedRoundTripper lets client-go find the transport below.
func (m measured) WrappedRoundTripper() http.RoundTripper { return m.next }

// about returns the kind and the subresource in a path of the API server, or
// nothing if the path is not about objects. Names of objects and namespaces are
// left out, to limit the number of series.
func about(path string) (group, version, kind, subresource string) {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	root := slices.IndexFunc(parts, func(p string) bool { return p == "api" || p == "apis" }) // a proxy may stand before it
	if root < 0 {
		return "", "", "", ""
	}
	grouped := parts[root] == "apis"
	parts = parts[root+1:]
	if grouped && len(parts) > 0 {
		group, parts = parts[0], parts[1:]
	}
	if len(parts) < 2 {
		return "", "", "", "" // discovery
	}
	version, parts = parts[0], parts[1:]
	if parts[0] == "namespaces" && len(parts) > 2 && !ofNamespaces(parts[2]) {
		parts = parts[2:]
	}
	if len(parts) > 2 {
		subresource = strings.Join(parts[2:], "/")
	}
	return group, version, parts[0], subresource
}

// ofNamespaces reports whether it is a subresource of a namespace, and no kind of
// object in one.
func ofNamespaces(name string) bool { return name == "status" || name == "finalize" }
