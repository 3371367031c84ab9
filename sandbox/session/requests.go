package session

import (
	"context"
	"fmt"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// Requests returns how many requests the controller has made of the API server since it started, by HTTP status, by its
// own count.
func (s *Session) Requests(ctx context.Context) (map[string]int, error) {
	answer, err := get(ctx, s.MetricsURL())
	if err != nil {
		return nil, err
	}
	defer answer.Close()
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(answer)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", s.MetricsURL(), err)
	}
	byStatus := map[string]int{}
	for _, m := range families["rest_client_requests_total"].GetMetric() {
		for _, l := range m.GetLabel() {
			if l.GetName() == "code" {
				byStatus[l.GetValue()] += int(m.GetCounter().GetValue())
			}
		}
	}
	return byStatus, nil
}
