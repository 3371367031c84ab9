// SPDX-License-Identifier: Apache-2.0

package pack_test

import (
	"fmt"
	"strings"
	"testing"

	"karpenter/model"
	"karpenter/scenario"
	"karpenter/solve"
)

// preferring is 40 deployments of a hundred small pods each, with a preference
// on each. NAME stands for the name of the deployment.
func preferring(t *testing.T, preference string) *model.Snapshot {
	t.Helper()
	var b strings.Builder
	b.WriteString("pool general\n")
	for i, cpu := range []int{2, 4, 8, 16, 32, 64} {
		price := 0.04 * float64(int(1)<<i)
		fmt.Fprintf(&b, "type t%d cpu=%d mem=%dGi pods=110 zones=a,b,c spot=a:%.4f,b:%.4f,c:%.4f\n", cpu, cpu, 4*cpu, price, price*1.01, price*1.3)
	}
	for i := range 40 {
		name := fmt.Sprintf("app-%02d", i)
		fmt.Fprintf(&b, "pods %s-1..100 labels=app=%s cpu=%dm mem=%dMi %s\n", name, name, 100+7*i, 300+20*i, strings.ReplaceAll(preference, "NAME", name))
	}
	s, err := scenario.Parse(strings.NewReader(b.String()))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestPreferencesCostLittle plans for 4,000 pods that all prefer something
// expensive: to have a node each, an expensive zone, expensive nodes. Honored to the letter
// the first costs many times what it must (spec 20/120).
func TestPreferencesCostLittle(t *testing.T) {
	for _, preference := range []string{
		`anti="100: host of app=NAME"`,
		`spread="host soft of app=NAME"`,
		`prefer="50: zone=c"`,
		`prefer="50: type=t2" anti="1: host of app=NAME"`,
		`spread="zone soft of app=NAME; host soft of app=NAME"`,
	} {
		t.Run(preference, func(t *testing.T) {
			s := preferring(t, preference)
			p := model.DefaultPolicy()
			p.IgnorePreferences = true
			ignoring := solve.Decide(s, p)
			p.IgnorePreferences = false
			plan := solve.Decide(s, p)
			if len(plan.Verdicts) > 0 {
				t.Errorf("pending: %v", plan.Verdicts)
			}
			if float64(plan.Cost) > float64(ignoring.Cost)*(1+p.PreferencePremium) {
				t.Errorf("the plan costs $%f, $%f without preferences", plan.Cost.Dollars(), ignoring.Cost.Dollars())
			}
		})
	}
}

// TestCheapPreferencesAreHonoured has one deployment whose preference costs
// next to nothing beside many whose preference cannot be afforded.
func TestCheapPreferencesAreHonoured(t *testing.T) {
	s := preferring(t, `anti="100: host of app=NAME"`)
	cheap := s.Pending[0].Shape
	cheap.PodTerms = nil
	cheap.Preferences = []model.Preference{{Weight: 1, Term: model.NewRequirements(model.NewRequirement(model.LabelZone, model.In, "b"))}}
	plan := solve.Decide(s, model.DefaultPolicy())
	for _, l := range plan.Launches {
		for _, p := range l.Pods {
			if strings.HasPrefix(p.Name, "app-00-") && l.Zone != "b" {
				t.Errorf("%s prefers zone b, which costs 1 %% more, and is planned in %s", p.Name, l.Zone)
			}
		}
	}
}

// TestPodsAlikeAreApart counts how many pods of one deployment share a node
// when they would rather not: not one each, as the nodes would cost too much,
// but as few as costs little.
func TestPodsAlikeAreApart(t *testing.T) {
	for _, preference := range []string{`anti="100: host of app=NAME"`, `spread="host soft of app=NAME"`, ""} {
		most := 0
		for _, l := range solve.Decide(preferring(t, preference), model.DefaultPolicy()).Launches {
			alike := map[string]int{}
			for _, p := range l.Pods {
				deployment := p.Name[:len("app-00")]
				alike[deployment]++
				most = max(most, alike[deployment])
			}
		}
		if preference != "" && most > 32 || preference == "" && most <= 32 {
			t.Errorf("with %q, %d pods of one deployment share a node", preference, most)
		}
	}
}
