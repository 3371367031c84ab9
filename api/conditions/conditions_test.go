// SPDX-License-Identifier: Apache-2.0

package conditions_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"karpenter/api/conditions"
)

// object is the least that conditions can be kept on.
type object struct {
	metav1.ObjectMeta
	conditions []metav1.Condition
}

func (o *object) GetConditions() []metav1.Condition   { return o.conditions }
func (o *object) SetConditions(cs []metav1.Condition) { o.conditions = cs }

var _ conditions.Object = (*object)(nil)

// TestTranscripts runs one object with the dependents Launched, Registered and
// Initialized through a list of commands per step. Times are seconds since the
// object was created. Every step prints the stored conditions in order.
func TestTranscripts(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		o := &object{}
		kind := conditions.Kind{Dependents: []string{"Launched", "Registered", "Initialized"}}
		origin := time.Date(2024, 2, 29, 12, 0, 0, 0, time.UTC)
		o.CreationTimestamp = metav1.NewTime(origin)
		o.Generation = 1
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			var at int
			d.ScanArgs(t, "at", &at)
			var out strings.Builder
			for line := range strings.Lines(d.Input) {
				now := origin.Add(time.Duration(at) * time.Second)
				run(t, &out, o, kind, now, strings.Fields(line))
			}
			for _, c := range o.conditions {
				fmt.Fprintf(&out, "%3.0fs gen=%d %s=%s %s", c.LastTransitionTime.Sub(origin).Seconds(), c.ObservedGeneration, c.Type, c.Status, c.Reason)
				if c.Message != "" {
					fmt.Fprintf(&out, " (%s)", c.Message)
				}
				out.WriteByte('\n')
			}
			return out.String()
		})
	})
}

// run executes one command: it opens the set, so even "open" has effects.
func run(t *testing.T, out *strings.Builder, o *object, kind conditions.Kind, now time.Time, words []string) {
	t.Helper()
	arg := func(i int) string {
		if i < len(words) {
			return words[i]
		}
		return ""
	}
	changed := true
	switch arg(0) {
	case "generation":
		n, err := strconv.ParseInt(arg(1), 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		o.Generation = n
		return
	case "forget":
		o.conditions = o.conditions[1:]
		return
	}
	set := conditions.For(o, kind, now)
	switch arg(0) {
	case "open":
	case "true":
		changed = set.SetTrue(arg(1))
	case "false":
		changed = set.SetFalse(arg(1), arg(2), "")
	case "unknown":
		changed = set.SetUnknown(arg(1))
	case "clear":
		if err := set.Clear(arg(1)); err != nil {
			fmt.Fprintf(out, "error: %v\n", err)
		}
	default:
		t.Fatalf("unknown command %q", words)
	}
	if !changed {
		fmt.Fprintf(out, "no change by %q\n", strings.Join(words, " "))
	}
}

func TestReaders(t *testing.T) {
	o := &object{conditions: []metav1.Condition{
		{Type: "A", Status: metav1.ConditionTrue},
		{Type: "B", Status: metav1.ConditionFalse},
	}}
	for _, c := range []struct {
		name      string
		got, want bool
	}{
		{"true", conditions.IsTrue(o, "A"), true},
		{"all must be true", conditions.IsTrue(o, "A", "B"), false},
		{"absent is not true", conditions.IsTrue(o, "C"), false},
		{"false", conditions.IsFalse(o, "B"), true},
		{"absent is not false", conditions.IsFalse(o, "C"), false},
	} {
		if c.got != c.want {
			t.Errorf("%s: got %v", c.name, c.got)
		}
	}
	conditions.Get(o, "A").Reason = "changed"
	if o.conditions[0].Reason != "" {
		t.Error("Get returned the stored condition, not a copy")
	}
}
