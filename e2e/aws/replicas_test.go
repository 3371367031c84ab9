// SPDX-License-Identifier: Apache-2.0

package aws

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"

	v1 "karpenter/api/v1"
	"karpenter/e2e/harness"
)

const (
	lease = "changes-of-leaders"
	// Each pod needs a node of its own, so the right number of nodes is known
	// whatever happens.
	firstPods, allPods = 15, 30
)

// TestChangeOfLeaders has the leader of two replicas end in the middle of a
// scale-up, in each of the ways there are. More pods come while no one leads.
// In all cases, every pod gets its node, no claim is lost, no instance is
// launched twice, and none is left without a claim. How long it takes is logged,
// not judged (spec 50/21).
func TestChangeOfLeaders(t *testing.T) {
	type round struct {
		name   string
		moment func(*relay) func() string // what is missing until the leader ends
		end    func(*relay)
	}
	made := func(r *relay) func() string { return r.made }
	launched := func(r *relay) func() string { return r.onTheirWay }
	// Each way has a cluster of its own, one after the other: a leader that has no processor time
	// for 10 seconds loses its lease, and ends.
	t.Parallel()
	for name, rounds := range map[string][]round{
		"killed": {
			{"killed, claims are made", made, (*relay).kill},
			{"killed, instances are launched", launched, (*relay).kill},
		},
		"stopped": {
			{"asked to stop, claims are made", made, (*relay).stop},
			{"asked to stop, instances are launched", launched, (*relay).stop},
		},
		"frozen": {
			{"nothing happens", nil, nil},
			{"frozen for longer than the lease, instances are launched", launched, (*relay).freeze},
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := relayOf(t)
			for _, round := range rounds {
				r.play(round.name, round.moment, round.end)
			}
			r.delete()
			r.view.Until("nothing is left in AWS", patience, func() string { return strings.Join(r.left(), ", ") })
		})
	}
}

// relayOf starts a cluster and the first of the replicas, which leads.
func relayOf(t *testing.T) *relay {
	t.Helper()
	c := started(t)
	server := c.StartAWS(t, "--cluster-name", cluster)
	r := &relay{scene: &scene{t, c, server, "relay", time.Now()}}
	r.apply(`
  role: KarpenterNodeRole-prod
  amiSelectorTerms: [{alias: al2023@latest}]
  subnetSelectorTerms: [{tags: {karpenter.sh/discovery: prod}}]
  securityGroupSelectorTerms: [{tags: {karpenter.sh/discovery: prod}}]`)
	r.apart()
	r.view = c.Watch(t, r.note)
	r.leader = r.start()
	r.holder = c.Holder(t, lease, "")
	return r
}

// relay is two replicas, and what was seen in one round.
type relay struct {
	*scene
	view             *harness.View
	leader, follower *harness.Replica
	holder           string // of the lease: the leader
	before           []string

	claims, launched map[string]bool // names of all there were
	ended            time.Time       // of the leader; zero: not yet
	made0, launched0 int             // by then
	claimed, began   time.Time       // of the first claim, the first launch after that
}

func (r *relay) start() *harness.Replica {
	return r.StartReplica(r.T, lease, append(r.server.Environment(),
		"CLOUD_PROVIDER=aws", "CLUSTER_NAME="+cluster, "INTERRUPTION_QUEUE="+cluster)...)
}

// apart keeps the pods off each other's nodes.
func (r *relay) apart() {
	r.Helper()
	patch := `{"spec":{"template":{"spec":{"affinity":{"podAntiAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":[` +
		`{"topologyKey":"kubernetes.io/hostname","labelSelector":{"matchLabels":{"app":"web"}}}]}}}}}}`
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: r.name, Name: "web"}}
	must(r.T, r.Client.Patch(r.Context(), d, client.RawPatch("application/merge-patch+json", []byte(patch))))
}

