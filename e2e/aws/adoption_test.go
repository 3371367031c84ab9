// SPDX-License-Identifier: Apache-2.0

package aws

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"karpenter/api/conditions"
	v1 "karpenter/api/v1"

	awsv1 "karpenter/api/aws/v1"
	"karpenter/e2e/harness"
)

// TestAdoption takes over nodes that run under upstream Karpenter v1, those of the
// present versions of hashes and those of older ones: every controller looks at
// them, more than once where it does so now and then, and none is touched. Then
// nodes are added, and then all are removed, upstream's and ours.
//
// spec 65/18, spec 10/61: claims of older hashes are stamped again.
func TestAdoption(t *testing.T) {
	c := begin(t)
	server := c.StartAWS(t, "--cluster-name", cluster)
	a := &adoption{T: t, Cluster: c, server: server, instances: map[string]string{}}
	a.view = c.Watch(t, a.law)
	scenes := func(name string) *scene { return &scene{t, c, server, name, time.Now()} }
	current := &upstream{scene: scenes("current"), view: a.view, poolVersion: v1.NodePoolHashVersion, classVersion: awsv1.HashVersion}
	older := &upstream{scene: scenes("older"), view: a.view, poolVersion: "v2", classVersion: "v5", hash: "1234567890"}
	a.pools = []*upstream{current, older}
	for _, u := range a.pools {
		u.make()
	}
	a.runs(current, machine{"current-7x2qf", "m6i.large", "on-demand", "m6i", "6", "8192"})
	a.runs(current, machine{"current-b9k4d", "c6i.large", "spot", "c6i", "6", "4096"})
	a.runs(older, machine{"older-m5tzw", "m5.large", "on-demand", "m5", "5", "8192"})
	current.scale(4)
	older.scale(2)
	a.view.Until("pods run", patience, func() string { return current.running(a.view, 4)() + older.running(a.view, 2)() })
	before := a.calls()
	current.tell("the nodes of upstream", slices.Concat(current.nodes(a.view), older.nodes(a.view)))

	a.adopted = true // from here on the invariant holds
	metrics := freeAddress(t)
	_, port, _ := net.SplitHostPort(metrics)
	c.StartController(t, append(server.Environment(), "CLOUD_PROVIDER=aws", "CLUSTER_NAME="+cluster, "INTERRUPTION_QUEUE="+cluster,
		"CLUSTER_ENDPOINT="+c.Config.Host, "CLUSTER_CA_BUNDLE="+current.authority(), "METRICS_PORT="+port)...)
	began := time.Now()
	a.view.Until("all is taken over", patience, a.takenOver)
	t.Logf("taken over after %.0f s", time.Since(began).Seconds())
	a.view.Until("each controller has come round again", 3*patience, func() string { return a.rounds(metrics) })
	t.Logf("none touched in %.0f s", time.Since(began).Seconds())
	for operation, n := range a.calls() {
		if slices.Contains([]string{"TerminateInstances", "CreateInstanceProfile", "DeleteInstanceProfile"}, operation) && n != before[operation] {
			t.Errorf("%s was called %d times", operation, n-before[operation])
		}
	}
	current.tell("no node was added or removed", current.nodes(a.view))
	a.grow(current)
	a.drifts(older)
	a.shrink()
}

// adoption is nodes that are taken over.
type adoption struct {
	*testing.T
	*harness.Cluster
	server    *harness.Server
	view      *harness.View
	pools     []*upstream
	instances map[string]string // by claim
	adopted   bool              // they are being taken over, and none may go
}

func (a *adoption) runs(u *upstream, m machine) {
	a.Helper()
	a.instances[m.name] = u.run(m)
}

