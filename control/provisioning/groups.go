// SPDX-License-Identifier: Apache-2.0

package provisioning

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"karpenter/api/conditions"
	v1 "karpenter/api/v1"
	"karpenter/kube/convert"
	"karpenter/kube/events"
	"karpenter/model"
	"karpenter/world"
)

// team is the result of a plan for one PodGroup.
type team struct {
	pending, moving, placed int
	standIns                int            // of pending, that do not exist
	launched                map[int]bool   // launches, by index
	from                    map[string]int // of moving, by the node that is going away
	untried                 bool           // the plan does not say whether it can have a place
	why                     string         // of the first verdict
}

// teamsOf counts, by PodGroup.
func teamsOf(s *model.Snapshot, plan *model.Plan) map[string]*team {
	if len(s.Groups) == 0 {
		return nil
	}
	out := map[string]*team{}
	for i := range s.Groups {
		name := s.Groups[i].Name
		out[name] = &team{launched: map[int]bool{}, from: map[string]int{}, untried: slices.Contains(plan.Untried, name)}
	}
	each := func(pods []model.Pod, do func(*team, model.Pod)) {
		for _, p := range pods {
			if t := out[p.Group]; t != nil {
				do(t, p)
			}
		}
	}
	for _, pending := range s.Pending {
		each(pending.Pods, func(t *team, p model.Pod) {
			t.pending++
			if p.From != "" {
				t.moving++
				t.from[p.From]++
			}
			if !exists(p) {
				t.standIns++
			}
		})
	}
	for _, x := range plan.Placements {
		each([]model.Pod{x.Pod}, func(t *team, _ model.Pod) { t.placed++ })
	}
	for i := range plan.Launches {
		each(plan.Launches[i].Pods, func(t *team, _ model.Pod) { t.placed, t.launched[i] = t.placed+1, true })
	}
	for i := range plan.Verdicts {
		each(plan.Verdicts[i].Pods, func(t *team, _ model.Pod) {
			if t.why == "" {
				t.why = plan.Verdicts[i].Brief(longest)
			}
		})
	}
	return out
}

// judged returns the PodGroups that have enough pods to start, in two lists: those of
// which too few pods have a place, and those of which enough have one. Groups that were
// not tried are in neither list.
func judged(s *model.Snapshot, teams map[string]*team) (refused, placed []string) {
	for i := range s.Groups {
		g := &s.Groups[i]
		t := teams[g.Name]
		switch need := g.MinCount - (g.Running - t.moving); {
		case g.Refused != "" || need <= 0 || t.pending < need:
		case t.placed < need:
			if !t.untried {
				refused = append(refused, g.Name)
			}
		case t.standIns == 0: // capacity for pods that do not exist yet is kept until they are created
			placed = append(placed, g.Name)
		}
	}
	return refused, placed
}

// giveBack deletes the NodeClaims that were launched for PodGroups without a place in
// the plan, and publishes events on all groups.
func (p *Provisioner) giveBack(ctx context.Context, s *scope) error {
	teams := teamsOf(s.snapshot, s.plan)
	refused, placed := judged(s.snapshot, teams)
	failures, vain := p.World.Refused(s.now, refused, placed)
	for _, f := range failures {
		why := ""
		if t := teams[f.Group.Name]; t != nil {
			why = t.why
		}
		log.FromContext(ctx).Info("gave up launching nodes for a pod group", "PodGroup", f.Group.Name, "node-claims", f.Nodes, "late", f.Late, "until", f.Until)
		if f.Group.UID != "" { // it exists
			p.Events.Publish(rolledBack(f, why))
		}
	}
	p.tellGroups(s, teams)
	var errs []error
	for _, name := range vain {
		errs = append(errs, p.cancel(ctx, name))
	}
	return errors.Join(errs...)
}

// cancel deletes the NodeClaim unless it has become a Node.
func (p *Provisioner) cancel(ctx context.Context, name string) error {
	claim := &v1.NodeClaim{}
	if err := p.Live.Get(ctx, client.ObjectKey{Name: name}, claim); err != nil {
		return client.IgnoreNotFound(err)
	}
	if claim.DeletionTimestamp != nil || conditions.IsTrue(claim, v1.RegisteredCondition) {
		return nil
	}
	err := p.Client.Delete(ctx, claim, client.Preconditions{UID: &claim.UID, ResourceVersion: &claim.ResourceVersion})
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		return nil // the next pass looks again
	}
	if err != nil {
		return fmt.Errorf("delete node claim %s: %w", name, err)
	}
	p.World.MarkForDeletion(name)
	log.FromContext(ctx).Info("deleted node claim that was created for a pod group", "NodeClaim", klog.KRef("", name), "PodGroups", claim.Annotations[v1.PodGroupsAnnotationKey])
	return nil
}

