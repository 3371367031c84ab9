// SPDX-License-Identifier: Apache-2.0

package meter

import (
	"slices"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
)

// pairs returns labels sorted by name, as Prometheus requires. names[i] belongs
// to values[i].
func pairs(names, values []string) []*dto.LabelPair {
	out, all := make([]*dto.LabelPair, len(names)), make([]dto.LabelPair, len(names))
	for i := range names {
		all[i].Name, all[i].Value = &names[i], &values[i]
		out[i] = &all[i]
	}
	slices.SortFunc(out, func(a, b *dto.LabelPair) int { return strings.Compare(a.GetName(), b.GetName()) })
	return out
}

// with returns the labels and one more, whose name none of them has.
func with(labels []*dto.LabelPair, name, value string) []*dto.LabelPair {
	at, _ := slices.BinarySearchFunc(labels, name, func(l *dto.LabelPair, name string) int { return strings.Compare(l.GetName(), name) })
	out := make([]*dto.LabelPair, 0, len(labels)+1)
	out = append(append(out, labels[:at]...), &dto.LabelPair{Name: &name, Value: &value})
	return append(out, labels[at:]...)
}

// gauge is one series at the moment of a scrape. Series of one object share the
// labels they have in common, which makes tens of thousands of them cheap.
type gauge struct {
	desc   *prometheus.Desc
	labels []*dto.LabelPair // sorted; not modified
	value  float64
}

// Desc implements prometheus.Metric.
func (g gauge) Desc() *prometheus.Desc { return g.desc }

// Write implements prometheus.Metric.
func (g gauge) Write(m *dto.Metric) error {
	m.Label, m.Gauge = g.labels, &dto.Gauge{Value: &g.value}
	return nil
}

// pool makes the series of one scrape share equal labels.
type pool map[[2]string]*dto.LabelPair

// pairs returns labels whose names are sorted.
func (p pool) pairs(names, values []string) []*dto.LabelPair {
	out := make([]*dto.LabelPair, len(names))
	for i, name := range names {
		pair := p[[2]string{name, values[i]}]
		if pair == nil {
			pair = &dto.LabelPair{Name: &names[i], Value: &values[i]}
			p[[2]string{name, values[i]}] = pair
		}
		out[i] = pair
	}
	return out
}
