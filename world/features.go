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
	// predicted is which features new nodes will declare and which not, by pool and name
	// of the feature, as far as the provider knows that.
	predicted map[string]map[string]bool
}

// declared is the features of the node of a pool that was launched last: the next one
// declares the same, unless it will have another image. Of a pool without any node, only
// what is predicted is known.
type declared struct {
	node     string
	created  time.Time
	features []string
	seen     time.Time
	drifted  bool
	// predicted is what was predicted when the node was first seen.
	predicted map[string]bool
}

// SetFeatures says which features kubelets of new nodes of the pool will declare and which
// not; one that is not named is not known.
func (w *World) SetFeatures(pool string, features map[string]bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if maps.Equal(w.predicted[pool], features) {
		return
	}
	if len(features) == 0 {
		delete(w.predicted, pool)
	} else {
		w.predicted[pool] = features
	}
	w.touchPool(pool)
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
		next := declared{m.node.Name, m.claim.Created, m.node.Features, now, !m.claim.Drifted.IsZero(), w.predicted[pool]}
		if known.node == next.node {
			next.predicted = known.predicted
		}
		if known.created.After(next.created) && now.Sub(known.seen) < unlikely {
			next = known // of a node that has gone
		}
		if !slices.Equal(known.features, next.features) || known.drifted != next.drifted || known.node == "" {
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
	for _, key := range slices.Sorted(maps.Keys(w.needed)) {
		if w.promises(pool, strings.TrimPrefix(key, model.FeaturePrefix)) {
			out = out.And(model.NewRequirement(key, model.In, "true"))
		}
	}
	return out
}

// promises reports whether new nodes of the pool may declare the feature. What the latest node
// declares counts more than what is predicted, unless new nodes will differ from that node.
func (w *World) promises(pool, feature string) bool {
	latest, seen := w.declared[pool]
	will, predicted := w.predicted[pool][feature]
	if was, ok := latest.predicted[feature]; predicted && (latest.drifted || ok && was != will) {
		seen = false
	}
	switch {
	case seen:
		return slices.Contains(latest.features, feature)
	case predicted:
		return will
	}
	return true
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
