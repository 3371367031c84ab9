// SPDX-License-Identifier: Apache-2.0

package aws

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"karpenter/e2e/harness"
)

const (
	cluster  = "prod"
	patience = 5 * time.Minute // for anything, on a busy machine
)

// TestSimulatedAWS runs a spot node's life on AWS in memory.
func TestSimulatedAWS(t *testing.T) {
	c := begin(t)
	server := c.StartAWS(t, "--cluster-name", cluster)
	lives(t, c, &account{
		server: server, nodeClass: `
  role: KarpenterNodeRole-prod
  amiSelectorTerms: [{alias: al2023@latest}]
  subnetSelectorTerms: [{tags: {karpenter.sh/discovery: prod}}]
  securityGroupSelectorTerms: [{tags: {karpenter.sh/discovery: prod}}]`,
		interrupt: func(instance string) error {
			answer, err := http.Post(server.URL+"/_awssim/interrupt?instance="+instance, "", nil)
			if err != nil {
				return err
			}
			defer answer.Body.Close()
			if answer.StatusCode >= 300 {
				return fmt.Errorf("interrupt: %s", answer.Status)
			}
			return nil
		},
	})
}

// TestMoto runs it on moto, whose instances awssim boots. What moto tells of
// security groups would be drift.
func TestMoto(t *testing.T) {
	c := begin(t)
	moto := harness.StartMoto(t)
	image := furnish(t, moto.Server)
	c.BootInstances(t, moto.Server, "--cluster-name", cluster)
	lives(t, c, &account{
		server: moto.Server, nodeClass: fmt.Sprintf(`
  role: node
  amiFamily: AL2023
  amiSelectorTerms: [{id: %s}]
  subnetSelectorTerms: [{tags: {karpenter.sh/discovery: prod}}]
  securityGroupSelectorTerms: [{name: default}]`, image),
		interrupt: func(instance string) error {
			queue := sqs.NewFromConfig(connect(t, moto.Server))
			url, err := queue.GetQueueUrl(t.Context(), &sqs.GetQueueUrlInput{QueueName: aws.String(cluster)})
			if err != nil {
				return err
			}
			_, err = queue.SendMessage(t.Context(), &sqs.SendMessageInput{QueueUrl: url.QueueUrl, MessageBody: aws.String(fmt.Sprintf(
				`{"version":"0","id":"1","detail-type":"EC2 Spot Instance Interruption Warning","source":"aws.ec2","account":"123456789012",`+
					`"time":%q,"region":"us-east-1","resources":[],"detail":{"instance-id":%q,"instance-action":"terminate"}}`,
				time.Now().UTC().Format(time.RFC3339), instance))})
			return err
		},
	})
}

// account is an AWS to run on.
type account struct {
	server    *harness.Server
	nodeClass string // spec of the EC2NodeClass, YAML
	interrupt func(instance string) error
}

// lives lets pods come: instances are launched, nodes join, pods run; a spot
// interruption is announced and the node replaced; pods, NodePool and
// EC2NodeClass go, and nothing is left in AWS.
func lives(t *testing.T, c *harness.Cluster, on *account) {
	s := &scene{t, c, on.server, strings.ToLower(t.Name()), time.Now()}
	s.apply(on.nodeClass)
	v := c.Watch(t)
	c.StartController(t, append(on.server.Environment(),
		"CLOUD_PROVIDER=aws", "CLUSTER_NAME="+cluster, "INTERRUPTION_QUEUE="+cluster)...)
	s.scale(5)
	v.Until("pods run", patience, s.running(v, 5))
	first := s.nodes(v)
	s.tell("5 pods run", first)
	for _, n := range first {
		if !strings.HasPrefix(n.Spec.ProviderID, "aws:///us-east-1") || n.Labels["karpenter.k8s.aws/ec2nodeclass"] != s.name {
			t.Errorf("node %s: provider ID %s, labels %v", n.Name, n.Spec.ProviderID, n.Labels)
		}
	}
	if left := s.left(); len(left) < 3 {
		t.Errorf("a running node has an instance, a launch template and an instance profile; there are %v", left)
	}

	gone := first[0]
	if err := on.interrupt(gone.Spec.ProviderID[strings.LastIndex(gone.Spec.ProviderID, "/")+1:]); err != nil {
		t.Fatal(err)
	}
	v.Until("the interrupted node is replaced", patience, func() string {
		if slices.ContainsFunc(s.nodes(v), func(n corev1.Node) bool { return n.Name == gone.Name }) {
			return "node " + gone.Name + " is still there"
		}
		return s.running(v, 5)()
	})
	s.tell("node "+gone.Name+" was interrupted and is replaced", s.nodes(v))
	if events := v.Events("SpotInterrupted", gone.Name); len(events) == 0 {
		t.Errorf("no event about the node %s tells of its interruption", gone.Name)
	}

	s.scale(0)
	v.Until("nodes are gone", patience, func() string {
		if n := len(s.nodes(v)); n > 0 {
			return fmt.Sprintf("%d nodes are left", n)
		}
		return ""
	})
	s.tell("no pods, no nodes", nil)
	s.delete()
	v.Until("nothing is left in AWS", patience, func() string { return strings.Join(s.left(), ", ") })
	s.tell("no NodePool, no EC2NodeClass", nil)
}

