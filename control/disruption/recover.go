// SPDX-License-Identifier: Apache-2.0

package disruption

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"karpenter/api/conditions"
	v1 "karpenter/api/v1"
	"karpenter/model"
)

// failure is why an execution is abandoned.
type failure struct {
	lost string // the replacement that is gone; "" = it took too long
	why  error
}

// fail abandons an execution. The next pass removes the marks from its nodes.
//
// Its replacements may be of use: those that are initialized are nodes like any
// other, and those that have not joined when time is up may still do so, or are
// collected as instances that never join, which is how it is known that they do
// not. The rest is left over.
func (l *Loop) fail(ctx context.Context, s *scope, x *execution, f failure) {
	l.drop(x)
	var lives []string
	for _, n := range x.command.Nodes {
		if s.lives(n.Claim) {
			lives = append(lives, n.Claim)
		}
	}
	l.World.Unmark(lives...)
	l.pauses.begin(x, lives, s.now)
	missing := 0
	for _, r := range x.replacements {
		if r.ready {
			continue
		}
		missing++
		n := s.managed[r.name]
		if f.lost != "" || n != nil && n.Registered {
			l.leave(r.name)
		}
	}
	l.reportFailure(ctx, x, missing, f.why)
}

// leave records that a claim was made for a command that failed.
func (l *Loop) leave(claim string) {
	if l.leftovers == nil {
		l.leftovers = map[string]bool{}
	}
	l.leftovers[claim] = true
}

// discard deletes the claims that failed commands have left over. One that pods
// are planned on or run on meanwhile is kept, and so is one that has become a
// node: whether that may go is for the plan to say.
func (l *Loop) discard(ctx context.Context, s *scope) error {
	if len(l.leftovers) == 0 {
		return nil
	}
	used := map[string]bool{}
	for _, pending := range s.snapshot.Pending {
		for _, p := range pending.Pods {
			used[p.Planned] = true
		}
	}
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(l.leftovers)) {
		claim, n := s.claims[name], s.managed[name]
		switch {
		case claim == nil && n == nil: // deleted, or not seen for a long time
			claim = &v1.NodeClaim{ObjectMeta: metav1.ObjectMeta{Name: name}}
		case claim == nil || n == nil: // one of the caches is behind
			continue
		case used[n.Name] || used[name] || n.Initialized || !n.Disruption.Empty:
			delete(l.leftovers, name)
			continue
		}
		if _, err := l.remove(ctx, claim); err != nil {
			errs = append(errs, err)
			continue
		}
		delete(l.leftovers, name)
	}
	return errors.Join(errs...)
}

// recover takes back the marks of commands that are not under way: this process
// gave them up, or an earlier one ended before it could finish them. A command of an earlier
// process that has removed some of the nodes that go only together is finished instead.
func (l *Loop) recover(ctx context.Context, s *scope) error {
	var stale []*v1.NodeClaim
	var failed error
	halfGone := s.halfGone()
	for _, name := range slices.Sorted(maps.Keys(s.managed)) {
		claim := s.claims[name]
		if l.executing[name] != nil || s.managed[name].Deleting || claim == nil || claim.DeletionTimestamp != nil || conditions.IsTrue(claim, v1.RebootingCondition) {
			continue
		}
		if _, gaveUp := l.pauses[name]; !gaveUp && !s.duplicated(claim) && s.follows(name, halfGone) {
			_, err := l.remove(ctx, claim)
			failed = errors.Join(failed, err)
			if err == nil {
				l.World.MarkForDeletion(name)
			}
			continue
		}
		stale = append(stale, claim)
	}
	errs, freed := make([]error, len(stale)), make([]marked, len(stale))
	l.each(len(stale), func(i int) {
		claim, err := l.withdraw(ctx, stale[i])
		if err != nil {
			errs[i] = fmt.Errorf("remove deadline of node claim %s: %w", claim.Name, err)
			return
		}
		node := s.nodeOf(claim)
		if node == nil || node.DeletionTimestamp != nil {
			return
		}
		if freed[i], err = l.unmark(ctx, marked{claim, node}); err != nil {
			errs[i] = fmt.Errorf("undo disruption of node %s: %w", node.Name, err)
		}
	})
	for _, m := range freed { // this pass may mark them again
		if m.claim != nil {
			s.claims[m.claim.Name], s.nodes[m.node.Spec.ProviderID] = m.claim, m.node
		}
	}
	return errors.Join(failed, errors.Join(errs...))
}

// halfGone returns the PodGroups whose pods are disrupted together, and the reasons of
// commands of ours by which a node of theirs is being deleted. If the process ended before
// it had deleted the claims of the other nodes, they carry the command's mark still.
func (s *scope) halfGone() map[unfinished]bool {
	out := map[unfinished]bool{}
	for name, n := range s.managed {
		if claim := s.claims[name]; claim != nil && claim.DeletionTimestamp != nil && !n.Disruption.Deadline {
			for _, group := range n.Disruption.Together {
				out[unfinished{group, disrupted(claim)}] = true
			}
		}
	}
	return out
}

// unfinished is a command of which some nodes are gone.
type unfinished struct{ group, reason string }

// follows reports whether the node of the claim is marked by a command of which others are
// gone. Nodes with a deadline go by commands of their own.
func (s *scope) follows(claim string, halfGone map[unfinished]bool) bool {
	d, reason := &s.managed[claim].Disruption, disrupted(s.claims[claim])
	return reason != "" && !d.Deadline && slices.ContainsFunc(d.Together, func(group string) bool { return halfGone[unfinished{group, reason}] })
}

// disrupted returns why a command of ours has marked the claim; "" = none has.
func disrupted(claim *v1.NodeClaim) string {
	if c := conditions.Get(claim, v1.DisruptionReasonCondition); c != nil && c.Status == metav1.ConditionTrue && c.Reason != string(model.Unhealthy) {
		return c.Reason
	}
	return ""
}

// marked is what is marked when a node is to go.
type marked struct {
	claim *v1.NodeClaim
	node  *corev1.Node
}

// unmark takes the marks back and returns the objects as they are then.
func (l *Loop) unmark(ctx context.Context, m marked) (marked, error) {
	taint := v1.DisruptedNoScheduleTaint()
	ours := func(t corev1.Taint) bool { return t.MatchTaint(&taint) }
	if slices.ContainsFunc(m.node.Spec.Taints, ours) {
		free := m.node.DeepCopy()
		free.Spec.Taints = slices.DeleteFunc(free.Spec.Taints, ours)
		if err := l.Client.Patch(ctx, free, locked(m.node)); client.IgnoreNotFound(err) != nil {
			return m, err
		}
		m.node = free
	}
	if m.node.Labels[v1.NodeInitializedLabelKey] != "true" || conditions.Get(m.claim, v1.DisruptionReasonCondition) == nil {
		return m, nil
	}
	silent := m.claim.DeepCopy()
	if err := silent.StatusConditions(l.Clock.Now()).Clear(v1.DisruptionReasonCondition); err != nil {
		return m, err
	}
	if err := l.Client.Status().Patch(ctx, silent, locked(m.claim)); client.IgnoreNotFound(err) != nil {
		return m, err
	}
	m.claim = silent
	return m, nil
}
