// SPDX-License-Identifier: Apache-2.0

package wiring_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/cockroachdb/datadriven"
	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/log"

	v1 "karpenter/api/v1"
	"karpenter/cloud"
	"karpenter/cloud/cloudtest"
	"karpenter/control/controltest"
	"karpenter/control/garbage"
	"karpenter/control/lifecycle"
	"karpenter/control/termination"
)

// TestCrashes lets the process die after every write to the API and the cloud,
// one run for each, and shows that the next process comes to the same end.
// Reads need no crash of their own: they leave nothing behind. A case is what
// a user does, line by line with everything settling in between; "now" before a
// line has it done at the crash, between the two processes. Printed is the end,
// and after which writes there were crashes.
func TestCrashes(t *testing.T) {
	log.SetLogger(logr.Discard())
	datadriven.RunTest(t, "testdata/crashes", func(t *testing.T, d *datadriven.TestData) string {
		want := play(t, d.Input, 0)
		var writes []string
		for n := 1; ; n++ {
			got := play(t, d.Input, n)
			if got.died == "" {
				return want.end + "crashes after: " + strings.Join(runs(writes), ", ") + "\n"
			}
			writes = append(writes, got.died)
			if got.end != want.end {
				t.Errorf("%s: crash after write %d, %s: ends with\n%swant\n%s", d.Pos, n, got.died, got.end, want.end)
			}
		}
	})
}

// runs shortens repetitions.
func runs(writes []string) []string {
	var out []string
	for i := 0; i < len(writes); {
		n := 1
		for i+n < len(writes) && writes[i+n] == writes[i] {
			n++
		}
		text := writes[i]
		if n > 1 {
			text = fmt.Sprintf("%d × %s", n, text)
		}
		out = append(out, text)
		i += n
	}
	return out
}

// outcome is how a story ended.
type outcome struct{ end, died string }

// play tells the story with a crash after the n-th write, or none for 0.
func play(t *testing.T, text string, n int) outcome {
	s := &stage{t: t, Cluster: controltest.New(t)}
	s.Setup(processes)
	s.do("pool default")
	if n > 0 {
		s.do(fmt.Sprintf("crash %d", n))
	}
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if rest, ok := strings.CutPrefix(line, "now "); ok {
			s.now = rest
			continue
		}
		s.do(line)
		s.settle()
	}
	if s.now != "" {
		s.strike()
		s.settle()
	}
	return outcome{s.end(), s.Crashed()}
}

// stage is a cluster with everyone who lives in it.
type stage struct {
	t *testing.T
	*controltest.Cluster
	now string // what happens at the crash; "" = nothing, or done
}

// processes gives the cluster the controllers that end and begin claims.
func processes(c *controltest.Cluster) {
	provider := c.Provider()
	c.Reconcilers["lifecycle"] = &lifecycle.Reconciler{
		Client: c.Client, Provider: provider, Clock: c.Clock, Recorder: c.Recorder,
		Metrics: lifecycle.NewMetrics(c.Registry), Disruptions: c.Disruptions, Health: unnoticed{},
	}
	c.Reconcilers["garbage"] = &garbage.Reconciler{
		Client: c.Client, Live: c.Client, Provider: provider, Clock: c.Clock, Disruptions: c.Disruptions,
	}
	counts := termination.NewMetrics(c.Registry)
	queue := termination.NewQueue(c.Client, c.Recorder, c.Clock, counts)
	c.Reconcilers["termination"] = &termination.Reconciler{
		Client: c.Client, Live: c.Client, Machines: provider, Evictions: queue, Events: c.Recorder, Clock: c.Clock, Metrics: counts,
	}
	c.Reconcilers["eviction"] = reconcile.Func(func(ctx context.Context, r reconcile.Request) (reconcile.Result, error) {
		return queue.Reconcile(ctx, termination.Key{Namespace: "default", Name: r.Name, UID: types.UID("uid-of-" + r.Name)})
	})
	c.Commands["out-of-order"] = func(words []string) error {
		for range 1000 {
			c.Cloud.FailNext(cloudtest.Method(words[0]), errors.New("the cloud is down"))
		}
		return nil
	}
	c.Commands["class-is-gone"] = func([]string) error {
		for range 1000 {
			c.Cloud.FailNext(cloudtest.Create, &cloud.CreateError{Reason: "NodeClassNotFound", Message: "class is gone", Err: errors.New("gone")})
		}
		return nil
	}
}

// unnoticed is a pool whose health no one follows.
type unnoticed struct{}

func (unnoticed) Succeeded(*v1.NodeClaim)              {}
func (unnoticed) Failed(*v1.NodeClaim, string, string) {}

func (s *stage) do(line string) {
	s.t.Helper()
	if _, err := s.Do(line); err != nil {
		s.t.Fatal(err)
	}
}

// strike does what was to happen at the crash.
func (s *stage) strike() {
	line := s.now
	s.now = ""
	s.do(line)
}

