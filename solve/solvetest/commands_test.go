// SPDX-License-Identifier: Apache-2.0

package solvetest

import (
	"math/rand/v2"
	"strings"
	"testing"

	"karpenter/model"
	"karpenter/scenario"
)

// town is what the commands of TestCommands are about: prices are in dollars.
const town = `
type s cpu=2 mem=8Gi pods=10 zones=a,b spot=0.1 on-demand=0.2
type m cpu=4 mem=16Gi pods=10 zones=a,b spot=0.2 on-demand=a:0.4,b:0.7
type l cpu=8 mem=32Gi pods=20 zones=a,b spot=0.4 on-demand=0.8
pool p budgets=Empty:1,Drifted:2,Underutilized:3 limits=nodes:11
pool fair budgets=9 policy=Balanced
pool when budgets=9 policy=WhenEmpty
pool never budgets=9 consolidate-after=Never
pool fixed budgets=9 static=replicas:2 limits=nodes:3
node a1 pool=p type=l zone=a ct=on-demand consolidatable
node a2 pool=p type=m zone=a ct=on-demand consolidatable
node a3 pool=p type=s zone=a ct=spot consolidatable
node b1 pool=p type=l zone=a ct=on-demand consolidatable blocked=x
node b2 pool=p type=l zone=a ct=on-demand consolidatable held=x
node b3 pool=p type=l zone=a ct=on-demand drifted held=x deadline
node e1 pool=p type=s zone=a ct=spot empty consolidatable
node e2 pool=p type=s zone=a ct=spot empty consolidatable
node f1 pool=fair type=m zone=a ct=on-demand consolidatable disruption-cost=50
node f2 pool=fair type=l zone=a ct=on-demand disruption-cost=2
node g1 pool=p type=m zone=a ct=spot settling
node g2 pool=p type=m zone=a ct=spot registered
node g3 pool=p type=m zone=a ct=spot deleting
node own cpu=4 mem=8Gi pods=10 labels=zone=a
node q1 pool=never type=m zone=a ct=on-demand consolidatable
node q2 pool=when type=m zone=a ct=on-demand consolidatable
node x1 pool=fixed type=s zone=a ct=spot drifted
node x2 pool=fixed type=s zone=a ct=spot drifted
pods a1-1..2 cpu=1500m on=a1
pods a2-1 cpu=1500m on=a2
pods a3-1 cpu=1500m on=a3
pods b3-1 cpu=1500m on=b3
pods f1-1 cpu=1500m on=f1
pods q1-1 cpu=100m on=q1
pods q2-1 cpu=100m on=q2
`

// verdict is what the checker says of commands; want is part of it, "" = nothing.
type verdict struct{ name, commands, want string }

