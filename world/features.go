// SPDX-License-Identifier: Apache-2.0

package world

import (
	"maps"
	"slices"
	"strings"
	"time"

	"karpenter/model"
)

// features is which features kubelets declare. A pod that needs some demands each as a label,
// and these are shown as long as such pods exist.
type features struct {
	needed   map[string]int      // shapes that demand it, by label
	declared map[string]declared // by pool
}

// declared is the features of the node of a pool that was launched last: the next one
// declares the same. Of a pool without any, it is not known what it will declare.
type declared struct {
	node     string
	created  time.Time
	features []string
	seen     time.Time
}

// featuresOf returns the labels for features that the shape demands.
func featuresOf(s *model.Shape) []string {
	var out []string
	for _, r := range s.Selector {
		if strings.HasPrefix(r.Key, model.FeaturePrefix) {
			out = append(out, r.Key)
		}
	}
	return out
}

// need counts the features that a shape demands.
func (w *World) need(s *shape, n int) {
	for _, key := range s.features {
		if w.needed[key] += n; w.needed[key] == 0 {
			delete(w.needed, key)
		}
		for _, m := range w.machines {
			w.touch(m)
		}
	}
}

// learnFeatures finds out what the next nodes of pools will declare.
func (w *World) learnFeatures(now time.Time) {
	if len(w.needed)+len(w.declared) == 0 {
		return
	}
	latest := map[string]*machine{}
	for _, m := range w.machines {
		if m.claim == nil || m.node == nil || !m.registered() {
			continue
		}
		pool := m.label(model.LabelNodePool)
		old := latest[pool]
		if old == nil || m.claim.Created.After(old.claim.Created) || m.claim.Created.Equal(old.claim.Created) && m.node.Name > old.node.Name {
			latest[pool] = m
		}
	}
	for pool, m := range latest {
		known := w.declared[pool]
		next := declared{m.node.Name, m.claim.Created, m.node.Features, now}
		if known.created.After(next.created) && now.Sub(known.seen) < unlikely {
			next = known // of a node that has gone
		}
		if !slices.Equal(known.features, next.features) || known.node == "" {
			w.touchPool(pool)
		}
		w.declared[pool] = next
	}
	maps.DeleteFunc(w.declared, func(pool string, d declared) bool { return now.Sub(d.seen) >= unlikely })
}

// promised returns the features that are needed and that new nodes of the pool may declare, as
// labels.
func (w *World) promised(pool string) model.Requirements {
	var out model.Requirements
	known, ok := w.declared[pool]
	for _, key := range slices.Sorted(maps.Keys(w.needed)) {
		if !ok || slices.Contains(known.features, strings.TrimPrefix(key, model.FeaturePrefix)) {
			out = out.And(model.NewRequirement(key, model.In, "true"))
		}
	}
	return out
}

// declares returns the features that are needed and that the machine declares or, before it is
// registered, may declare, as labels.
func (w *World) declares(m *machine) model.Requirements {
	if len(w.needed) == 0 {
		return nil
	}
	if !m.speaks() {
		return w.promised(m.label(model.LabelNodePool))
	}
	var out model.Requirements
	for _, key := range slices.Sorted(maps.Keys(w.needed)) {
		if slices.Contains(m.node.Features, strings.TrimPrefix(key, model.FeaturePrefix)) {
			out = out.And(model.NewRequirement(key, model.In, "true"))
		}
	}
	return out
}
