// SPDX-License-Identifier: Apache-2.0

package sim_test

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"karpenter/cloud/aws/awsfake"
	"karpenter/sim"
	"karpenter/sim/amazon"
	"karpenter/sim/microsoft"
	"karpenter/sim/script"
	"karpenter/sim/store"
	"karpenter/sim/trial"
)

var fleetSize = flag.Int("nodes", 50, "how many nodes TestCallsToAWS launches at once")

const (
	// The pods come when the EC2NodeClass is ready; their nodes have launched and
	// joined long before the hour begins, which is counted apart.
	podsCome  = 2 * time.Minute
	idleBegin = 30 * time.Minute
	idleEnd   = idleBegin + time.Hour
)

// meter is a law that nothing breaks: it counts calls to AWS by what they are
// for.
type meter struct {
	account interface{ Calls() map[string]int }
	began   map[string]int // calls before the pods came
	busy    map[string]int // until the last node was ready
	ready   time.Duration  // since the pods came
	idle    map[string]int // in the hour
	before  map[string]int // the hour
	byBusy  map[string]int // busy and idle by operation and controller
	byIdle  map[string]int
	refused map[string]int
	want    int
}

func (m *meter) Name() string { return "meter" }

func (m *meter) Check(s *sim.Seen) error {
	at := s.Now.Sub(s.Started)
	if at < podsCome {
		m.began = m.account.Calls()
	}
	for _, c := range s.Calls {
		if c.Target != sim.Cloud {
			continue
		}
		switch what := c.Verb + " by " + c.By; {
		case at >= idleBegin:
			m.byIdle[what]++
		case at >= podsCome && m.busy == nil:
			m.byBusy[what]++
		}
		if c.Err != nil && !strings.Contains(c.Err.Error(), "DryRunOperation") {
			m.refused[c.Verb]++
		}
	}
	if at < idleBegin {
		m.before = m.account.Calls()
	}
	if m.busy == nil && m.allReady(s) {
		m.busy, m.ready = less(m.account.Calls(), m.began), at-podsCome
	}
	return nil
}

// allReady reports whether all nodes are there.
func (m *meter) allReady(s *sim.Seen) bool {
	changed := slices.ContainsFunc(s.Changes, func(c store.Change) bool { return c.Kind == "Node" })
	if !changed {
		return false
	}
	n := 0
	for node := range store.All[*corev1.Node](s.API) {
		if slices.ContainsFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool {
			return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
		}) {
			n++
		}
	}
	return n >= m.want
}

func (m *meter) End(*sim.Seen) error {
	m.idle = less(m.account.Calls(), m.before)
	return nil
}

func less(a, b map[string]int) map[string]int {
	out := map[string]int{}
	for name, n := range a {
		if n > b[name] {
			out[name] = n - b[name]
		}
	}
	return out
}

// TestCallsToAWS counts the calls it takes to launch nodes at once and to keep
// them for an hour. With -nodes=1000 it prints the table of docs/aws-calls.md.
func TestCallsToAWS(t *testing.T) {
	n := *fleetSize
	s, err := script.Parse(fmt.Sprintf(`seed 1
run %s rest 0s
type m5.large cpu=2 mem=8Gi price=0.096 zones=us-west-2a,us-west-2b,us-west-2c
pool general policy=WhenEmpty after=Never
pods web count=1 cpu=1200m mem=1Gi apart=node
at %s scale web %d
`, idleEnd, podsCome, n+1))
	if err != nil {
		t.Fatal(err)
	}
	server, err := trial.NewServer()
	if err != nil {
		t.Fatal(err)
	}
	m := &meter{want: n + 1, byBusy: map[string]int{}, byIdle: map[string]int{}, refused: map[string]int{}}
	c := trial.Trial{
		Server: server, Script: s, Witness: m, Steps: 50_000_000, Free: true, Lawless: true,
		Amazon:  &amazon.Config{Limits: awsfake.RealLimits()},
		Account: func(a *amazon.Account) { m.account = a },
	}
	if *verbose {
		c.Transcript = os.Stdout
	}
	v := c.Hold(t)
	if v.Err != nil {
		t.Fatalf("after %s: %v", v.Lasted, v.Err)
	}
	m.bounds(t, n)
	m.print(n, v.Steps)
}