// note is called after every change.
func (r *relay) note(v *harness.View) {
	for _, c := range v.Claims() {
		if c.Labels[v1.NodePoolLabelKey] != r.name || r.claims == nil {
			continue
		}
		r.claims[c.Name] = true
		if c.Status.ProviderID != "" {
			r.launched[c.Name] = true
		}
	}
	if r.ended.IsZero() {
		return
	}
	if r.claimed.IsZero() && len(r.claims) > r.made0 {
		r.claimed = time.Now()
	}
	if r.began.IsZero() && len(r.launched) > r.launched0 {
		r.began = time.Now()
	}
}

// made reports when some claims are there.
func (r *relay) made() string {
	if len(r.claims) > 0 {
		return ""
	}
	return "there is no claim"
}

// onTheirWay tells when some instances are launched.
func (r *relay) onTheirWay() string {
	if len(r.launched) > 0 {
		return ""
	}
	return fmt.Sprintf("of %d claims none is launched", len(r.claims))
}

// play has the pods come and the leader end at the moment, if there is one; and
// the pods go.
func (r *relay) play(name string, moment func(*relay) func() string, end func(*relay)) {
	r.Helper()
	r.follower = r.start()
	for _, replica := range []*harness.Replica{r.leader, r.follower} {
		replica.Probe("/healthz")
		replica.Probe("/readyz")
	}
	r.leads(r.leader, true)
	r.leads(r.follower, false)
	r.before = r.instances()
	r.claims, r.launched = map[string]bool{}, map[string]bool{}
	r.ended, r.claimed, r.began = time.Time{}, time.Time{}, time.Time{}
	from := time.Now()
	r.scale(firstPods)
	if end == nil {
		r.scale(allPods)
		r.view.Until(name, patience, r.running(r.view, allPods))
		r.Logf("%s: %d pods run after %.1f s", name, allPods, time.Since(from).Seconds())
		r.follower.Stop()
	} else {
		r.view.Until(name, patience, moment(r))
		ready := r.ready()
		r.made0, r.launched0 = len(r.claims), len(r.launched)
		r.ended = time.Now()
		end(r)
		r.view.Until("pods run", patience, r.running(r.view, allPods))
		r.tellOf(name, ready, time.Since(r.ended))
	}
	r.nothingDoubled()
	r.scale(0)
	r.view.Until("nodes and claims are gone", patience, func() string {
		if left := len(r.nodes(r.view)) + len(r.present()); left > 0 {
			return fmt.Sprintf("%d nodes and claims are left", left)
		}
		return ""
	})
}

// kill ends the leader as a power cut would.
func (r *relay) kill() {
	r.leader.Kill()
	r.scale(allPods)
	r.succeed()
}

// stop ends the leader as a rolling update does.
func (r *relay) stop() {
	r.leader.Stop()
	took := time.Since(r.ended)
	r.scale(allPods)
	if code := r.leader.ExitCode(); code != 0 {
		r.Errorf("asked to stop, the leader ends with %d", code)
	}
	if l := r.Lease(r.Context(), lease); l == nil || l.Spec.HolderIdentity != nil && *l.Spec.HolderIdentity == r.holder {
		r.Errorf("the leader has ended and holds its lease still: %v", l)
	}
	r.Logf("the leader has ended %.2f s after it was asked to", took.Seconds())
	r.succeed()
}

// freeze has the leader take its work for its own when another leads: it goes on
// in the middle of what it was about, and must find out.
func (r *relay) freeze() {
	old := r.leader
	old.Freeze()
	r.scale(allPods)
	r.succeed()
	r.view.Until("the new leader makes a claim", patience, func() string {
		if r.claimed.IsZero() {
			return "no claim since"
		}
		return ""
	})
	old.Thaw()
	select {
	case <-old.Exited():
	case <-time.After(patience):
		r.Fatal("the old leader goes on although another leads")
	}
	if old.ExitCode() == 0 || !strings.Contains(old.Log(), "leader election lost") {
		r.Errorf("the old leader ended with %d; want a failure that says why", old.ExitCode())
	}
}

