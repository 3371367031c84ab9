// SPDX-License-Identifier: Apache-2.0

package kwok

import (
	"encoding/json"
	"fmt"
	"io"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	v1 "karpenter/api/v1"
)

// Entry is one instance type of an instance types file, which is a JSON array
// of them. Fields not listed here are ignored.
type Entry struct {
	Name             string              `json:"name"`
	Offerings        []OfferingEntry     `json:"offerings"`
	Architecture     string              `json:"architecture"`
	OperatingSystems []corev1.OSName     `json:"operatingSystems"`
	Resources        corev1.ResourceList `json:"resources"` // pods: 110 unless given

	// Requirements are labels of the type's nodes beyond those every type has.
	// An addition to upstream's format.
	Requirements []RequirementEntry `json:"requirements,omitempty"`
	// Overhead is the part of Resources pods can't use; 100m of cpu and 10Mi
	// of memory unless given. An addition to upstream's format.
	Overhead corev1.ResourceList `json:"overhead,omitempty"`
}

// OfferingEntry is one way to buy the type.
type OfferingEntry struct {
	Price               *float64           `json:"price"` // dollars per hour
	Requirements        []RequirementEntry `json:"requirements"`
	ReservationCapacity int64              `json:"reservationCapacity,omitempty"`
	// LaunchError makes every launch of the offering fail although it is
	// advertised. InsufficientCapacity is the only value. An addition to
	// upstream's format.
	LaunchError string `json:"launchError,omitempty"`
}

// RequirementEntry pins a label to values, or with DoesNotExist to absence.
type RequirementEntry struct {
	Key      string                      `json:"key"`
	Operator corev1.NodeSelectorOperator `json:"operator"`
	Values   []string                    `json:"values,omitempty"`
}

// WriteEntries writes an instance types file, one type per line.
func WriteEntries(w io.Writer, entries []Entry) error {
	before := "[\n"
	for i := range entries {
		line, err := json.Marshal(&entries[i])
		if err != nil {
			return fmt.Errorf("entry %d (%q): %w", i, entries[i].Name, err)
		}
		if _, err := fmt.Fprintf(w, "%s%s", before, line); err != nil {
			return err
		}
		before = ",\n"
	}
	if len(entries) == 0 {
		_, err := io.WriteString(w, "[]\n")
		return err
	}
	_, err := io.WriteString(w, "\n]\n")
	return err
}

// InsufficientCapacity is the LaunchError of an offering that is out of capacity.
const InsufficientCapacity = "InsufficientCapacity"

// In returns the requirement that a label has one of the values.
func In(key string, values ...string) RequirementEntry {
	return RequirementEntry{Key: key, Operator: corev1.NodeSelectorOpIn, Values: values}
}

// Absent returns the requirement that a label is not there.
func Absent(key string) RequirementEntry {
	return RequirementEntry{Key: key, Operator: corev1.NodeSelectorOpDoesNotExist}
}

// DefaultEntries returns the 144 types of a provider without a file: twelve
// sizes, three ratios of memory to processors (c, s, m), two architectures and
// two operating systems, each in four zones, on demand and as spot.
func DefaultEntries() []Entry {
	families := []struct {
		letter    string
		gibPerCPU int64
	}{{"c", 2}, {"s", 4}, {"m", 8}}
	var out []Entry
	for _, cpu := range []int64{1, 2, 4, 8, 16, 32, 48, 64, 96, 128, 192, 256} {
		for _, family := range families {
			for _, os := range []corev1.OSName{corev1.Linux, corev1.Windows} {
				for _, arch := range []string{v1.ArchitectureAmd64, v1.ArchitectureArm64} {
					name := fmt.Sprintf("%s-%dx-%s-%s", family.letter, cpu, arch, os)
					out = append(out, defaultEntry(name, cpu, family.gibPerCPU*cpu, arch, os))
				}
			}
		}
	}
	return out
}

func defaultEntry(name string, cpu, gib int64, arch string, os corev1.OSName) Entry {
	bytes := gib << 30
	onDemand := 0.025*float64(cpu) + 0.001*float64(bytes)/1e9
	spot := 0.7 * onDemand
	e := Entry{
		Name:             name,
		Architecture:     arch,
		OperatingSystems: []corev1.OSName{os},
		Resources: corev1.ResourceList{
			corev1.ResourceCPU:              *resource.NewQuantity(cpu, resource.DecimalSI),
			corev1.ResourceMemory:           *resource.NewQuantity(bytes, resource.BinarySI),
			corev1.ResourcePods:             *resource.NewQuantity(min(16*cpu, 1024), resource.DecimalSI),
			corev1.ResourceEphemeralStorage: *resource.NewQuantity(20<<30, resource.BinarySI),
		},
	}
	for _, zone := range []string{"test-zone-a", "test-zone-b", "test-zone-c", "test-zone-d"} {
		e.Offerings = append(e.Offerings,
			NewOffering(zone, v1.CapacityTypeSpot, spot),
			NewOffering(zone, v1.CapacityTypeOnDemand, onDemand))
	}
	return e
}

// NewOffering returns the offering of a zone and capacity type at a price in
// dollars per hour.
func NewOffering(zone, capacityType string, dollars float64) OfferingEntry {
	return OfferingEntry{
		Price:        &dollars,
		Requirements: []RequirementEntry{In(v1.CapacityTypeLabelKey, capacityType), In(corev1.LabelTopologyZone, zone)},
	}
}
