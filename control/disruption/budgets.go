// SPDX-License-Identifier: Apache-2.0

package disruption

import (
	"context"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"karpenter/api/conditions"
	v1 "karpenter/api/v1"
	"karpenter/model"
)

// budgetMemory remembers what was published about budgets, so that it is not
// repeated.
type budgetMemory struct {
	shown    map[string]bool     // pools with gauges
	rejected map[types.UID]int64 // generation at which a pool's budgets could not be read
}

// usage is how many nodes of a pool its budgets are about.
type usage struct {
	total     int // initialized nodes whose instance is not ending
	consuming int // those of them that are not ready, are being removed or reboot
	leaving   int // those of consuming that are being removed or reboot
}

// reportBudgets shows what the budgets of each pool allow, before what is
// consumed already is taken off.
func (l *Loop) reportBudgets(ctx context.Context, s *scope) {
	used := s.usage()
	shown := map[string]bool{}
	for name, pool := range s.pools {
		shown[name] = true
		for _, reason := range []v1.DisruptionReason{v1.DisruptionReasonUnderutilized, v1.DisruptionReasonEmpty, v1.DisruptionReasonDrifted, v1.DisruptionReasonUnhealthy} {
			allowed, err := pool.AllowedDisruptions(s.now, used[name].total, reason)
			if err != nil {
				l.reject(ctx, pool, err)
			}
			consuming := used[name].consuming
			if reason == v1.DisruptionReasonUnhealthy {
				consuming = used[name].leaving
			}
			label := lower(model.Reason(reason))
			l.Metrics.allowed.WithLabelValues(name, label).Set(float64(allowed))
			l.Metrics.consuming.WithLabelValues(name, label).Set(float64(consuming))
			if used[name].total > 0 && allowed == 0 && (reason != v1.DisruptionReasonUnhealthy || l.Repairs != nil) {
				l.Events.Publish(budgetBlocks(pool, reason))
			}
		}
	}
	maps.DeleteFunc(l.budgets.rejected, func(uid types.UID, _ int64) bool {
		return !slices.ContainsFunc(slices.Collect(maps.Values(s.pools)), func(p *v1.NodePool) bool { return p.UID == uid })
	})
	for name := range l.budgets.shown {
		if !shown[name] {
			l.Metrics.forget(name)
		}
	}
	l.budgets.shown = shown
}

// reject logs once that the budgets of the pool cannot be read.
func (l *Loop) reject(ctx context.Context, pool *v1.NodePool, err error) {
	if generation, ok := l.budgets.rejected[pool.UID]; ok && generation == pool.Generation {
		return
	}
	if l.budgets.rejected == nil {
		l.budgets.rejected = map[types.UID]int64{}
	}
	l.budgets.rejected[pool.UID] = pool.Generation
	log.FromContext(ctx).Error(err, "cannot read disruption budgets, so that no node may be disrupted", "NodePool", pool.Name)
}

// usage counts the managed nodes by pool.
func (s *scope) usage() map[string]usage {
	out := map[string]usage{}
	for name, n := range s.managed {
		claim := s.claims[name]
		rebooting := claim != nil && conditions.IsTrue(claim, v1.RebootingCondition)
		if claim == nil || !n.Initialized && !rebooting || conditions.IsTrue(claim, v1.InstanceTerminatingCondition) {
			continue
		}
		node := s.nodeOf(claim)
		u := out[n.Pool]
		u.total++
		leaving := rebooting || n.Deleting || claim.DeletionTimestamp != nil || node == nil || node.DeletionTimestamp != nil
		if leaving {
			u.leaving++
		}
		if leaving || !ready(node) {
			u.consuming++
		}
		out[n.Pool] = u
	}
	return out
}

func ready(node *corev1.Node) bool {
	for _, c := range node.Status.Conditions {
		if c.Type == corev1.NodeReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}