// verdicts are on commands that each break one rule. A command is "reason nodes:
// pods node, pods POOL:TYPE:CT; saves"; without saves it is what the prices say.
func verdicts() []verdict {
	return []verdict{
		{"delete", "Underutilized a2: a2-1 own", ""},
		{"several at once", "Underutilized a2 a3: a2-1 own, a3-1 own", ""},
		{"replace", "Underutilized a1: a1-1 a1-2 p:m:spot", ""},
		{"empty", "Empty e1", ""},
		{"drift", "Drifted b3: b3-1 p:s:on-demand", ""},
		{"static", "Drifted x1: - fixed:s:spot", ""},

		{"over budget", "Empty e1|Empty e2", "pool p loses 2 nodes, more than it allows as Empty"},
		{"over budget together", "Underutilized a2: a2-1 own|Empty e1", "pool p loses 2 nodes, more than it allows as Empty"},
		{"twice", "Underutilized a2: a2-1 own|Underutilized a2: a2-1 own", "a2 is removed twice"},
		{"out of order", "Underutilized a3 a2: a2-1 own, a3-1 own", "does not name its nodes in order"},
		{"no node", "Empty z9", "which is no node"},
		{"not ours", "Underutilized own", "is not ours"},
		{"blocked", "Underutilized b1", "which is blocked"},
		{"held", "Underutilized b2", "which is held"},
		{"held, and other reasons have no deadline", "Underutilized b3: b3-1 own", "which is held"},
		{"not drifted", "Drifted a2: a2-1 own", "which has not drifted"},
		{"not empty", "Empty a2: a2-1 own", "which is not empty"},
		{"not quiet", "Underutilized g1", "which is to be left alone"},
		{"never", "Underutilized q1: q1-1 own", "which is to be left alone"},
		{"only when empty", "Underutilized q2: q2-1 own", "goes only when it is empty"},
		{"going already", "Underutilized g3", "is not there yet, or no more"},
		{"of a static pool", "Underutilized x1", "is of a static pool"},
		{"static, for nothing", "Drifted x1", "is not one new node for one"},
		{"static, over its limit", "Drifted x1: - fixed:s:spot|Drifted x2: - fixed:s:spot", "could have 4 nodes, its limit is 3"},

		{"a pod without a place", "Underutilized a2", "has 0 places for default/a2-1"},
		{"a pod with two", "Underutilized a2: a2-1 own, a2-1 a1", "has 2 places for default/a2-1"},
		{"a pod of another node", "Underutilized a2: a2-1 own, a3-1 own", "default/a3-1, which is not on its nodes"},
		{"onto a node that settles", "Underutilized a2: a2-1 g1", "which is settling"},
		{"onto one that is not initialized", "Underutilized a2: a2-1 g2", "not initialized"},
		{"onto one that goes too", "Underutilized a2 a3: a2-1 a3, a3-1 own", "placed on node a3, which does not exist"},
		{"overfull", "Underutilized a1: a1-1 a1-2 a3", "a3 is overfull"},
		{"overfull together", "Underutilized a2: a2-1 own|Drifted b3: b3-1 own|Underutilized a3: a3-1 own", "own is overfull"},

		{"over the limit together", "Underutilized a1: a1-1 a1-2 p:m:spot|Drifted b3: b3-1 p:s:spot", "pool p could reach 12"},

		{"says it saves more", "Underutilized a2: a2-1 own; 0.5", "says it saves 500000000 of 400000000"},
		{"saves nothing", "Underutilized a2: a2-1 p:m:on-demand", "must save"},
		{"may cost more", "Underutilized a1: a1-1 a1-2 p:m:on-demand", ""},
		{"may cost more than that", "Underutilized a2: a2-1 p:s,m:on-demand", "may come to cost 700000000 instead of 400000000"},
		{"several capacity types", "Underutilized a1: a1-1 a1-2 p:m:on-demand,spot", "may become any of [on-demand spot]"},
		{"spot to spot", "Underutilized a3: a3-1 p:s:spot", "replaces spot by spot"},
		{"one like what goes", "Underutilized a1 a2: a1-1 a1-2 own, a2-1 p:m:on-demand", "might be another m for 400000000"},
		{"too little for what it disrupts", "Underutilized f1: f1-1 own", "scores 0.34"},
	}
}

func TestCommands(t *testing.T) {
	for _, c := range verdicts() {
		s, err := scenario.Parse(strings.NewReader(town))
		if err != nil {
			t.Fatal(err)
		}
		plan := &model.Plan{Commands: commandsOf(t, s, c.commands)}
		ch := newChecker(s, model.DefaultPolicy())
		ch.commands(plan)
		got := ""
		for _, w := range ch.wrong {
			if !strings.Contains(w, "does not say why") {
				got += w + "\n"
			}
		}
		if (c.want == "") != (got == "") || !strings.Contains(got, c.want) {
			t.Errorf("%s: got %q, want %q", c.name, got, c.want)
		}
	}
}