// scene is the objects of one test, all of one name.
type scene struct {
	*testing.T
	*harness.Cluster
	server *harness.Server
	name   string
	began  time.Time
}

// tell logs what has come about, the nodes, and what there is in AWS.
func (s *scene) tell(what string, nodes []corev1.Node) {
	s.Helper()
	s.Logf("%4.0f s  %s", time.Since(s.began).Seconds(), what)
	for _, n := range nodes {
		s.Logf("        node %s  %s  %s  %s  %s", n.Name, n.Spec.ProviderID, n.Labels[corev1.LabelInstanceTypeStable],
			n.Labels["karpenter.sh/capacity-type"], n.Labels[corev1.LabelTopologyZone])
	}
	s.Logf("        in AWS: %s", cmp.Or(strings.Join(s.left(), ", "), "nothing"))
}

func (s *scene) apply(class string) {
	s.Helper()
	s.Apply(s.T, fmt.Sprintf(`
apiVersion: karpenter.k8s.aws/v1
kind: EC2NodeClass
metadata: {name: %[1]s}
spec:%[2]s
---
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: %[1]s}
spec:
  template:
    spec:
      requirements:
        - {key: karpenter.sh/capacity-type, operator: In, values: [spot, on-demand]}
        - {key: kubernetes.io/arch, operator: In, values: [amd64]}
        - {key: karpenter.k8s.aws/instance-category, operator: In, values: [c, m, r]}
        - {key: karpenter.k8s.aws/instance-generation, operator: Gt, values: ["4"]}
      nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: %[1]s}
  disruption:
    consolidateAfter: 0s
    budgets: [{nodes: 100%%}, {nodes: "0", reasons: [Drifted, Underutilized]}]
---
apiVersion: v1
kind: Namespace
metadata: {name: %[1]s}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: %[1]s}
spec:
  replicas: 0
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      terminationGracePeriodSeconds: 1
      nodeSelector: {karpenter.sh/nodepool: %[1]s}
      containers: [{name: web, image: web, resources: {requests: {cpu: 900m, memory: 1Gi}}}]
`, s.name, class))
}

func (s *scene) scale(replicas int) {
	s.Helper()
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: s.name, Name: "web"}}
	patch := client.RawPatch("application/merge-patch+json", fmt.Appendf(nil, `{"spec":{"replicas":%d}}`, replicas))
	if err := s.Client.Patch(s.Context(), d, patch); err != nil {
		s.Fatal(err)
	}
}

func (s *scene) running(v *harness.View, want int) func() string {
	return func() string {
		n := 0
		pods := v.Pods(s.name)
		for _, p := range pods {
			if p.DeletionTimestamp == nil && p.Status.Phase == corev1.PodRunning {
				n++
			}
		}
		if n == want && len(pods) == want {
			return ""
		}
		return fmt.Sprintf("%d of %d pods run; want %d", n, len(pods), want)
	}
}

func (s *scene) nodes(v *harness.View) []corev1.Node {
	return slices.DeleteFunc(v.Nodes(), func(n corev1.Node) bool { return n.Labels["karpenter.sh/nodepool"] != s.name })
}
