// SPDX-License-Identifier: Apache-2.0

package disruption

import (
	"context"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/uuid"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "karpenter/api/v1"
	"karpenter/model"
)

// begun is the result of starting a command.
type begun struct {
	execution *execution // nil when it was not started
	rebooting bool       // the command is done: its node reboots
	left      []string   // claims that were created although the start failed
	err       error
}

// start starts all commands that are still allowed, in parallel, and returns
// the executions. The others stay intents.
func (l *Loop) start(ctx context.Context, s *scope, due []model.Command) ([]*execution, error) {
	due = l.admit(s, due)
	outcomes := make([]begun, len(due))
	l.each(len(due), func(i int) { outcomes[i] = l.begin(ctx, s, due[i]) })
	var started []*execution
	var errs []error
	for i, o := range outcomes {
		errs = append(errs, o.err)
		for _, name := range o.left {
			l.leave(name)
		}
		if o.rebooting {
			l.intents = l.intents.without(&due[i])
			l.reportStart(ctx, s, &due[i], l.newID())
		}
		if o.execution == nil {
			continue
		}
		o.execution.id = l.newID()
		l.intents = l.intents.without(&due[i])
		l.enter(o.execution)
		started = append(started, o.execution)
	}
	l.reportStarts(ctx, s, started)
	if l.Started != nil {
		for _, x := range started {
			l.Started(s.snapshot, &x.command, x.names())
		}
	}
	return started, errors.Join(errs...)
}

// admit returns the commands that the cluster as it is now still allows: it may
// have changed since the plan's Snapshot was taken, and budgets hold for all
// commands together.
func (l *Loop) admit(s *scope, due []model.Command) []model.Command {
	if len(due) == 0 {
		return nil
	}
	now := l.World.Snapshot(l.Clock.Now())
	check := newAdmission(now)
	return slices.DeleteFunc(slices.Clone(due), func(c model.Command) bool {
		for _, n := range c.Nodes {
			claim := s.claims[n.Claim]
			if claim == nil || claim.DeletionTimestamp != nil || l.executing[n.Claim] != nil {
				return true
			}
		}
		return !check.take(&c)
	})
}

// admission is what may still be disrupted in this pass.
type admission struct {
	nodes  map[string]*model.Node // by name
	claims map[string]*model.Node // by claim
	pools  map[string]*model.Pool
	taken  map[string]int           // nodes, by pool
	groups map[string][]*model.Node // with pods of PodGroups that are disrupted together, by group
}

func newAdmission(s *model.Snapshot) *admission {
	a := &admission{
		nodes: map[string]*model.Node{}, claims: map[string]*model.Node{}, pools: map[string]*model.Pool{}, taken: map[string]int{},
		groups: map[string][]*model.Node{},
	}
	for i := range s.Nodes {
		n := &s.Nodes[i]
		a.nodes[n.Name] = n
		for _, group := range n.Disruption.Together {
			a.groups[group] = append(a.groups[group], n)
		}
		if n.Claim != "" {
			a.claims[n.Claim] = n
		}
	}
	for i := range s.Pools {
		a.pools[s.Pools[i].Name] = &s.Pools[i]
	}
	return a
}

// take reports whether the command may start, and counts its nodes if so. Every
// removed node counts against every budget, for any reason.
func (a *admission) take(c *model.Command) bool {
	want := map[string]int{}
	for _, n := range c.Nodes {
		node := a.claims[n.Claim]
		if node == nil || !mayGo(node, c.Reason) || a.splits(c, node) {
			return false
		}
		if counts(node, c.Reason) {
			want[node.Pool]++
		}
	}
	for _, p := range c.Moves {
		if node := a.nodes[p.Node]; node == nil || node.Deleting {
			return false
		}
	}
	for name, n := range want {
		pool := a.pools[name]
		if pool == nil || a.taken[name]+n > pool.Disruption.Allowed[c.Reason] {
			return false
		}
	}
	for name, n := range want {
		a.taken[name] += n
	}
	for _, n := range c.Nodes { // nothing moves there any more, and no other command takes it
		delete(a.nodes, n.Node)
		delete(a.claims, n.Claim)
	}
	for _, p := range c.Moves { // nor does one take a node that pods move to
		delete(a.claims, a.nodes[p.Node].Claim)
	}
	return true
}

// splits reports whether the command takes the node away and leaves another one, although
// pods on both are to be disrupted together. An empty node has at most such that are ending.
func (a *admission) splits(c *model.Command, n *model.Node) bool {
	if c.Reason == model.Unhealthy || c.Reason == model.Empty || c.Reason == model.Drifted && n.Disruption.Deadline {
		return false
	}
	return slices.ContainsFunc(n.Disruption.Together, func(group string) bool {
		return slices.ContainsFunc(a.groups[group], func(other *model.Node) bool {
			return !slices.ContainsFunc(c.Nodes, func(t model.Target) bool { return t.Node == other.Name })
		})
	})
}

