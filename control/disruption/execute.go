// SPDX-License-Identifier: Apache-2.0

package disruption

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"karpenter/api/conditions"
	v1 "karpenter/api/v1"
	"karpenter/kube/events"
	"karpenter/kube/join"
	"karpenter/kube/pods"
	"karpenter/model"
)

// defaultParallel is how many commands, and of each how many nodes, are worked on
// at once.
const defaultParallel = 20

// execution is a command that has been started: its nodes are tainted and
// marked, and what replaces them is on its way.
type execution struct {
	id           string
	command      model.Command
	replacements []replacement
	ill          *illness // the node is unhealthy; nil = it goes for another reason
	since        time.Time
}

// replacement is a NodeClaim that an execution waits for.
type replacement struct {
	name  string
	ready bool // has been initialized; its later health does not matter here
}

// names returns the names of the replacements.
func (x *execution) names() []string {
	var out []string
	for _, r := range x.replacements {
		out = append(out, r.name)
	}
	return out
}

// progress is the state of an execution in one pass.
type progress struct {
	events  []events.Event
	deleted []*v1.NodeClaim // in this pass
	done    bool            // all its nodes are going
	lost    string          // the replacement that can never become ready
	splits  string          // a node whose removal would leave a part of a PodGroup behind that goes only as a whole
	err     error           // deletions that failed
}

// timeLimit is how long an execution may take when so many nodes are under way.
func timeLimit(nodes int) time.Duration {
	return min(max(80*time.Millisecond*time.Duration(nodes), 10*time.Minute), time.Hour)
}

// enter adds the execution.
func (l *Loop) enter(x *execution) {
	if l.executing == nil {
		l.executing = map[string]*execution{}
	}
	l.executions = append(l.executions, x)
	for _, n := range x.command.Nodes {
		l.executing[n.Claim] = x
	}
}

// drop forgets the execution.
func (l *Loop) drop(x *execution) {
	l.executions = slices.DeleteFunc(l.executions, func(y *execution) bool { return x == y })
	for _, n := range x.command.Nodes {
		delete(l.executing, n.Claim)
	}
}

// advance continues executions as far as possible now, and reports whether any
// of them ended. It undoes those that fail.
func (l *Loop) advance(ctx context.Context, s *scope, executions []*execution) (ended bool) {
	executions = slices.Clone(executions)
	found := make([]progress, len(executions))
	l.each(len(executions), func(i int) { found[i] = l.look(ctx, s, executions[i]) })
	limit := timeLimit(len(l.executing))
	for i, x := range executions {
		p := &found[i]
		l.Events.Publish(p.events...)
		for _, claim := range p.deleted {
			l.reportDeletion(ctx, s, claim, x.command.Reason)
			if x.ill != nil {
				l.reportRepair(claim, x.ill)
			}
		}
		switch late := s.now.Sub(x.since) > limit; {
		case p.done:
			l.drop(x)
			ended = true
		case p.lost != "":
			l.fail(ctx, s, x, failure{lost: p.lost, why: fmt.Errorf("replacement %s is gone", p.lost)})
			ended = true
		case p.splits != "":
			l.fail(ctx, s, x, failure{why: fmt.Errorf("since it was planned, pods of a PodGroup on node %s, which is disrupted only as a whole, have also started on other nodes", p.splits)})
			ended = true
		case late:
			l.fail(ctx, s, x, failure{why: errors.Join(fmt.Errorf("not done within %s", limit), p.err)})
			ended = true
		case p.err != nil && !apierrors.IsConflict(p.err):
			l.reportTrouble(ctx, x, p.err)
		}
	}
	return ended
}

