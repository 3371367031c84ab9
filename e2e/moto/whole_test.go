package moto

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	ekstypes "github.com/aws/aws-sdk-go-v2/service/eks/types"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	awsv1 "karpenter/api/aws/v1"
	v1 "karpenter/api/v1"
	awsclient "karpenter/cloud/aws/client"
	"karpenter/e2e/harness"
)

// patience is how long anything may take on a busy machine.
const patience = 3 * time.Minute

// name is the cluster's, the queue's and that of all objects of the test.
const name = "moto"

// world is a cluster whose machines are moto's.
type world struct {
	*testing.T
	*harness.Cluster
	*harness.View
	aws  *awsclient.Services
	seed *seed
}

func (w *world) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

// TestWholeOnMoto: the program as users run it on EKS, with an AWS that is not
// ours: pods get machines, an interrupted machine is replaced, and at the end
// nothing is left.
func TestWholeOnMoto(t *testing.T) {
	w := newWorld(t)
	w.apply(&awsv1.EC2NodeClass{}, fmt.Sprintf(`
metadata: {name: moto}
spec:
  role: KarpenterNodeRole-moto
  amiFamily: AL2023
  amiSelectorTerms: [{id: %s}]
  subnetSelectorTerms: [{tags: {karpenter.sh/discovery: moto}}]
  securityGroupSelectorTerms: [{tags: {karpenter.sh/discovery: moto}}]
`, w.image()))
	w.apply(&v1.NodePool{}, `
metadata: {name: moto}
spec:
  disruption: {consolidateAfter: 0s, budgets: [{nodes: 100%}]}
  template:
    spec:
      nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: moto}
      requirements:
        - {key: karpenter.sh/capacity-type, operator: In, values: [spot]} # of others moto forgets the security groups
        - {key: node.kubernetes.io/instance-type, operator: In, values: [m5.large]}
`)
	deployment := w.deploy(3)
	w.Until("pods run", patience, w.running(3))
	if ids, nodes := w.instances(), w.nodes(); len(ids) != 3 || !slices.Equal(ids, nodes) {
		t.Errorf("moto runs %v, the nodes are %v", ids, nodes)
	}
	if templates, profiles := w.helpers(); len(templates) == 0 || len(profiles) != 1 {
		t.Errorf("launch templates %v and instance profiles %v for them", templates, profiles)
	}

	interrupted := w.nodes()[0]
	w.must(w.seed.Send(t.Context(), name, fmt.Sprintf(
		`{"version":"0","id":"1","detail-type":"EC2 Spot Instance Interruption Warning","source":"aws.ec2","account":"123456789012","time":%q,`+
			`"region":"us-east-1","resources":[],"detail":{"instance-id":%q,"instance-action":"terminate"}}`,
		time.Now().UTC().Format(time.RFC3339), interrupted)))
	w.Until("the interrupted machine is replaced", patience, func() string {
		if nodes := w.nodes(); slices.Contains(nodes, interrupted) || len(nodes) != 3 {
			return fmt.Sprintf("nodes of instances %v", nodes)
		}
		return w.running(3)()
	})
	if ids := w.instances(); slices.Contains(ids, interrupted) || !slices.Equal(ids, w.nodes()) {
		t.Errorf("moto runs %v, the nodes are %v, interrupted was %s", ids, w.nodes(), interrupted)
	}

	w.must(w.Client.Delete(t.Context(), deployment))
	w.Until("nothing runs", patience, func() string {
		if nodes, claims := len(w.Nodes()), len(w.Claims()); nodes+claims > 0 {
			return fmt.Sprintf("%d nodes and %d claims are left", nodes, claims)
		}
		return ""
	})
	w.remove(&v1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: name}})
	w.remove(&awsv1.EC2NodeClass{ObjectMeta: metav1.ObjectMeta{Name: name}})
	w.nothingLeft()
}

// newWorld starts everything, and makes in moto what an installation on EKS
// makes.
func newWorld(t *testing.T) *world {
	cluster, err := harness.Start(t.Context(), harness.Options{Kubelets: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := cluster.Stop(); err != nil {
			t.Error(err)
		}
	})
	moto := harness.StartMoto(t)
	for _, variable := range moto.Environment() {
		key, value, _ := strings.Cut(variable, "=")
		t.Setenv(key, value)
	}
	w := &world{T: t, Cluster: cluster, View: cluster.Watch(t), seed: newSeed(t)}
	w.aws, err = awsclient.Connect(t.Context(), "test")
	w.must(err)
	w.furnish()
	cluster.StartMachines(t, moto.URL, "us-east-1", name)
	cluster.StartController(t, "CLOUD_PROVIDER=aws", "CLUSTER_NAME="+name, "CLUSTER_ENDPOINT="+cluster.Config.Host, "INTERRUPTION_QUEUE="+name)
	return w
}

