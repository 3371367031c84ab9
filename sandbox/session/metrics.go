// SPDX-License-Identifier: Apache-2.0

package session

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// Metrics are the controller's at one moment.
type Metrics struct {
	// Page is what it serves.
	Page     []byte
	families map[string]*dto.MetricFamily
}

// Metrics asks the controller for them.
func (s *Session) Metrics(ctx context.Context) (*Metrics, error) {
	page, err := Read(ctx, s.MetricsURL())
	if err != nil {
		return nil, err
	}
	m, err := parseMetrics(page)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", s.MetricsURL(), err)
	}
	return m, nil
}

func parseMetrics(page []byte) (*Metrics, error) {
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(bytes.NewReader(page))
	return &Metrics{Page: page, families: families}, err
}

// Requests returns how many requests the controller has made of the API server since it started, by a label: "code" is
// the HTTP status, "method" the method. Watches count when they begin.
func (m *Metrics) Requests(label string) map[string]float64 {
	out := map[string]float64{}
	for _, series := range m.families["rest_client_requests_total"].GetMetric() {
		for _, l := range series.GetLabel() {
			if l.GetName() == label {
				out[l.GetValue()] += series.GetCounter().GetValue()
			}
		}
	}
	return out
}

// Observed returns how often something was observed that a histogram is of, and the sum of all observations.
func (m *Metrics) Observed(histogram string) (count int, sum float64) {
	for _, series := range m.families[histogram].GetMetric() {
		count += int(series.GetHistogram().GetSampleCount())
		sum += series.GetHistogram().GetSampleSum()
	}
	return count, sum
}

// Value returns what a gauge says that has one series; 0 if there is none.
func (m *Metrics) Value(gauge string) float64 {
	for _, series := range m.families[gauge].GetMetric() {
		return series.GetGauge().GetValue()
	}
	return 0
}

// Read returns what is served at the URL.
func Read(ctx context.Context, url string) ([]byte, error) {
	return read(ctx, http.DefaultClient, url)
}

func read(ctx context.Context, client *http.Client, url string) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	answer, err := client.Do(request)
	if err != nil {
		return nil, err
	}
	body, err := io.ReadAll(answer.Body)
	if answer.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", url, answer.Status)
	}
	return body, errors.Join(err, answer.Body.Close())
}
