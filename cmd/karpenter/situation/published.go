// SPDX-License-Identifier: Apache-2.0

package situation

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/klauspost/compress/zstd"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	v1 "karpenter/api/v1"
	"karpenter/kube/volumes"
	"karpenter/model"
	"karpenter/scenario"
)

// Name is the name of the ConfigMap in which the leader publishes.
const Name = "karpenter-offerings"

// Keys of the ConfigMap, and the version of what they hold.
const (
	rulesKey     = "rules.json"
	offeringsKey = "offerings.txt.zst"
	healthKey    = "health.json"
	pausesKey    = "podgroups.json"

	version = 1
)

// Bounds of what is published and accepted, in bytes. The API server refuses
// objects that are much larger than the first.
const (
	mostCompressed = 1_000_000
	mostText       = 64 << 20
	window         = 8 << 20 // of the compression
)

// Rules are the settings of the leader that decide how objects are read.
type Rules struct {
	Version        int                               `json:"version"`
	NodeClasses    []schema.GroupKind                `json:"nodeClasses"` // that the provider serves
	Labels         v1.Labels                         `json:"labels"`
	Volumes        volumes.Rules                     `json:"volumes"`
	StaticCapacity bool                              `json:"staticCapacity"`
	Devices        bool                              `json:"devices"`                      // ResourceClaims are planned for
	Constraints    []corev1.TopologySpreadConstraint `json:"defaultConstraints,omitempty"` // of pods that have none themselves
}

// Published is what the leader knows and the API server does not.
type Published struct {
	Rules Rules
	// Offerings has the NodePools by name with their instance types and extras, the pods
	// that stand in for CapacityBuffers, and the policy.
	Offerings scenario.Situation
	// Health is nil if the leader does not report it.
	Health *Health
}

// manages reports whether the leader's provider serves the node class.
func (r Rules) manages(ref *v1.NodeClassReference) bool {
	return ref != nil && slices.Contains(r.NodeClasses, ref.GroupKind())
}

// offerings returns the part of the snapshot that Published holds. It does not
// change as long as the offerings, the buffers and the policy stay the same.
func offerings(s *model.Snapshot, policy model.Policy) scenario.Situation {
	out := &model.Snapshot{Now: time.Unix(0, 0).UTC(), Resources: s.Resources, WellKnown: s.WellKnown}
	for i := range s.Pools {
		out.Pools = append(out.Pools, model.Pool{Name: s.Pools[i].Name, Types: s.Pools[i].Types, Extras: s.Pools[i].Extras})
	}
	for _, p := range s.Pending {
		kept := model.Pending{Shape: p.Shape, Peer: p.Peer}
		for _, pod := range p.Pods {
			if pod.Buffer != "" {
				pod.Planned, pod.From = "", ""
				kept.Pods = append(kept.Pods, pod)
			}
		}
		if len(kept.Pods) > 0 {
			out.Pending = append(out.Pending, kept)
		}
	}
	return scenario.Situation{Snapshot: out, Policy: policy}
}

// configMap returns the ConfigMap that holds p.
func (p Published) configMap(namespace string) (*corev1.ConfigMap, error) {
	rules, err := json.Marshal(p.Rules)
	if err != nil {
		return nil, fmt.Errorf("encode the rules: %w", err)
	}
	var compressed bytes.Buffer
	// The window spans the types of several node classes, which are nearly alike.
	zip, err := zstd.NewWriter(&compressed, zstd.WithEncoderLevel(zstd.SpeedBetterCompression), zstd.WithWindowSize(window), zstd.WithEncoderConcurrency(1), zstd.WithLowerEncoderMem(true))
	if err != nil {
		return nil, err
	}
	if err := p.Offerings.Print(zip); err != nil {
		return nil, fmt.Errorf("print the offerings: %w", err)
	}
	if err := zip.Close(); err != nil {
		return nil, err
	}
	if compressed.Len()+len(rules) > mostCompressed {
		return nil, fmt.Errorf("the offerings take %d bytes compressed, more than the %d that fit into a ConfigMap", compressed.Len()+len(rules), mostCompressed)
	}
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: Name, Labels: map[string]string{"app.kubernetes.io/managed-by": "karpenter"}},
		Data:       map[string]string{rulesKey: string(rules)},
		BinaryData: map[string][]byte{offeringsKey: compressed.Bytes()},
	}, nil
}

// Replace has the ConfigMap hold p.
func (p Published) Replace(m *corev1.ConfigMap) error {
	is, err := p.configMap(m.Namespace)
	if err != nil {
		return err
	}
	if p.Health != nil {
		health, err := json.Marshal(p.Health)
		if err != nil {
			return err
		}
		is.Data[healthKey] = string(health)
	}
	m.Data, m.BinaryData = is.Data, is.BinaryData
	return nil
}

// Parse reads what the leader published.
func Parse(m *corev1.ConfigMap) (Published, error) {
	var out Published
	failed := func(err error) (Published, error) {
		return out, fmt.Errorf("read ConfigMap %s/%s: %w", m.Namespace, m.Name, err)
	}
	if err := json.Unmarshal([]byte(m.Data[rulesKey]), &out.Rules); err != nil {
		return failed(fmt.Errorf("%s: %w", rulesKey, err))
	}
	if text, ok := m.Data[healthKey]; ok {
		out.Health = &Health{}
		if err := json.Unmarshal([]byte(text), out.Health); err != nil {
			return failed(fmt.Errorf("%s: %w", healthKey, err))
		}
	}
	if out.Rules.Version != version {
		return failed(fmt.Errorf("it has version %d and this program reads version %d; use a program of the controller's version", out.Rules.Version, version))
	}
	zip, err := zstd.NewReader(bytes.NewReader(m.BinaryData[offeringsKey]), zstd.WithDecoderMaxWindow(window), zstd.WithDecoderConcurrency(1))
	if err != nil {
		return failed(fmt.Errorf("%s: %w", offeringsKey, err))
	}
	defer zip.Close()
	text, err := io.ReadAll(io.LimitReader(zip, mostText+1))
	if err == nil && len(text) > mostText {
		err = fmt.Errorf("it is larger than %d bytes", mostText)
	}
	if err == nil {
		out.Offerings, err = scenario.Read(bytes.NewReader(text), nil)
	}
	if err != nil {
		return failed(fmt.Errorf("%s: %w", offeringsKey, err))
	}
	return out, nil
}
