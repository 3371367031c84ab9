// SPDX-License-Identifier: Apache-2.0

package disruption

import (
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	v1 "karpenter/api/v1"
	"karpenter/model"
)

// plan sets what Decide returns. A line is a command,
//
//	Underutilized n1,n2 launch=general,general:r9 move=web:n3 saves=2 score=general:0.8
//
// or why a node stays:
//
//	stay n1 Underutilized no-saving would cost more
//	stay n1 Underutilized policy score=general:0.3 is too low
func (s *stage) plan(text string) {
	s.script = &model.Plan{}
	for _, line := range strings.Split(text, "\n") {
		words := strings.Fields(line)
		switch {
		case len(words) == 0:
		case words[0] == "stay":
			s.script.Stays = append(s.script.Stays, model.Stay{
				Node: words[1], Claim: "c-" + words[1], Reason: model.Reason(words[2]),
				Cause: model.Cause(strings.ReplaceAll(words[3], "-", " ")), Why: strings.Join(words[4:], " "), Score: scored(words[4]),
			})
		default:
			s.script.Commands = append(s.script.Commands, s.planned(words))
		}
	}
}

// scored returns the score that the word is, or none.
func scored(word string) model.Score {
	text, ok := strings.CutPrefix(word, "score=")
	if !ok {
		return model.Score{}
	}
	pool, value, _ := strings.Cut(text, ":")
	return model.Score{Pool: pool, Value: number(value)}
}

func (s *stage) planned(words []string) model.Command {
	c := model.Command{Reason: model.Reason(words[0])}
	nodes := strings.Split(words[1], ",")
	for _, n := range nodes {
		c.Nodes = append(c.Nodes, model.Target{Node: n, Claim: "c-" + n})
	}
	for _, w := range words[2:] {
		key, value, _ := strings.Cut(w, "=")
		for _, v := range strings.Split(value, ",") {
			from, to, _ := strings.Cut(v, ":")
			switch key {
			case "launch":
				c.Launches = append(c.Launches, model.Launch{
					Pool: from, Type: to, Types: []string{"t1", "t2", "t3", "t4", "t5", "t6"}, CapacityTypes: []string{"on-demand", "spot"},
				})
			case "move":
				c.Moves = append(c.Moves, model.Placement{Pod: model.Pod{Namespace: "default", Name: from, UID: from, From: nodes[0]}, Node: to})
			case "saves":
				c.Savings = model.Price(number(value) * float64(model.Dollar))
			case "score":
				c.Scores = append(c.Scores, model.Score{Pool: from, Value: number(to), Savings: .2, Disruption: .1})
			default:
				s.t.Fatalf("unknown word %s", w)
			}
		}
	}
	return c
}

// joins gives the claim a Node of its own name.
func (s *stage) joins(name string, initialized bool) {
	c := &v1.NodeClaim{}
	s.must(s.client.Get(s.t.Context(), types.NamespacedName{Name: name}, c))
	n := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: "n-" + name, UID: types.UID("n-" + name), Labels: map[string]string{}},
		Spec:       corev1.NodeSpec{ProviderID: "test://n-" + name},
		Status:     corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}},
	}
	set := c.StatusConditions(s.clock.Now())
	if initialized {
		n.Labels[v1.NodeInitializedLabelKey] = "true"
		set.SetTrue(v1.InitializedCondition)
	}
	if c.Status.ProviderID == "" {
		s.must(s.client.Create(s.t.Context(), n))
	} else {
		s.must(s.client.Update(s.t.Context(), n))
	}
	c.Status.ProviderID = n.Spec.ProviderID
	s.must(s.client.Status().Update(s.t.Context(), c))
}

// quiet has the claim say that it may be consolidated.
func (s *stage) quiet(name string) {
	c := &v1.NodeClaim{}
	s.must(s.client.Get(s.t.Context(), types.NamespacedName{Name: name}, c))
	c.StatusConditions(s.clock.Now()).SetTrue(v1.ConsolidatableCondition)
	s.must(s.client.Status().Update(s.t.Context(), c))
}

// lose has the claim end at once.
func (s *stage) lose(name string) {
	c := &v1.NodeClaim{}
	s.must(s.client.Get(s.t.Context(), types.NamespacedName{Name: name}, c))
	c.Finalizers = slices.DeleteFunc(c.Finalizers, func(f string) bool { return f == v1.TerminationFinalizer })
	deleting := c.DeletionTimestamp != nil
	s.must(s.client.Update(s.t.Context(), c))
	if !deleting {
		s.must(s.client.Delete(s.t.Context(), c))
	}
}

func number(text string) float64 {
	n, err := strconv.ParseFloat(text, 64)
	if err != nil {
		panic(err)
	}
	return n
}
