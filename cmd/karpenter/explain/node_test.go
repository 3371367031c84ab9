// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"encoding/json"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"karpenter/model"
	"karpenter/scenario"
)

const cluster = `
type small cpu=2 mem=8Gi zones=a spot=0.03 on-demand=0.1
pool general requires="zone In [a]"
node n1 claim=c1 pool=general type=small zone=a ct=spot drifted=2h deadline
pods web-1..7 cpu=10m on=n1
node n2 claim=c2 pool=general type=small zone=a ct=spot
node n3 pool=general type=small zone=a ct=spot registered blocked="the node is not initialized"
node n4 pool=general type=small zone=a ct=spot settling held="pod default/a has the annotation karpenter.sh/do-not-disrupt" blocked="the node is nominated for a pending pod"
`

// TestNodeText is about plans that are rare, made by hand, and sent as JSON.
func TestNodeText(t *testing.T) {
	s, err := scenario.Parse(strings.NewReader(cluster))
	if err != nil {
		t.Fatal(err)
	}
	s.Pools[0].Disruption.Allowed = map[model.Reason]int{model.Empty: 0, model.Drifted: math.MaxInt32 - 3, model.Underutilized: 2}
	s.Now = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	moving := s.Nodes[0].Movable[0].Pods
	plan := &model.Plan{
		Commands: []model.Command{{
			Reason: model.Drifted, Nodes: []model.Target{{Node: "n1", Claim: "c1"}, {Node: "n2", Claim: "c2"}},
			Launches: []model.Launch{{Pool: "general", Type: "small", Zone: "a", CapacityType: "on-demand", Price: model.Dollar / 10, Pods: moving[:1]}},
			Moves:    []model.Placement{{Pod: model.Pod{Namespace: "default", Name: "of-n2"}, Node: "n4"}},
			Cost:     6 * model.Dollar / 100, Savings: -4 * model.Dollar / 100,
			Scores: []model.Score{{Pool: "general", Value: 1.25, Savings: 0.1, Disruption: 0.08}},
		}},
		Stays: []model.Stay{{Node: "n4", Reason: model.Empty, Cause: model.ByNode, Why: "the node is nominated for a pending pod"}},
	}
	for _, p := range moving[1:] {
		plan.Commands[0].Moves = append(plan.Commands[0].Moves, model.Placement{Pod: p, Node: "n4"})
	}
	for name, want := range map[string]string{
		"n1": `node n1 will be disrupted: Drifted
  nodepool   general
  nodeclaim  c1
  type       small spot a $0.03/h
  pods       7 to move
  drifted    since 2025-12-31T22:00:00Z
  allowed    0 as Empty, any number as Drifted, 2 as Underutilized
  with       n2
  replaced   by a new small on-demand a $0.1/h in nodepool general
  pays       $0.04/h ($29/month) more than $0.06/h
  score      1.25 in nodepool general: 10% of its cost for 8% of its disruption

its pods
  default/web-2, default/web-3, default/web-4, default/web-5, default/web-6 and 1 more → node n4
  default/web-1 → a new small
`,
		"n3": `node n3 stays
  nodepool   general
  type       small spot a $0.03/h
  pods       none to move
  allowed    0 as Empty, any number as Drifted, 2 as Underutilized

why
  the node is not initialized
`,
		"n4": `node n4 stays
  nodepool   general
  type       small spot a $0.03/h
  pods       none to move
  allowed    0 as Empty, any number as Drifted, 2 as Underutilized

why
  the node is nominated for a pending pod
  pod default/a has the annotation karpenter.sh/do-not-disrupt
  not as Underutilized: a pod was added or removed within consolidateAfter of NodePool "general"
`,
	} {
		a, found := OfNode(s, plan, name)
		sent, err := json.Marshal(a)
		if err != nil || !found {
			t.Fatal(err, found)
		}
		var got NodeAnswer
		if err := json.Unmarshal(sent, &got); err != nil {
			t.Fatal(err)
		}
		var out strings.Builder
		if err := got.Text(&out); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, out.String()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