// succeed waits until the follower leads.
func (r *relay) succeed() {
	r.Helper()
	r.holder = r.Holder(r.T, lease, r.holder)
	r.leader, r.follower = r.follower, nil
	r.leader.Probe("/readyz")
	r.leads(r.leader, true)
}

// leads waits until the replica's metrics say whether it leads.
func (r *relay) leads(replica *harness.Replica, want bool) {
	r.Helper()
	line := fmt.Sprintf("leader_election_master_status{name=%q} %d", lease, map[bool]int{true: 1}[want])
	r.view.Until("metrics say who leads", patience, func() string {
		if page := replica.Metrics(); strings.Contains(page, line) && strings.Contains(page, "karpenter_build_info{") {
			return ""
		}
		return "no " + line
	})
}

// tellOf logs how long things took since the leader ended.
func (r *relay) tellOf(name string, ready int, all time.Duration) {
	r.Helper()
	since := func(at time.Time) string {
		if at.IsZero() {
			return "–"
		}
		return fmt.Sprintf("%.1f s", at.Sub(r.ended).Seconds())
	}
	r.Logf("%s (of %d pods: %d claims, %d launched, %d nodes ready): another leads after %s, next claim %s, next launch %s, all %d pods run %.1f s",
		name, firstPods, r.made0, r.launched0, ready, since(r.Lease(r.Context(), lease).Spec.AcquireTime.Time),
		since(r.claimed), since(r.began), allPods, all.Seconds())
	if ready >= allPods {
		r.Errorf("%s: that was not in the middle of anything, all nodes were ready", name)
	}
}

// nothingDoubled holds what there is against what there must be.
func (r *relay) nothingDoubled() {
	r.Helper()
	r.view.Until("claims have their nodes", patience, func() string {
		if n := r.ready(); n != len(r.present()) {
			return fmt.Sprintf("%d of %d nodes are ready", n, len(r.present()))
		}
		return ""
	})
	owners := map[string]string{} // of instances
	present := r.present()
	for _, c := range present {
		id := c.Status.ProviderID[strings.LastIndex(c.Status.ProviderID, "/")+1:]
		if other, twice := owners[id]; twice {
			r.Errorf("claims %s and %s have the same instance %s", other, c.Name, id)
		}
		owners[id] = c.Name
	}
	if len(present) != allPods || len(r.claims) != allPods {
		r.Errorf("%d claims were made and %d are there; %d pods need a node each", len(r.claims), len(present), allPods)
	}
	// AWS tells of terminated instances, too: none has come and gone.
	instances := slices.DeleteFunc(r.instances(), func(id string) bool { return slices.Contains(r.before, id) })
	if want := slices.Sorted(maps.Keys(owners)); !slices.Equal(instances, want) {
		r.Errorf("AWS has launched %d instances %v, claims have %v", len(instances), instances, want)
	}
}

// present returns the claims there are.
func (r *relay) present() []v1.NodeClaim {
	return slices.DeleteFunc(r.view.Claims(), func(c v1.NodeClaim) bool { return c.Labels[v1.NodePoolLabelKey] != r.name })
}

// ready counts initialized nodes.
func (r *relay) ready() int {
	n := 0
	for _, node := range r.nodes(r.view) {
		if node.Labels[v1.NodeInitializedLabelKey] == "true" {
			n++
		}
	}
	return n
}

// instances returns, sorted, the IDs of all that AWS has launched for the pool,
// those that have ended included.
func (r *relay) instances() []string {
	r.Helper()
	pages := ec2.NewDescribeInstancesPaginator(ec2.NewFromConfig(connect(r.T, r.server)), &ec2.DescribeInstancesInput{Filters: []ec2types.Filter{
		{Name: aws.String("tag:karpenter.sh/nodepool"), Values: []string{r.name}},
	}})
	var out []string
	for pages.HasMorePages() {
		page, err := pages.NextPage(r.Context())
		must(r.T, err)
		for _, reservation := range page.Reservations {
			for _, i := range reservation.Instances {
				out = append(out, *i.InstanceId)
			}
		}
	}
	slices.Sort(out)
	return out
}