func (w *world) furnish() {
	ctx := w.Context()
	w.must(w.seed.Role(ctx, "KarpenterNodeRole-"+name))
	w.must(w.seed.Queue(ctx, name))
	subnets, err := w.aws.EC2.DescribeSubnets(ctx, &ec2.DescribeSubnetsInput{Filters: []ec2types.Filter{{Name: aws.String("default-for-az"), Values: []string{"true"}}}})
	w.must(err)
	vpc := subnets.Subnets[0].VpcId
	groups, err := w.aws.EC2.DescribeSecurityGroups(ctx, &ec2.DescribeSecurityGroupsInput{Filters: []ec2types.Filter{
		{Name: aws.String("group-name"), Values: []string{"default"}}, {Name: aws.String("vpc-id"), Values: []string{*vpc}},
	}})
	w.must(err)
	marked := []string{*groups.SecurityGroups[0].GroupId}
	for _, s := range subnets.Subnets {
		marked = append(marked, *s.SubnetId)
	}
	_, err = w.aws.EC2.CreateTags(ctx, &ec2.CreateTagsInput{Resources: marked, Tags: []ec2types.Tag{{Key: aws.String("karpenter.sh/discovery"), Value: aws.String(name)}}})
	w.must(err)
	cfg, err := config.LoadDefaultConfig(ctx)
	w.must(err)
	_, err = eks.NewFromConfig(cfg).CreateCluster(ctx, &eks.CreateClusterInput{
		Name: aws.String(name), RoleArn: aws.String("arn:aws:iam::123456789012:role/eks"),
		ResourcesVpcConfig:      &ekstypes.VpcConfigRequest{SubnetIds: []string{*subnets.Subnets[0].SubnetId, *subnets.Subnets[1].SubnetId}},
		KubernetesNetworkConfig: &ekstypes.KubernetesNetworkConfigRequest{ServiceIpv4Cidr: aws.String("10.96.0.0/16")},
	})
	w.must(err)
}

// image is one of those that moto ships.
func (w *world) image() string {
	w.Helper()
	out, err := w.aws.EC2.DescribeImages(w.Context(), &ec2.DescribeImagesInput{Filters: []ec2types.Filter{{Name: aws.String("name"), Values: []string{"amzn2-ami-hvm-*-x86_64-gp2"}}}})
	w.must(err)
	if len(out.Images) == 0 {
		w.Fatal("moto ships no image of Amazon Linux")
	}
	return *out.Images[0].ImageId
}

func (w *world) apply(into client.Object, text string) {
	w.Helper()
	w.must(yaml.UnmarshalStrict([]byte(text), into))
	w.must(w.Client.Create(w.Context(), into))
}

// deploy makes pods of which an m5.large takes one.
func (w *world) deploy(pods int32) *appsv1.Deployment {
	w.Helper()
	d := &appsv1.Deployment{}
	w.apply(d, fmt.Sprintf(`
metadata: {name: web, namespace: default}
spec:
  replicas: %d
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      terminationGracePeriodSeconds: 1
      containers: [{name: web, image: web, resources: {requests: {cpu: 1500m, memory: 1Gi}}}]
`, pods))
	return d
}

// running says what keeps n pods from running.
func (w *world) running(n int) func() string {
	return func() string {
		running := 0
		for _, p := range w.Pods("default") {
			if p.Status.Phase == corev1.PodRunning && p.DeletionTimestamp == nil {
				running++
			}
		}
		if running == n {
			return ""
		}
		return fmt.Sprintf("%d of %d pods run", running, n)
	}
}

// nodes are the instances that have become nodes. Sorted.
func (w *world) nodes() (ids []string) {
	for _, n := range w.Nodes() {
		ids = append(ids, n.Spec.ProviderID[strings.LastIndexByte(n.Spec.ProviderID, '/')+1:])
	}
	slices.Sort(ids)
	return ids
}

// instances are those that run in moto. Sorted.
func (w *world) instances() (ids []string) {
	w.Helper()
	out, err := w.aws.EC2.DescribeInstances(w.Context(), &ec2.DescribeInstancesInput{
		Filters: []ec2types.Filter{{Name: aws.String("instance-state-name"), Values: []string{"pending", "running", "stopping", "stopped"}}},
	})
	w.must(err)
	for _, r := range out.Reservations {
		for _, i := range r.Instances {
			ids = append(ids, *i.InstanceId)
		}
	}
	slices.Sort(ids)
	return ids
}

// remove deletes the object and waits until it is gone.
func (w *world) remove(o client.Object) {
	w.Helper()
	w.must(w.Client.Delete(w.Context(), o))
	err := wait.PollUntilContextTimeout(w.Context(), 100*time.Millisecond, patience, true, func(ctx context.Context) (bool, error) {
		err := w.Client.Get(ctx, client.ObjectKeyFromObject(o), o)
		return apierrors.IsNotFound(err), client.IgnoreNotFound(err)
	})
	if err != nil {
		w.Fatalf("%T %s is still there: %v", o, o.GetName(), err)
	}
}

// helpers are the names of launch templates and instance profiles in the account.
func (w *world) helpers() (templates, profiles []string) {
	w.Helper()
	made, err := w.aws.EC2.DescribeLaunchTemplates(w.Context(), &ec2.DescribeLaunchTemplatesInput{})
	w.must(err)
	for _, t := range made.LaunchTemplates {
		templates = append(templates, *t.LaunchTemplateName)
	}
	listed, err := w.aws.IAM.ListInstanceProfiles(w.Context(), &iam.ListInstanceProfilesInput{})
	w.must(err)
	for _, p := range listed.InstanceProfiles {
		profiles = append(profiles, *p.InstanceProfileName)
	}
	return templates, profiles
}

// nothingLeft looks for what Karpenter may have forgotten in the account.
func (w *world) nothingLeft() {
	w.Helper()
	templates, profiles := w.helpers()
	if ids := w.instances(); len(ids)+len(templates)+len(profiles) > 0 {
		w.Errorf("instances %v, launch templates %v and instance profiles %v are left", ids, templates, profiles)
	}
}