// law is that what was there stays as it is.
func (a *adoption) law(v *harness.View) {
	if !a.adopted {
		return
	}
	found := map[string]bool{}
	for _, c := range v.Claims() {
		instance, upstreams := a.instances[c.Name]
		if !upstreams {
			continue
		}
		found[c.Name] = true
		if c.DeletionTimestamp != nil || conditions.Get(&c, v1.DriftedCondition) != nil || conditions.Get(&c, v1.DisruptionReasonCondition) != nil ||
			!strings.HasSuffix(c.Status.ProviderID, instance) || !conditions.IsTrue(&c, v1.ReadyCondition) {
			a.Errorf("NodeClaim %s, of instance %s: deletion %v, provider ID %s, conditions %+v", c.Name, instance, c.DeletionTimestamp, c.Status.ProviderID, c.Status.Conditions)
		}
	}
	for name := range a.instances {
		if !found[name] {
			a.Errorf("NodeClaim %s is gone", name)
		}
	}
	for _, n := range v.Nodes() {
		if _, id, _ := strings.Cut(n.Spec.ProviderID, "/i-"); !slices.Contains(slices.Collect(maps.Values(a.instances)), "i-"+id) {
			continue
		}
		for _, taint := range n.Spec.Taints {
			if strings.HasPrefix(taint.Key, "karpenter.sh/") {
				a.Errorf("node %s has the taint %s", n.Name, taint.ToString())
			}
		}
	}
	if a.Failed() {
		a.FailNow()
	}
}

// takenOver says what the controller has not looked at yet: NodePools are ready
// and rolled out, claims may be consolidated, which is found out with whether they
// have drifted, and hashes are of today's rules.
func (a *adoption) takenOver() string {
	for _, u := range a.pools {
		u.fetch()
		rolledOut := meta.FindStatusCondition(u.pool.Status.Conditions, v1.RolledOutCondition)
		switch {
		case !conditions.IsTrue(&u.class, v1.ReadyCondition):
			return fmt.Sprintf("EC2NodeClass %s: %+v", u.name, u.class.Status.Conditions)
		case !conditions.IsTrue(&u.pool, v1.ReadyCondition) || rolledOut == nil || rolledOut.Status != metav1.ConditionTrue || rolledOut.ObservedGeneration != u.pool.Generation:
			return fmt.Sprintf("NodePool %s: %+v", u.name, u.pool.Status.Conditions)
		case u.class.Status.InstanceProfile != u.profile:
			a.Fatalf("EC2NodeClass %s has the instance profile %s instead of %s", u.name, u.class.Status.InstanceProfile, u.profile)
		}
	}
	for _, c := range a.view.Claims() {
		if !conditions.IsTrue(&c, v1.ConsolidatableCondition) {
			return fmt.Sprintf("NodeClaim %s: %+v", c.Name, c.Status.Conditions)
		}
		u := a.pools[slices.IndexFunc(a.pools, func(u *upstream) bool { return u.name == c.Labels[v1.NodePoolLabelKey] })]
		for key, want := range map[string]string{
			v1.NodePoolHashAnnotationKey: u.pool.Hash(), v1.NodePoolHashVersionAnnotationKey: v1.NodePoolHashVersion,
			awsv1.HashAnnotationKey: u.class.Hash(u.authority()), awsv1.HashVersionAnnotationKey: awsv1.HashVersion,
		} {
			for what, is := range map[string]map[string]string{"NodeClaim": c.Annotations, "NodePool": u.pool.Annotations, "EC2NodeClass": u.class.Annotations} {
				if value, has := is[key]; (has || what == "NodeClaim") && value != want {
					return fmt.Sprintf("%s of %s: %s is %s, want %s", what, c.Name, key, value, want)
				}
			}
		}
	}
	return ""
}

