// SPDX-License-Identifier: Apache-2.0

package client

import (
	"net/http"
	"strconv"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/arm"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/utils/clock"
)

// Metrics counts and times the calls to Azure: requests, each of which is one or
// more attempts. Their label code is the HTTP status of the (last) answer, 0 when
// there was none; service is the resource provider, action the method and the type
// of the resource.
type Metrics struct {
	clock          clock.PassiveClock
	requests       *prometheus.CounterVec
	attempts       *prometheus.CounterVec
	requestSeconds *prometheus.HistogramVec
}

// NewMetrics registers the metrics azure_sdk_go_request_*.
func NewMetrics(reg prometheus.Registerer, clock clock.PassiveClock) *Metrics {
	const prefix = "azure_sdk_go_request_"
	labels := []string{"service", "action", "code"}
	m := &Metrics{
		clock:    clock,
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{Name: prefix + "total", Help: "Number of requests to Azure."}, labels),
		attempts: prometheus.NewCounterVec(prometheus.CounterOpts{Name: prefix + "attempt_total", Help: "Number of attempts to get requests to Azure answered."}, labels),
		requestSeconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: prefix + "duration_seconds", Help: "Time that requests to Azure take, with all attempts.", Buckets: prometheus.ExponentialBuckets(0.001, 2, 16),
		}, labels),
	}
	reg.MustRegister(m.requests, m.attempts, m.requestSeconds)
	return m
}

// Extend has clients with the options count their calls.
func (m *Metrics) Extend(options *arm.ClientOptions) {
	options.PerCallPolicies = append(options.PerCallPolicies, measured(func(r *policy.Request) (*http.Response, error) {
		began := m.clock.Now()
		answer, err := r.Next()
		labels := described(r.Raw(), answer)
		m.requests.WithLabelValues(labels...).Inc()
		m.requestSeconds.WithLabelValues(labels...).Observe(m.clock.Since(began).Seconds())
		return answer, err
	}))
	options.PerRetryPolicies = append(options.PerRetryPolicies, measured(func(r *policy.Request) (*http.Response, error) {
		answer, err := r.Next()
		m.attempts.WithLabelValues(described(r.Raw(), answer)...).Inc()
		return answer, err
	}))
}

// measured is a policy of clients.
type measured func(*policy.Request) (*http.Response, error)

// Do implements policy.Policy.
func (f measured) Do(r *policy.Request) (*http.Response, error) { return f(r) }

// described returns the values of the labels. Names of resources are left out, so
// that there are few values.
func described(r *http.Request, answer *http.Response) []string {
	service, path := "", strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	var types []string
	for i, part := range path {
		if strings.EqualFold(part, "providers") && i+1 < len(path) {
			service, path = path[i+1], path[i+2:]
			for j := 0; j < len(path); j += 2 { // each type is followed by a name
				types = append(types, path[j])
			}
			break
		}
	}
	code := 0
	if answer != nil {
		code = answer.StatusCode
	}
	return []string{service, r.Method + " " + strings.Join(types, "/"), strconv.Itoa(code)}
}
