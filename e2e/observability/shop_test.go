// SPDX-License-Identifier: Apache-2.0

package observability

import (
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"karpenter/api/conditions"
	v1 "karpenter/api/v1"
	"karpenter/e2e/harness"
)

const (
	cluster  = "prod"
	shop     = "shop"          // namespace of the pods
	patience = 5 * time.Minute // for anything, on a busy machine
)

// place is a cluster on AWS, the program that runs its nodes, and who watches it.
type place struct {
	*testing.T
	*harness.Cluster
	aws     *harness.Server
	view    *harness.View
	program *harness.Controller
	metrics string // host:port of the program
	idler   string // of one that cannot read the cluster; nothing answers until idle
	watch   *observer
}

// open starts everything but Prometheus, and waits until pods run.
func open(t *testing.T) *place {
	t.Helper()
	p := &place{T: t, Cluster: shared.Cluster(t), metrics: address(t), idler: address(t)}
	p.aws = p.StartAWS(t, "--cluster-name", cluster)
	manifest, err := os.ReadFile("testdata/cluster.yaml")
	if err != nil {
		t.Fatal(err)
	}
	p.Apply(t, string(manifest))
	p.view = p.Watch(t)
	p.program = p.StartController(t, append(p.aws.Environment(),
		"CLOUD_PROVIDER=aws", "CLUSTER_NAME="+cluster, "INTERRUPTION_QUEUE="+cluster,
		"DISABLE_LEADER_ELECTION=false", "LEADER_ELECTION_NAMESPACE=kube-system", "METRICS_PORT="+port(p.metrics))...)
	p.view.Until("pods run", patience, func() string { return p.running(4) })
	return p
}

func address(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

func port(address string) string { return address[strings.LastIndex(address, ":")+1:] }

// running tells what is missing to that many pods and no others being run.
func (p *place) running(want int) string {
	n, pods := 0, p.view.Pods(shop)
	for _, pod := range pods {
		if pod.DeletionTimestamp == nil && pod.Status.Phase == corev1.PodRunning {
			n++
		}
	}
	if n == want && len(pods) == want {
		return ""
	}
	return fmt.Sprintf("%d of %d pods run, want %d", n, len(pods), want)
}

func (p *place) patch(o client.Object, patch string, args ...any) {
	p.Helper()
	if err := p.Client.Patch(p.Context(), o, client.RawPatch("application/merge-patch+json", fmt.Appendf(nil, patch, args...))); err != nil {
		p.Fatal(err)
	}
}

func (p *place) scale(name string, replicas int) {
	p.Helper()
	p.patch(&appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: shop, Name: name}}, `{"spec":{"replicas":%d}}`, replicas)
}

// budget says how many of the web's pods may be missing.
func (p *place) budget(maxUnavailable int) {
	p.Helper()
	budget := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: shop, Name: "web"}}
	p.patch(budget, `{"spec":{"maxUnavailable":%d}}`, maxUnavailable)
	p.view.Until("the disruption budget is in force", patience, func() string {
		if err := p.Client.Get(p.Context(), client.ObjectKeyFromObject(budget), budget); err != nil {
			return err.Error()
		}
		if budget.Status.ObservedGeneration != budget.Generation {
			return "it has not been looked at"
		}
		return ""
	})
}

// fate does something to the AWS account, as cmd/awssim says.
func (p *place) fate(deed string) {
	p.Helper()
	answer, err := http.Post(p.aws.URL+"/_awssim/"+deed, "", nil)
	if err != nil {
		p.Fatal(err)
	}
	defer answer.Body.Close()
	if answer.StatusCode >= 300 {
		p.Fatalf("%s: %s", deed, answer.Status)
	}
}

// announceLate puts interruptions into the queue that were announced some time ago.
func (p *place) announceLate(n int, ago time.Duration) {
	p.Helper()
	body := fmt.Sprintf(`{"version":"0","id":"1","detail-type":"EC2 Spot Instance Interruption Warning","source":"aws.ec2","account":"123456789012",`+
		`"time":%q,"region":"us-east-1","resources":[],"detail":{"instance-id":"i-0123456789abcdef0","instance-action":"terminate"}}`,
		time.Now().Add(-ago).UTC().Format(time.RFC3339))
	for range n {
		p.fate("send?" + url.Values{"queue": {cluster}, "body": {body}}.Encode())
	}
}

// claim returns a NodeClaim of the pool.
func (p *place) claim(pool string) *v1.NodeClaim {
	p.Helper()
	for _, c := range p.view.Claims() {
		if c.Labels[v1.NodePoolLabelKey] == pool {
			return &c
		}
	}
	p.Fatalf("pool %s has no NodeClaim", pool)
	return nil
}

// mistrust writes on the pool that its instances did not become nodes, as the program
// does after a quarter of an hour of that.
func (p *place) mistrust(pool string) {
	p.Helper()
	stored := &v1.NodePool{}
	if err := p.Client.Get(p.Context(), client.ObjectKey{Name: pool}, stored); err != nil {
		p.Fatal(err)
	}
	changed := stored.DeepCopy()
	set := changed.StatusConditions(time.Now())
	set.Set(metav1.Condition{Type: v1.NodeRegistrationHealthyCondition, Status: metav1.ConditionFalse, Reason: v1.RegistrationFailedReason, Message: "rehearsal"})
	if !conditions.IsTrue(stored, v1.NodeRegistrationHealthyCondition) {
		p.Logf("the pool said of its machines: %v", conditions.Get(stored, v1.NodeRegistrationHealthyCondition))
	}
	if err := p.Client.Status().Patch(p.Context(), changed, client.MergeFrom(stored)); err != nil {
		p.Fatal(err)
	}
}

// idle starts the program as someone who may read nothing.
func (p *place) idle() *harness.Controller {
	p.Helper()
	file, err := clientcmd.LoadFromFile(p.Kubeconfig)
	if err != nil {
		p.Fatal(err)
	}
	for _, user := range file.AuthInfos {
		user.Impersonate = "stranger"
	}
	path := filepath.Join(p.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*file, path); err != nil {
		p.Fatal(err)
	}
	return p.StartController(p.T, "KUBECONFIG="+path, "METRICS_PORT="+port(p.idler))
}

func (p *place) create(o client.Object) {
	p.Helper()
	if err := p.Client.Create(p.Context(), o); err != nil {
		p.Fatal(err)
	}
}

func (p *place) remove(o client.Object) {
	p.Helper()
	if err := p.Client.Delete(p.Context(), o); err != nil {
		p.Fatal(err)
	}
}