// call runs a controller and what happens at once when it crashes.
func (s *stage) call(name, controller string) {
	died := s.Crashed()
	_, _ = s.Reconcile(name, controller) // failures are tried again in the next round
	if died != s.Crashed() && s.now != "" {
		s.strike()
	}
}

// settle lets time pass until nothing happens any more, not even at the
// collector's next round.
func (s *stage) settle() {
	const most = 200
	quiet, was := 0, ""
	for range most {
		s.round()
		if is := s.fingerprint(); is != was {
			quiet, was = 0, is
			continue
		}
		switch quiet++; quiet {
		case 2:
			s.do("advance 2m")
			s.call("-", "garbage")
		case 4:
			return
		}
	}
	s.t.Fatalf("no rest after %d rounds:\n%s", most, s.end())
}

// round is five seconds.
func (s *stage) round() {
	s.kubernetes()
	for _, c := range s.claims() {
		s.call(c.Name, "lifecycle")
	}
	for _, n := range s.nodes() {
		s.call(n.Name, "termination")
	}
	for _, p := range s.pods() {
		s.call(p.Name, "eviction")
	}
	s.do("advance 5s")
}

// fingerprint changes when anything does.
func (s *stage) fingerprint() string {
	out := fmt.Sprintln(len(s.Cloud.Machines()))
	for _, c := range s.claims() {
		out += fmt.Sprintln(c.Name, c.ResourceVersion)
	}
	for _, n := range s.nodes() {
		out += fmt.Sprintln(n.Name, n.ResourceVersion)
	}
	return out + fmt.Sprintln(len(s.pods()))
}

func (s *stage) claims() []v1.NodeClaim {
	return list(s, &v1.NodeClaimList{}, func(l *v1.NodeClaimList) []v1.NodeClaim { return l.Items })
}

func (s *stage) nodes() []corev1.Node {
	return list(s, &corev1.NodeList{}, func(l *corev1.NodeList) []corev1.Node { return l.Items })
}

func (s *stage) pods() []corev1.Pod {
	return list(s, &corev1.PodList{}, func(l *corev1.PodList) []corev1.Pod { return l.Items })
}

func list[L client.ObjectList, T any](s *stage, l L, items func(L) []T) []T {
	if err := s.Client.List(s.t.Context(), l); err != nil {
		s.t.Fatal(err)
	}
	return items(l)
}

// kubernetes does what everyone else does: machines join, Nodes whose machine
// is gone become unready, and what an owner that is gone leaves behind is
// deleted.
func (s *stage) kubernetes() {
	pools := list(s, &v1.NodePoolList{}, func(l *v1.NodePoolList) []v1.NodePool { return l.Items })
	claims, nodes, machines := s.claims(), s.nodes(), s.Cloud.Machines()
	for _, c := range claims {
		if len(pools) == 0 && c.DeletionTimestamp == nil {
			s.do("delete claim/" + c.Name)
		}
	}
	for _, m := range machines {
		of := func(n corev1.Node) bool { return n.Spec.ProviderID == m.ProviderID }
		if joined := slices.ContainsFunc(nodes, of); !joined && s.Clock.Since(m.Created) < 30*time.Second {
			s.do(fmt.Sprintf("node node-of-%[1]s %[1]s {metadata: {labels: {karpenter.kwok.sh/kwoknodeclass: default}}, status: {allocatable: {cpu: 2}}}", m.Claim))
		}
	}
	for _, n := range nodes {
		runs := slices.ContainsFunc(machines, func(m cloud.Machine) bool { return n.Spec.ProviderID == m.ProviderID })
		if !runs && n.Status.Conditions[0].Status == corev1.ConditionTrue {
			s.do("change node/" + n.Name + " {status: {conditions: [{type: Ready, status: Unknown}]}}")
		}
		owned := slices.ContainsFunc(claims, func(c v1.NodeClaim) bool {
			return slices.ContainsFunc(n.OwnerReferences, func(o metav1.OwnerReference) bool { return o.UID == c.UID })
		})
		if len(n.OwnerReferences) > 0 && !owned && n.DeletionTimestamp == nil || len(n.Finalizers) == 0 && !runs {
			s.do("delete node/" + n.Name)
		}
	}
}

// end tells what there is in the end.
func (s *stage) end() string {
	var out strings.Builder
	fmt.Fprintf(&out, "%d machines\n", len(s.Cloud.Machines()))
	for _, c := range s.claims() {
		fmt.Fprintf(&out, "claim %s of %s, ready: %t\n", c.Name, c.Status.ProviderID, c.StatusConditions(s.Clock.Now()).IsTrue(v1.ReadyCondition))
	}
	for _, n := range s.nodes() {
		fmt.Fprintf(&out, "node %s of %s\n", n.Name, n.Spec.ProviderID)
	}
	for _, p := range s.pods() {
		fmt.Fprintf(&out, "pod %s\n", p.Name)
	}
	return out.String()
}
