// SPDX-License-Identifier: Apache-2.0

package azure

import (
	"github.com/prometheus/client_golang/prometheus"

	"karpenter/cloud/azure/failure"
	"karpenter/cloud/azure/image"
	"karpenter/cloud/azure/machine"
)

// Phases of a launch that fails: Azure has refused it, or accepted it before.
const (
	synchronous  = "sync"
	asynchronous = "async"
)

// Metrics counts launches, in both modes. Images are counted by their definition:
// versions would grow without bound.
type Metrics struct {
	starts, failures, unselected *prometheus.CounterVec
}

// NewMetrics registers karpenter_instance_vm_create_start_total,
// karpenter_instance_vm_create_failure_total and karpenter_image_selection_error_count.
func NewMetrics(reg prometheus.Registerer) *Metrics {
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		c := prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: "karpenter", Name: name, Help: help}, labels)
		reg.MustRegister(c)
		return c
	}
	return &Metrics{
		starts: counter("instance_vm_create_start_total",
			"Number of instances that were requested of Azure. Labeled by image definition, size, zone, capacity type and NodePool.",
			"image", "size", "zone", "capacity_type", "nodepool"),
		failures: counter("instance_vm_create_failure_total",
			"Number of requested instances that Azure did not make. Labeled as the requests, by the phase (sync, async) and by Azure's error code.",
			"image", "size", "zone", "capacity_type", "nodepool", "phase", "error_code"),
		unselected: counter("image_selection_error_count",
			"Number of launches without an image for the size. Labeled by image family.",
			"family"),
	}
}

// requested are the labels of an instance that is requested.
func requested(want *machine.Want, pool string) []string {
	o := want.Choice.Offering
	return []string{image.DefinitionOf(want.Image.ID), want.Choice.Type.Name, o.Zone(), o.CapacityType(), pool}
}

// made are the labels of an instance that Azure shows.
func made(m *machine.Machine, pool string) []string {
	return []string{image.DefinitionOf(m.ImageVersion), m.Size, m.Zone, m.CapacityType, pool}
}

// failed counts a failure of the instance; cause is nil if Azure does not tell.
func (m *Metrics) failed(labels []string, phase string, cause *failure.Error) {
	code := "UnknownError"
	if cause != nil && cause.Code != "" {
		code = cause.Code
	}
	m.failures.WithLabelValues(append(labels, phase, code)...).Inc()
}