// look sees whether the replacements are ready and, if so, deletes the claims
// of the nodes.
func (l *Loop) look(ctx context.Context, s *scope, x *execution) progress {
	if s.allGoing(x) {
		return progress{done: true}
	}
	var p progress
	for i := range x.replacements {
		r := &x.replacements[i]
		claim := s.claims[r.name]
		switch {
		case claim == nil && s.managed[r.name] == nil, claim != nil && claim.DeletionTimestamp != nil:
			p.lost = r.name
		case r.ready || claim == nil: // not in the cache yet
		case conditions.IsTrue(claim, v1.InitializedCondition):
			r.ready = true
		default:
			p.events = append(p.events, launching(claim, x.command.Reason), waiting(claim))
		}
	}
	if p.lost != "" || slices.ContainsFunc(x.replacements, func(r replacement) bool { return !r.ready }) {
		return p
	}
	if p.splits = s.splits(x); p.splits != "" {
		return p
	}
	for _, n := range x.command.Nodes {
		claim := s.claims[n.Claim]
		if s.duplicated(claim) {
			p.err = errors.Join(p.err, fmt.Errorf("several nodes have the provider ID of node claim %s: none of them is deleted", n.Claim))
			continue
		}
		if x.ill != nil {
			if err := l.hurry(ctx, claim, x.ill.Bound); err != nil {
				p.err = errors.Join(p.err, err)
				continue
			}
		}
		deleted, err := l.remove(ctx, claim)
		if deleted {
			p.deleted = append(p.deleted, claim)
		}
		p.err = errors.Join(p.err, err)
	}
	p.done = p.err == nil
	return p
}

// allGoing reports whether all nodes of the execution are deleted or being
// deleted, by this process or by another client.
func (s *scope) allGoing(x *execution) bool {
	return !slices.ContainsFunc(x.command.Nodes, func(n model.Target) bool { return s.lives(n.Claim) })
}

// splits returns a node of the execution with pods of a PodGroup that are disrupted only
// together, if others of them are on a node that stays: they may have been bound while the
// replacements started. Once a node is being deleted, the others follow, and it returns "".
func (s *scope) splits(x *execution) string {
	if !s.tied(x.command) || slices.ContainsFunc(x.command.Nodes, func(n model.Target) bool { return !s.lives(n.Claim) }) {
		return ""
	}
	a := newAdmission(s.snapshot)
	for _, n := range x.command.Nodes {
		if node := a.claims[n.Claim]; node != nil && a.splits(&x.command, node) {
			return node.Name
		}
	}
	return ""
}

// lives reports whether the claim is there and is not being deleted.
func (s *scope) lives(claim string) bool {
	c := s.claims[claim]
	return c != nil && c.DeletionTimestamp == nil
}

// duplicated reports whether several Nodes have the provider ID of the claim.
func (s *scope) duplicated(claim *v1.NodeClaim) bool {
	if claim == nil || claim.Status.ProviderID == "" {
		return false
	}
	node, known := s.nodes[claim.Status.ProviderID]
	return known && node == nil
}

// remove deletes the claim, and reports whether it did so. If the claim has a
// UID, only that object is deleted. Nil stands for a claim that is deleted
// already.
func (l *Loop) remove(ctx context.Context, claim *v1.NodeClaim) (bool, error) {
	if claim == nil || claim.DeletionTimestamp != nil {
		return false, nil
	}
	var options []client.DeleteOption
	if uid := claim.UID; uid != "" {
		options = append(options, client.Preconditions{UID: &uid})
	}
	err := l.Client.Delete(ctx, claim.DeepCopy(), options...)
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("delete node claim %s: %w", claim.Name, err)
	}
	return true, nil
}

// reschedulable counts the pods of the node that must be rescheduled. If they
// cannot be listed, it returns 0.
func (l *Loop) reschedulable(ctx context.Context, node *corev1.Node) int {
	if node == nil {
		return 0
	}
	list := &corev1.PodList{}
	if err := l.Client.List(ctx, list, client.MatchingFields{join.PodNodeName: node.Name}); err != nil {
		return 0
	}
	n := 0
	for i := range list.Items {
		if pods.Reschedulable(&list.Items[i]) {
			n++
		}
	}
	return n
}

// each calls do for 0 to n-1, several at once.
func (l *Loop) each(n int, do func(i int)) {
	var group errgroup.Group
	group.SetLimit(cmp.Or(l.Parallel, defaultParallel))
	for i := range n {
		group.Go(func() error {
			do(i)
			return nil
		})
	}
	_ = group.Wait() // no call returns an error
}