// counts reports whether budgets hold for the node. One that never was initialized, or that
// was launched for a PodGroup that could not start, is no loss.
func counts(n *model.Node, reason model.Reason) bool {
	switch reason {
	case model.Unhealthy:
		return n.Initialized
	case model.Empty:
		return !n.Disruption.Returned
	}
	return true
}

// mayGo reports whether the node itself permits its disruption.
func mayGo(n *model.Node, reason model.Reason) bool {
	d := &n.Disruption
	switch {
	case n.Deleting:
		return false
	case reason == model.Unhealthy: // the rest was asked when it was diagnosed
		return true
	case d.Blocked != "":
		return false
	case d.Held != "" && !(reason == model.Drifted && d.Deadline):
		return false
	case reason == model.Empty:
		return d.Empty
	}
	return true
}

// begin starts a command: its nodes are marked, then its replacements made, and
// only then do Snapshots have its pods as pending, planned where the command
// says; had they before, nodes would be launched for them twice.
func (l *Loop) begin(ctx context.Context, s *scope, c model.Command) begun {
	if err := ctx.Err(); err != nil {
		return begun{err: err}
	}
	if c.Reboot {
		asked, err := l.reboot(ctx, s, c.Nodes[0])
		return begun{rebooting: asked, err: err}
	}
	c, err := l.markAll(ctx, s, c)
	if err != nil {
		return begun{err: err}
	}
	claims, err := l.Placer.Replace(ctx, c.Reason, c.Launches, s.pools)
	if err != nil {
		return begun{left: claims, err: fmt.Errorf("replace nodes of %s: %w", text(&c), err)}
	}
	l.Placer.Move(s.snapshot, c.Moves)
	l.World.MarkForDeletion(claimsOf(&c)...)
	x := &execution{command: c, since: l.Clock.Now()}
	if found := s.ill[c.Nodes[0].Claim]; c.Reason == model.Unhealthy && found != nil {
		x.ill = found
		l.logPolicy(ctx, s.claims[c.Nodes[0].Claim], x.ill)
	}
	for _, name := range claims {
		x.replacements = append(x.replacements, replacement{name: name})
	}
	return begun{execution: x}
}

func (l *Loop) newID() string {
	if l.NewID != nil {
		return l.NewID()
	}
	return string(uuid.NewUUID())
}

// tied reports whether nodes of the command go together or not at all.
func (s *scope) tied(c model.Command) bool {
	return slices.ContainsFunc(c.Nodes, func(n model.Target) bool {
		node := s.managed[n.Claim]
		return node != nil && len(node.Disruption.Together) > 0
	})
}

// markAll marks the nodes of the command. Of a command that launches nothing and whose nodes
// are not tied, it returns what could be marked of it, if anything; any other is marked as a
// whole or not started, and the next pass takes the marks back.
func (l *Loop) markAll(ctx context.Context, s *scope, c model.Command) (model.Command, error) {
	errs := make([]error, len(c.Nodes))
	l.each(len(c.Nodes), func(i int) {
		claim := s.claims[c.Nodes[i].Claim]
		if err := l.mark(ctx, claim, s.nodeOf(claim), c.Reason); err != nil {
			errs[i] = fmt.Errorf("mark node claim %s: %w", claim.Name, err)
		}
	})
	err := errors.Join(errs...)
	if err == nil {
		return c, nil
	}
	marked := map[string]bool{}
	for i, n := range c.Nodes {
		marked[n.Claim] = errs[i] == nil
	}
	rest := only(c, func(n model.Target) bool { return marked[n.Claim] })
	if len(c.Launches) > 0 || len(rest.Nodes) == 0 || s.tied(c) {
		return c, err
	}
	return rest, nil
}

// mark marks the objects as about to be removed. A Node that is deleted already
// needs no mark.
func (l *Loop) mark(ctx context.Context, claim *v1.NodeClaim, node *corev1.Node, reason model.Reason) error {
	taint := v1.DisruptedNoScheduleTaint()
	if node != nil && !slices.ContainsFunc(node.Spec.Taints, func(t corev1.Taint) bool { return t.MatchTaint(&taint) }) {
		tainted := node.DeepCopy()
		tainted.Spec.Taints = append(tainted.Spec.Taints, taint)
		if err := l.Client.Patch(ctx, tainted, locked(node)); client.IgnoreNotFound(err) != nil {
			return err
		}
	}
	told := claim.DeepCopy()
	if !told.StatusConditions(l.Clock.Now()).SetTrueWithReason(v1.DisruptionReasonCondition, string(reason), string(reason)) {
		return nil
	}
	return client.IgnoreNotFound(l.Client.Status().Patch(ctx, told, locked(claim)))
}

// locked returns a patch that fails if the object has changed since it was
// read.
func locked(stored client.Object) client.Patch {
	return client.MergeFromWithOptions(stored, client.MergeFromWithOptimisticLock{})
}
