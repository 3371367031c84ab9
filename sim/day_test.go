// SPDX-License-Identifier: Apache-2.0

package sim_test

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"karpenter/model"
	"karpenter/scenario"
	"karpenter/sim/script"
	"karpenter/sim/trial"
	"karpenter/sim/upstream"
	"karpenter/solve"
)

var dayArgs = flag.String("day-args", "", "flags of the controller on that day, separated by blanks")

var upstreamsRules = flag.String("upstream", "", "decide by upstream's rules on that day: WhenEmptyOrUnderutilized or Balanced")

var hours = flag.Int("hours", 0, "how long the day is after it has settled; 24 takes many minutes")

// settling is not counted: the cluster is made in it.
const settling = 30 * time.Minute

// TestDay reports what consolidation costs and saves in a steady cluster.
func TestDay(t *testing.T) {
	if testing.Short() {
		t.Skip("a day is long")
	}
	text, err := os.ReadFile("testdata/day.script")
	if err != nil {
		t.Fatal(err)
	}
	s, err := script.Parse(string(text))
	if err != nil {
		t.Fatal(err)
	}
	s.Run = settling + time.Duration(*hours)*time.Hour
	server, err := trial.NewServer()
	if err != nil {
		t.Fatal(err)
	}
	ledger := trial.NewLedger(settling)
	c := trial.Trial{Server: server, Script: s, Witness: ledger, Steps: 50_000_000, Calm: true, Args: strings.Fields(*dayArgs)}
	if *upstreamsRules != "" { // the laws are ours
		c.Planner, c.Lawless = &upstream.Rules{}, true
		for i := range s.Pools {
			s.Pools[i].Policy = *upstreamsRules
		}
	}
	if *verbose {
		c.Transcript = os.Stdout
	}
	v := c.Hold(t)
	if v.Err != nil {
		t.Errorf("after %s: %v", v.Lasted, v.Err)
	}
	plan, err := fresh(s)
	if err != nil {
		t.Fatal(err)
	}
	fmt.Printf("%s%-44s %.4f, with proof that nothing is below %.4f\n", ledger, "dollars per hour, planned from nothing", plan.Cost.Dollars(), plan.Bound.Dollars())
	fmt.Printf("%-44s %d steps, %d calls\n", "the run", v.Steps, v.Calls)
}

// fresh plans what the script wants from nothing.
func fresh(s *script.Script) (*model.Plan, error) {
	var b strings.Builder
	for _, t := range s.Types {
		fmt.Fprintf(&b, "type %s cpu=%s mem=%s zones=%s on-demand=%v overhead=cpu:100m,memory:256Mi\n", t.Name, t.CPU, t.Mem, strings.Join(t.Zones, ","), t.Price)
	}
	for _, p := range s.Pools {
		fmt.Fprintf(&b, "pool %s\n", p.Name)
	}
	for _, w := range s.Pods {
		fmt.Fprintf(&b, "pods %s-1..%d cpu=%s mem=%s labels=app=%s", w.Name, w.Count, w.CPU, w.Mem, w.Name)
		if w.Apart == "node" {
			fmt.Fprintf(&b, " anti=\"host of app=%s\"", w.Name)
		}
		if w.Spread == "zone" {
			fmt.Fprintf(&b, " spread=\"zone of app=%s\"", w.Name)
		}
		b.WriteByte('\n')
	}
	snapshot, err := scenario.Parse(strings.NewReader(b.String()))
	if err != nil {
		return nil, fmt.Errorf("%w\n%s", err, &b)
	}
	return solve.Decide(snapshot, model.DefaultPolicy()), nil
}