// tellGroups publishes events on PodGroups about what the plan does for them, or
// why it does nothing.
func (p *Provisioner) tellGroups(s *scope, teams map[string]*team) {
	next := told{}
	for i := range s.snapshot.Groups {
		name := s.snapshot.Groups[i].Name
		t, group := teams[name], p.World.PodGroup(name)
		if group.UID == "" { // it does not exist
			continue
		}
		if n := len(t.launched); n > 0 {
			p.Events.Publish(launchingFor(group, n, t.placed))
		}
		for _, node := range slices.Sorted(maps.Keys(t.from)) {
			p.Events.Publish(disrupted(group, node, t.from[node], s.snapshot.Groups[i].Running-t.moving))
		}
		if t.why == "" {
			continue
		}
		last, known := p.toldGroups[group.UID]
		if known && s.now.Before(last.at.Add(failedTimeout)) || last.text == t.why && s.now.Before(last.at.Add(remindAfter)) {
			next[group.UID] = last
			continue
		}
		next[group.UID] = saying{t.why, s.now}
		p.Events.Publish(events.Event{
			Object: convert.PodGroupObject(group), Type: corev1.EventTypeWarning, Reason: "FailedScheduling",
			Message: cut("Failed to schedule pods of the group, " + t.why), Timeout: failedTimeout,
		})
	}
	p.toldGroups = next
}

func launchingFor(g world.PodGroup, nodes, pods int) events.Event {
	return events.Event{
		Object: convert.PodGroupObject(g), Type: corev1.EventTypeNormal, Reason: "Launching",
		Message: fmt.Sprintf("Launching %d nodes, with which %d pending pods of the group have a place", nodes, pods),
		Dedupe:  []string{g.UID, fmt.Sprint(nodes)}, Timeout: time.Minute,
	}
}

// disrupted says that a node with pods of the group is going away: once for each node.
func disrupted(g world.PodGroup, node string, pods, stay int) events.Event {
	return events.Event{
		Object: convert.PodGroupObject(g), Type: corev1.EventTypeWarning, Reason: "Disrupted",
		Message: fmt.Sprintf("Node %s is being removed with %d pods of the group; %d pods of the group run on other nodes", node, pods, stay),
		Dedupe:  []string{g.UID, node}, Timeout: time.Hour,
	}
}

func rolledBack(f world.Failure, why string) events.Event {
	reason := "not all nodes of the group could be had"
	if f.Late {
		reason = "not all nodes of the group have started in time"
	}
	if why = strings.TrimPrefix(why, "PodGroup "+f.Group.Name+": "); why != "" {
		why = ": " + why
	}
	return events.Event{
		Object: convert.PodGroupObject(f.Group), Type: corev1.EventTypeWarning, Reason: "RolledBack",
		Message: cut(fmt.Sprintf("Gave up launching nodes, since %s. %d are given back, and the next are launched after %s%s",
			reason, f.Nodes, f.Until.UTC().Format(time.RFC3339), why)),
		Timeout: time.Second,
	}
}

// whole rejects all launches for a PodGroup if one of them is rejected. A launch may be
// for several groups, so this repeats until no further launch is rejected.
func whole(admitted []model.Launch, refused []refusal) ([]model.Launch, []refusal) {
	broken := map[string]bool{}
	for next := 0; next < len(refused); {
		for ; next < len(refused); next++ {
			for _, pod := range refused[next].launch.Pods {
				if pod.Group != "" {
					broken[pod.Group] = true
				}
			}
		}
		var left []model.Launch
		for _, l := range admitted {
			if name := brokenOf(l, broken); name != "" {
				refused = append(refused, refusal{l, fmt.Sprintf("another node for PodGroup %s cannot be launched", name)})
				continue
			}
			left = append(left, l)
		}
		admitted = left
	}
	return admitted, refused
}

// brokenOf returns one of the given groups that the launch is for, or "".
func brokenOf(l model.Launch, groups map[string]bool) string {
	for _, pod := range l.Pods {
		if groups[pod.Group] {
			return pod.Group
		}
	}
	return ""
}