// print writes the calls of each part of the run.
func (m *meter) print(n, steps int) {
	fmt.Printf("%d nodes were ready after %s; %d steps\n", n, m.ready, steps)
	for _, part := range []struct {
		name string
		of   map[string]int
	}{{"until the pods come", m.began}, {"from pods to ready nodes", m.busy}, {"of these, by", m.byBusy}, {"an hour with the nodes", m.idle}, {"of these, by", m.byIdle}, {"refused, in all", m.refused}} {
		sum := 0
		fmt.Printf("\n%s:\n", part.name)
		for _, name := range slices.Sorted(maps.Keys(part.of)) {
			fmt.Printf("%8d %s\n", part.of[name], name)
			sum += part.of[name]
		}
		fmt.Printf("%8d in all\n", sum)
	}
}

// bounds are what the calls must stay within, for n nodes.
func (m *meter) bounds(t *testing.T, n int) {
	t.Helper()
	pages := 1 + n/1000
	for _, b := range []struct {
		what string
		made int
		most int
	}{
		{"fleets for the launch, in two Spot pools", m.busy["CreateFleet"], 2 + n/500},
		{"templates for the launch", m.busy["CreateLaunchTemplate"], 20},
		{"instances described for drift, as they are launched", m.byBusy["DescribeInstances by nodeclaim.disruption"], 1 + n/250},
		{"instances listed in an idle hour", m.idle["DescribeInstances"], 32*pages + n/250},
		{"all calls of an idle hour", sum(m.idle) - m.idle["CreateTags"] - m.byIdle["DescribeInstances by nodeclaim.tagging"], 700 + n/10},
	} {
		if b.made > b.most {
			t.Errorf("%s: %d calls, want %d at most", b.what, b.made, b.most)
		}
	}
	if m.ready == 0 || m.busy["CreateFleet"] == 0 {
		t.Errorf("ready after %s, with calls %v", m.ready, m.busy)
	}
}

func sum(calls map[string]int) int {
	n := 0
	for _, c := range calls {
		n += c
	}
	return n
}

// TestCallsToAzure is TestCallsToAWS for the provider for AKS.
func TestCallsToAzure(t *testing.T) {
	n := *fleetSize
	s, err := script.Parse(fmt.Sprintf(`seed 1
run %s rest 0s
type m2 cpu=2 mem=8Gi price=0.096 zones=a,b,c
pool general policy=WhenEmpty after=Never
pods web count=1 cpu=1200m mem=1Gi apart=node
at %s scale web %d
`, idleEnd, podsCome, n+1))
	if err != nil {
		t.Fatal(err)
	}
	server, err := trial.NewServer()
	if err != nil {
		t.Fatal(err)
	}
	m := &meter{want: n + 1, byBusy: map[string]int{}, byIdle: map[string]int{}, refused: map[string]int{}}
	c := trial.Trial{
		Server: server, Script: s, Witness: m, Steps: 50_000_000, Free: true, Lawless: true,
		Microsoft:    trial.TranslateToAzure(s),
		Subscription: func(s *microsoft.Subscription) { m.account = s },
	}
	if *verbose {
		c.Transcript = os.Stdout
	}
	v := c.Hold(t)
	if v.Err != nil {
		t.Fatalf("after %s: %v", v.Lasted, v.Err)
	}
	for _, b := range []struct {
		what       string
		made, most int
	}{
		{"requests for machines", m.busy[microsoft.Create], n},
		{"all calls of the launch", sum(m.busy), 3*n + 100},
		{"all calls of an idle hour", sum(m.idle), 200},
	} {
		if b.made > b.most {
			t.Errorf("%s: %d calls, want %d at most", b.what, b.made, b.most)
		}
	}
	if m.ready == 0 || m.busy[microsoft.Create] == 0 {
		t.Errorf("ready after %s, with calls %v", m.ready, m.busy)
	}
	m.print(n, v.Steps)
}