// rounds says which controller has not come round twice.
func (a *adoption) rounds(metrics string) string {
	a.Helper()
	answer, err := http.Get("http://" + metrics + "/metrics")
	must(a.T, err)
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	must(a.T, err)
	for controller, least := range map[string]int{
		"nodeclaim.garbagecollection": 2, "disruption": 3, "nodeclaim.disruption": len(a.instances), "nodeclass": 3 * len(a.pools),
	} {
		var done int
		for line := range strings.Lines(string(text)) {
			var n int
			if rest, ok := strings.CutPrefix(line, fmt.Sprintf("controller_runtime_reconcile_total{controller=%q,result=", controller)); ok && !strings.HasPrefix(rest, `"error"`) {
				_, value, _ := strings.Cut(rest, "} ")
				_, _ = fmt.Sscan(value, &n) // 0 when it is no number
				done += n
			}
		}
		if done < least {
			return fmt.Sprintf("%s has come round %d times, want %d", controller, done, least)
		}
	}
	return ""
}

// calls tells how often each operation was asked of the account.
func (a *adoption) calls() map[string]int {
	a.Helper()
	answer, err := http.Get(a.server.URL + "/_awssim/calls")
	must(a.T, err)
	defer answer.Body.Close()
	var out map[string]int
	must(a.T, json.NewDecoder(answer.Body).Decode(&out))
	return out
}

// grow adds pods, for which nodes are launched here.
func (a *adoption) grow(u *upstream) {
	u.scale(9)
	a.view.Until("nodes are added", patience, u.running(a.view, 9))
	added := 0
	for _, c := range a.view.Claims() {
		if _, upstreams := a.instances[c.Name]; !upstreams {
			added++
			if c.Labels[v1.NodePoolLabelKey] != u.name || c.Annotations[v1.NodePoolHashAnnotationKey] != u.pool.Hash() ||
				c.Annotations[awsv1.HashAnnotationKey] != u.class.Hash(u.authority()) {
				a.Errorf("NodeClaim %s: labels %v, annotations %v", c.Name, c.Labels, c.Annotations)
			}
		}
	}
	if added == 0 {
		a.Error("the pods run, and no node was added")
	}
	a.law(a.view)
	u.tell("5 more pods run on new nodes", u.nodes(a.view))
}

// drifts shows that those that were taken over drift when there is reason to, and
// no longer when there is not.
func (a *adoption) drifts(u *upstream) {
	a.Helper()
	a.adopted = false
	u.patch(`{"spec":{"disruption":{"budgets":[{"nodes":"0"}]},"template":{"metadata":{"labels":{"team":"payments"}}}}}`)
	drifted := func(want bool) func() string {
		return func() string {
			for _, c := range a.view.Claims() {
				if is := conditions.IsTrue(&c, v1.DriftedCondition); c.Labels[v1.NodePoolLabelKey] == u.name && is != want {
					return fmt.Sprintf("NodeClaim %s has drifted: %v", c.Name, is)
				}
			}
			return ""
		}
	}
	a.view.Until("a label of the template changes, and nodes drift", patience, drifted(true))
	u.patch(`{"spec":{"template":{"metadata":{"labels":{"team":"platform"}}}}}`)
	a.view.Until("it changes back, and they have not drifted", patience, drifted(false))
	a.adopted = true
	a.law(a.view)
}

func (u *upstream) patch(text string) {
	u.Helper()
	must(u.T, u.Client.Patch(u.Context(), &u.pool, client.RawPatch("application/merge-patch+json", []byte(text))))
}

// shrink lets all nodes go, those of upstream and our own, and what is left in AWS.
func (a *adoption) shrink() {
	a.adopted = false
	for _, u := range a.pools {
		u.patch(`{"spec":{"disruption":{"budgets":[{"nodes":"100%"}]}}}`)
		u.scale(0)
	}
	a.view.Until("nodes are gone", patience, func() string {
		var left []string
		for _, u := range a.pools {
			for _, n := range u.nodes(a.view) {
				left = append(left, n.Name)
			}
		}
		return strings.Join(left, ", ")
	})
	for _, u := range a.pools {
		u.delete()
	}
	a.view.Until("nothing is left in AWS", patience, func() string {
		return strings.Join(slices.Concat(a.pools[0].left(), a.pools[1].left()), ", ")
	})
	a.pools[0].tell("no pods, no nodes, no NodePools", []corev1.Node{})
}
