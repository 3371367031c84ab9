// SPDX-License-Identifier: Apache-2.0

package template

import "github.com/prometheus/client_golang/prometheus"

// Metrics tell how large user data is.
type Metrics struct{ bytes *prometheus.GaugeVec }

// NewMetrics registers karpenter_ec2nodeclasses_userdata_bytes.
func NewMetrics(reg prometheus.Registerer) *Metrics {
	m := &Metrics{prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Namespace: "karpenter", Subsystem: "ec2nodeclasses", Name: "userdata_bytes",
		Help: "Size in bytes of the user data last written for the EC2NodeClass, before it is encoded. EC2 takes 16384. Labeled by node class.",
	}, []string{"nodeclass"})}
	reg.MustRegister(m.bytes)
	return m
}

func (m *Metrics) userData(class string, size int) {
	m.bytes.WithLabelValues(class).Set(float64(size))
}

func (m *Metrics) forget(class string) { m.bytes.DeleteLabelValues(class) }
