// SPDX-License-Identifier: Apache-2.0

package v1_test

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "karpenter/api/v1"
)

const (
	underutilized = v1.DisruptionReasonUnderutilized
	empty         = v1.DisruptionReasonEmpty
	drifted       = v1.DisruptionReasonDrifted
)

// scheduled returns a budget with a schedule.
func scheduled(nodes, schedule, duration string, reasons ...v1.DisruptionReason) v1.Budget {
	d, err := time.ParseDuration(duration)
	if err != nil {
		panic(err)
	}
	return v1.Budget{Nodes: nodes, Schedule: &schedule, Duration: &metav1.Duration{Duration: d}, Reasons: reasons}
}

// always returns a budget without a schedule.
func always(nodes string, reasons ...v1.DisruptionReason) v1.Budget {
	return v1.Budget{Nodes: nodes, Reasons: reasons}
}

// at parses a time such as "2024-01-01 12:00 +0100".
func at(text string) time.Time {
	t, err := time.Parse("2006-01-02 15:04 -0700", text)
	if err != nil {
		panic(err)
	}
	return t
}

func TestPoolAllowedDisruptions(t *testing.T) {
	noon := at("2024-06-15 12:00 +0000")
	six := []v1.Budget{
		always("10"),
		always("100%", underutilized),
		scheduled("1", "@yearly", "20m"), // not active in June
		scheduled("15", "@daily", "24h", empty, drifted),
		always("5%", drifted),
		always("4", empty),
	}
	inactive := []v1.Budget{scheduled("1", "@yearly", "20m"), scheduled("2", "0 0 * * *", "1h")}
	for _, c := range []struct {
		name    string
		budgets []v1.Budget
		reason  v1.DisruptionReason
		nodes   int
		want    int
		err     string
	}{
		{name: "spec 10/15 empty", budgets: six, reason: empty, nodes: 100, want: 4},
		{name: "spec 10/15 drifted", budgets: six, reason: drifted, nodes: 100, want: 5},
		{name: "spec 10/15 underutilized", budgets: six, reason: underutilized, nodes: 100, want: 10},
		{name: "spec 10/16 all inactive", budgets: inactive, reason: empty, nodes: 100, want: v1.UnlimitedDisruptions},
		{name: "no budgets", reason: empty, nodes: 100, want: v1.UnlimitedDisruptions},
		{name: "reasons empty, not nil", budgets: []v1.Budget{{Nodes: "0", Reasons: []v1.DisruptionReason{}}}, reason: empty, nodes: 9, want: v1.UnlimitedDisruptions},
		{name: "percentage rounds up", budgets: []v1.Budget{always("10%")}, reason: empty, nodes: 11, want: 2},
		{name: "percentage of none", budgets: []v1.Budget{always("10%")}, reason: empty, nodes: 0, want: 0},
		{name: "spec 10/17 bad macro", budgets: []v1.Budget{scheduled("10", "@wrongly", "20m")}, reason: empty, nodes: 100, err: "budgets[0]: schedule \"@wrongly\""},
		{name: "spec 10/18 bad nodes", budgets: []v1.Budget{always("1000a%")}, reason: empty, nodes: 100, err: "budgets[0]: nodes \"1000a%\""},
		{name: "spec 10/18 bad nodes while inactive", budgets: []v1.Budget{scheduled("x", "@yearly", "20m")}, reason: empty, nodes: 100, err: "nodes \"x\""},
		{name: "spec 10/21 inverted range", budgets: []v1.Budget{scheduled("1", "0 0 * * tue-mon", "20m")}, reason: empty, nodes: 100, err: "beyond end of range"},
		{name: "one bad budget of another reason closes all", budgets: []v1.Budget{always("5"), always("?", drifted)}, reason: empty, nodes: 100, err: "budgets[1]"},
	} {
		t.Run(c.name, func(t *testing.T) {
			pool := v1.NodePool{Spec: v1.NodePoolSpec{Disruption: v1.Disruption{Budgets: c.budgets}}}
			got, err := pool.AllowedDisruptions(noon, c.nodes, c.reason)
			if (err != nil) != (c.err != "") || err != nil && !strings.Contains(err.Error(), c.err) {
				t.Fatalf("error %v, want %q", err, c.err)
			}
			if got != c.want {
				t.Errorf("got %d, want %d", got, c.want)
			}
		})
	}
}

func TestBudgetIsActive(t *testing.T) {
	for _, c := range []struct {
		name, schedule, duration, at string
		want                         bool
	}{
		{"spec 10/19 spec 40/22 local midnight is not UTC midnight", "@daily", "30m", "2024-06-15 00:00 +0100", false},
		{"spec 10/19 UTC midnight", "@daily", "30m", "2024-06-15 01:00 +0100", true},
		{"spec 10/20 first day of the year", "@yearly", "24h", "2024-01-01 12:00 +0000", true},
		{"spec 10/20 spec 40/22 longer than its period", "@daily", "48h", "2024-06-15 17:23 +0000", true},
		{"spec 10/20 spec 40/22 Sunday before dawn", "30 6 * * SUN", "6h", "2024-06-16 00:00 +0000", false},
		{"Sunday morning", "30 6 * * SUN", "6h", "2024-06-16 06:30 +0000", true},
		{"spec 40/22 just before the end", "0 0 * * *", "1h", "2024-06-15 00:59 +0000", true},
		{"exactly at the end", "0 0 * * *", "1h", "2024-06-15 01:00 +0000", false},
		{"a day that never comes", "0 0 30 2 *", "1h", "2024-06-15 00:00 +0000", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			budget := scheduled("1", c.schedule, c.duration)
			got, err := budget.IsActive(at(c.at))
			if err != nil || got != c.want {
				t.Errorf("got %v, %v", got, err)
			}
		})
	}
	half := v1.Budget{Nodes: "1", Duration: &metav1.Duration{}}
	if _, err := half.IsActive(at("2024-06-15 00:00 +0000")); err == nil {
		t.Error("a duration without a schedule was accepted")
	}
}

// FuzzBudget holds the laws: no text panics, an error allows nothing, and no
// budget allows a negative number.
func FuzzBudget(f *testing.F) {
	f.Add("10%", "@daily", int64(time.Hour), int64(1e9), 100)
	f.Add("1000a%", "30 6 * * SUN", int64(0), int64(0), 0)
	f.Add("99999999999999999999", "TZ=x * * * * *", int64(-1), int64(1), 1)
	f.Fuzz(func(t *testing.T, nodes, schedule string, duration, now int64, numNodes int) {
		if numNodes < 0 || numNodes > 1<<20 {
			return
		}
		budget := v1.Budget{Nodes: nodes, Schedule: &schedule, Duration: &metav1.Duration{Duration: time.Duration(duration)}}
		allowed, err := budget.AllowedDisruptions(time.Unix(now%(1<<33), 0), numNodes)
		if err != nil && allowed != 0 {
			t.Errorf("allows %d despite %v", allowed, err)
		}
		if allowed < 0 || allowed > v1.UnlimitedDisruptions {
			t.Errorf("allows %d", allowed)
		}
	})
}
