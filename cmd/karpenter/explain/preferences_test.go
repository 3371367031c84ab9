// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"fmt"
	"strings"
	"testing"

	"karpenter/model"
	"karpenter/scenario"
)

// TestForgoneSpread: pods in one zone do not get a preferred topology spread if another
// domain has fewer. Domains are those of nodes, and those in which nodes can be launched.
// Which nodes count depends on the selector and the policies of the constraint.
func TestForgoneSpread(t *testing.T) {
	const honor = "honor-taints of app=web"
	for _, c := range []struct {
		name, other, spread string
		without             int
	}{
		{"no other domain", "", "of app=web", 0},
		{"NodePool in another zone", "pool other labels=team=a requires=zone=b", "of app=web", 3},
		{"within maxSkew", "pool other labels=team=a requires=zone=b", "skew=3 of app=web", 0},
		{"too few domains", "", "min=2 of app=web", 3},
		{"empty selector", "pool other labels=team=a requires=zone=b", "of any", 0},
		{"NodePool without available offering", "pool other labels=team=a requires=zone=c", "of app=web", 0},
		{"NodePool that launches nothing", `pool other labels=team=a requires=zone=b unavailable="not ready"`, "of app=web", 0},
		{"NodePool that excludes the type there", "pool other labels=team=a requires=zone=b,type=small", "of app=web", 0},
		{"NodePool that the selector excludes", "pool other requires=zone=b labels=team=c", "of app=web", 0},
		{"NodePool that the selector excludes, any node", "pool other requires=zone=b labels=team=c", "any-node of app=web", 3},
		{"tainted NodePool, taints ignored", "pool other labels=team=a requires=zone=b taints=ci:NoSchedule", "of app=web", 3},
		{"tainted NodePool", "pool other labels=team=a requires=zone=b taints=ci:NoSchedule", honor, 0},
		{"tainted NodePool, tolerated", "pool other labels=team=a requires=zone=b taints=web:NoSchedule", honor, 3},
		{"NodePool with a soft taint", "pool other labels=team=a requires=zone=b taints=ci:PreferNoSchedule", honor, 3},
		{"node in another zone", "node n type=large zone=b ct=spot labels=team=a", "of app=web", 3},
		{"node with enough pods", "node n type=large zone=b ct=spot labels=team=a\npods run-1..2 cpu=1 labels=app=web on=n", "of app=web", 0},
		{"node that the selector excludes", "node n type=large zone=b ct=spot labels=team=c", "of app=web", 0},
		{"node without the label of the selector", "well-known team\nnode n type=large zone=b ct=spot", "of app=web", 0},
		{"tainted node, taints ignored", "node n type=large zone=b ct=spot labels=team=a taints=ci:NoSchedule", "of app=web", 3},
		{"tainted node", "node n type=large zone=b ct=spot labels=team=a taints=ci:NoSchedule", honor, 0},
		{"node that is gone soon", "node n type=large zone=b ct=spot labels=team=a deleting", "of app=web", 0},
		{"node that a pod keeps", "node n type=large zone=b ct=spot labels=team=a deleting stuck", "of app=web", 3},
		{"closed node", "node n type=large zone=b ct=spot labels=team=a closed", "of app=web", 3},
	} {
		s, err := scenario.Parse(strings.NewReader(fmt.Sprintf(`
type small cpu=2 mem=8Gi zones=a on-demand=0.1
type large cpu=8 mem=32Gi zones=a,b,c spot=a:0.1,b:0.1,c:0.1!
pool general requires="zone=a, team In [a b]"
node here type=large zone=a ct=spot labels=team=a
pods web-1..3 cpu=1 labels=app=web select="team In [a b]" tolerate=web spread="zone soft %s"
%s
`, c.spread, c.other)))
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		plan := &model.Plan{}
		for _, p := range s.Pending[0].Pods {
			plan.Placements = append(plan.Placements, model.Placement{Pod: p, Node: "here"})
		}
		without := 0
		for _, f := range AllForgone(s, plan) {
			without += f.Preferences[0].Without
		}
		if without != c.without {
			t.Errorf("%s: %d pods do not get the spread, want %d", c.name, without, c.without)
		}
	}
}
