// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/smithy-go/middleware"
	smithyhttp "github.com/aws/smithy-go/transport/http"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/utils/clock"
)

// Metrics counts and times the calls to AWS: requests, each of which is one or
// more attempts. Their label code is the HTTP status of the (last) answer, 0 when
// there was none.
type Metrics struct {
	clock                          clock.PassiveClock
	requests, attempts             *prometheus.CounterVec
	requestSeconds, attemptSeconds *prometheus.HistogramVec
	retries                        *prometheus.HistogramVec
}

// NewMetrics registers the metrics aws_sdk_go_request_*.
func NewMetrics(reg prometheus.Registerer, clock clock.PassiveClock) *Metrics {
	labels := []string{"service", "action", "code"}
	counter := func(name, help string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: "aws_sdk_go_request_" + name, Help: help}, labels)
	}
	histogram := func(name, help string, buckets []float64) *prometheus.HistogramVec {
		return prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "aws_sdk_go_request_" + name, Help: help, Buckets: buckets}, labels)
	}
	// 1 ms to 33 s: a long poll takes 20.
	seconds := prometheus.ExponentialBuckets(0.001, 2, 16)
	m := &Metrics{
		clock:          clock,
		requests:       counter("total", "Number of requests to AWS."),
		attempts:       counter("attempt_total", "Number of attempts to get requests to AWS answered."),
		requestSeconds: histogram("duration_seconds", "Time that requests to AWS take, with all attempts.", seconds),
		attemptSeconds: histogram("attempt_duration_seconds", "Time that attempts take.", seconds),
		retries:        histogram("retry_count", "Number of attempts after the first one, by request.", prometheus.LinearBuckets(0, 1, 11)),
	}
	reg.MustRegister(m.requests, m.attempts, m.requestSeconds, m.attemptSeconds, m.retries)
	return m
}

// Extend is an extension for Connect.
func (m *Metrics) Extend(stack *middleware.Stack) error {
	return errors.Join(
		stack.Initialize.Add(middleware.InitializeMiddlewareFunc("KarpenterRequestMetrics", m.request), middleware.After),
		stack.Deserialize.Add(middleware.DeserializeMiddlewareFunc("KarpenterAttemptMetrics", m.attempt), middleware.Before),
	)
}

// codeKey is where the status of the last attempt is kept while a request is
// under way.
type codeKey struct{}

func (m *Metrics) request(ctx context.Context, in middleware.InitializeInput, next middleware.InitializeHandler) (middleware.InitializeOutput, middleware.Metadata, error) {
	began, code := m.clock.Now(), new(int)
	out, metadata, err := next.HandleInitialize(middleware.WithStackValue(ctx, codeKey{}, code), in)
	service, action, status := middleware.GetServiceID(ctx), middleware.GetOperationName(ctx), strconv.Itoa(*code)
	m.requests.WithLabelValues(service, action, status).Inc()
	m.requestSeconds.WithLabelValues(service, action, status).Observe(m.since(began))
	if tried, ok := retry.GetAttemptResults(metadata); ok {
		m.retries.WithLabelValues(service, action, status).Observe(float64(max(0, len(tried.Results)-1)))
	}
	return out, metadata, err
}

func (m *Metrics) attempt(ctx context.Context, in middleware.DeserializeInput, next middleware.DeserializeHandler) (middleware.DeserializeOutput, middleware.Metadata, error) {
	began := m.clock.Now()
	out, metadata, err := next.HandleDeserialize(ctx, in)
	code := 0
	if answer, ok := out.RawResponse.(*smithyhttp.Response); ok && answer != nil {
		code = answer.StatusCode
	}
	if last, ok := middleware.GetStackValue(ctx, codeKey{}).(*int); ok {
		*last = code
	}
	service, action := middleware.GetServiceID(ctx), middleware.GetOperationName(ctx)
	m.attempts.WithLabelValues(service, action, strconv.Itoa(code)).Inc()
	m.attemptSeconds.WithLabelValues(service, action, strconv.Itoa(code)).Observe(m.since(began))
	return out, metadata, err
}

func (m *Metrics) since(began time.Time) float64 { return m.clock.Since(began).Seconds() }
