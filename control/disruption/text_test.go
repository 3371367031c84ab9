// SPDX-License-Identifier: Apache-2.0

package disruption

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	v1 "karpenter/api/v1"
)

// TestDisruptionCommandText runs the cases in testdata.
func TestDisruptionCommandText(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		s := newStage(t)
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			if d.Cmd == "stage" {
				s = newStage(t)
			}
			s.t = t
			return s.command(d)
		})
	})
}

func (s *stage) command(d *datadriven.TestData) string {
	first := ""
	if len(d.CmdArgs) > 0 {
		first = d.CmdArgs[0].Key
	}
	switch d.Cmd {
	case "stage", "add":
		for _, line := range strings.Split(d.Input, "\n") {
			s.declare(line)
		}
	case "pass":
		return s.pass()
	case "wait":
		step, err := time.ParseDuration(first)
		s.must(err)
		s.clock.Step(step)
	case "buffer": // node: a CapacityBuffer keeps capacity on it; without a node, on none
		s.buffered = first
	case "block": // a node, with the reason as input
		s.blocked[first] = d.Input
	case "fail": // delete, conflict (of an object) or nothing
		s.staled = ""
		if len(d.CmdArgs) > 1 {
			s.staled = d.CmdArgs[1].Key
		}
		s.broken = first == "delete"
		s.stale.Store(first == "conflict")
	case "budget": // pool value
		p := &v1.NodePool{}
		s.must(s.client.Get(s.t.Context(), types.NamespacedName{Name: first}, p))
		p.Spec.Disruption.Budgets = []v1.Budget{{Nodes: d.CmdArgs[1].Key}}
		s.must(s.client.Update(s.t.Context(), p))
	case "remove": // kind name
		name := metav1.ObjectMeta{Name: d.CmdArgs[1].Key}
		switch first {
		case "claim":
			s.lose(name.Name)
		case "pool":
			s.must(s.client.Delete(s.t.Context(), &v1.NodePool{ObjectMeta: name}))
		case "pod":
			name.Namespace = "default"
			s.must(s.client.Delete(s.t.Context(), &corev1.Pod{ObjectMeta: name}))
		default:
			s.t.Fatalf("unknown kind %s", first)
		}
	case "delete-claim":
		s.must(s.client.Delete(s.t.Context(), &v1.NodeClaim{ObjectMeta: metav1.ObjectMeta{Name: first}}))
	case "delete": // the claim of a node, by hand
		s.must(s.client.Delete(s.t.Context(), &v1.NodeClaim{ObjectMeta: metav1.ObjectMeta{Name: "c-" + first}}))
	case "unready":
		s.unready = first == "true"
	case "restart":
		s.restart()
	case "crash": // after so many more writes; they take effect, all later ones fail
		n, err := strconv.Atoi(first)
		s.must(err)
		s.writes.Store(int64(n))
	case "plan": // commands and stays that Decide is to return
		s.plan(d.Input)
	case "solver": // is to decide again
		s.script = nil
	case "joins": // the claim r has a Node that is not initialized
		s.joins(first, false)
	case "ready": // the claim r has a Node that is initialized
		s.joins(first, true)
	case "quiet": // the claim r is Consolidatable
		s.quiet(first)
	case "over": // the context ends while the next pass decides
		s.over = true
	case "await": // a pending pod is planned on the claim r
		s.awaited[first] = true
	case "moved":
		defer func() { s.moved = nil }()
		return strings.Join(s.moved, "\n")
	case "intents":
		return fmt.Sprint(s.asked)
	case "show":
		return s.show()
	case "logs":
		defer func() { s.logs = nil }()
		return strings.Join(s.logs, "\n")
	case "metrics":
		return s.counts(first)
	default:
		s.t.Fatalf("unknown command %s", d.Cmd)
	}
	return ""
}