// commandsOf reads commands with "|" between them.
func commandsOf(t *testing.T, s *model.Snapshot, text string) []model.Command {
	c := newChecker(s, model.DefaultPolicy())
	var out []model.Command
	for one := range strings.SplitSeq(text, "|") {
		one, savings, told := strings.Cut(one, ";")
		head, places, _ := strings.Cut(one, ":")
		words := strings.Fields(head)
		cmd := model.Command{Reason: model.Reason(words[0])}
		for _, name := range words[1:] {
			cmd.Nodes = append(cmd.Nodes, model.Target{Node: name})
			if n := c.node(name); n != nil {
				cmd.Nodes[len(cmd.Nodes)-1].Claim = n.Claim
				cmd.Cost += n.Price
				if c.pool(n.Pool) != nil && c.pool(n.Pool).Disruption.Policy == model.Balanced {
					cmd.Scores = append(cmd.Scores, c.scoreOf(n))
				}
			}
		}
		cmd.Savings = cmd.Cost
		place(c, &cmd, places)
		if told {
			var err error
			if cmd.Savings, err = scenario.ParsePrice(strings.TrimSpace(savings)); err != nil {
				t.Fatal(err)
			}
		}
		out = append(out, cmd)
	}
	return out
}

// place reads "pods node" or "pods POOL:TYPES:CTS", several with ", " between
// them; "-" is no pod.
func place(c *checker, cmd *model.Command, text string) {
	for part := range strings.SplitSeq(text, ", ") {
		words := strings.Fields(part)
		if len(words) == 0 {
			continue
		}
		var pods []model.Pod
		to := words[len(words)-1]
		for _, w := range words[:len(words)-1] {
			if w != "-" {
				pods = append(pods, model.Pod{Namespace: "default", Name: w, UID: "default/" + w})
			}
		}
		f := strings.Split(to, ":")
		if len(f) == 1 {
			for _, p := range pods {
				cmd.Moves = append(cmd.Moves, model.Placement{Pod: p, Node: to})
			}
			continue
		}
		l := model.Launch{Pool: f[0], Types: strings.Split(f[1], ","), CapacityTypes: strings.Split(f[2], ","), Pods: pods,
			Requirements: c.pool(f[0]).Requirements}
		l.Type, l.CapacityType, l.Zone, l.Price = l.Types[0], l.CapacityTypes[0], "a", -1
		for _, o := range outcomes(c.pool(f[0]), &l) {
			if l.Price < 0 || o.offer.Price < l.Price {
				l.Price = o.offer.Price
			}
		}
		cmd.Launches, cmd.Savings = append(cmd.Launches, l), cmd.Savings-l.Price
	}
}

// TestDeletable: a3 has room for neither pod, so what fits goes to own; f1 is
// not worth it.
func TestDeletable(t *testing.T) {
	s, err := scenario.Parse(strings.NewReader(town))
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(Deletable(s, model.DefaultPolicy()), " "); got != "a1 a2 a3 e1 e2" {
		t.Errorf("could go: %s", got)
	}
}

// TestApply: what a plan says is there afterwards, and nothing else.
func TestApply(t *testing.T) {
	s, err := scenario.Parse(strings.NewReader(town))
	if err != nil {
		t.Fatal(err)
	}
	plan := &model.Plan{Commands: commandsOf(t, s, "Underutilized a1: a1-1 p:m:spot, a1-2 own|Empty e1|Drifted x1: - fixed:s:spot")}
	next := Apply(rand.New(rand.NewPCG(1, 1)), s, plan)
	c := newChecker(next, model.DefaultPolicy())
	for _, name := range []string{"a1", "e1", "x1", "g3"} {
		if c.node(name) != nil {
			t.Errorf("%s is still there", name)
		}
	}
	own := c.node("own")
	if len(own.Movable) != 1 || own.Requested.At(model.CPU) != 1500 {
		t.Errorf("own runs %+v", own.Movable)
	}
	kinds := map[string]int{}
	for _, n := range next.Nodes {
		if strings.HasPrefix(n.Name, "launched") {
			kind, _ := n.Labels.Value(model.LabelInstanceType)
			kinds[n.Pool+" "+kind] += 1 + len(n.Movable)
		}
	}
	if len(kinds) != 2 || kinds["p m"] != 2 || kinds["fixed s"] != 1 {
		t.Errorf("launched are %v", kinds)
	}
	if got, want := Spent(s)-Spent(next), (800+100+200-200)*model.Dollar/1000; got != want {
		t.Errorf("the nodes cost %d less, want %d", got, want)
	}
	if len(next.Pending) != 0 || len(s.Nodes) != 18 {
		t.Errorf("pending are %v, and there were %d nodes", next.Pending, len(s.Nodes))
	}
}
