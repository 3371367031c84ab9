// SPDX-License-Identifier: Apache-2.0

package boot

import (
	"context"
	"encoding/base64"
	"log/slog"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
	clocktesting "k8s.io/utils/clock/testing"

	awsv1 "karpenter/api/aws/v1"
	"karpenter/cloud/aws/awsfake"
	"karpenter/cloud/aws/awsfake/wire"
	"karpenter/cloud/aws/userdata"
)

// farm is an AWS in memory behind HTTP, and a cluster that its machines join.
type farm struct {
	*testing.T
	aws   *awsfake.AWS
	clock *clocktesting.FakeClock
	ec2   *ec2.Client
	kube  *fake.Clientset
	nodes cache.Indexer
	loop  *loop
	log   *strings.Builder
}

func newFarm(t *testing.T) *farm {
	t.Helper()
	f := &farm{T: t, clock: clocktesting.NewFakeClock(time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)), kube: fake.NewClientset(), log: &strings.Builder{}}
	var err error
	f.aws, err = awsfake.New(awsfake.Config{Clock: f.clock, Types: []string{"m5.large", "m6g.large", "g4dn.8xlarge"}, BootDelay: 10 * time.Second, ShutdownDelay: 30 * time.Second})
	f.must(err)
	server := httptest.NewServer(wire.New(f.aws.Services()))
	t.Cleanup(server.Close)
	f.ec2 = ec2.New(ec2.Options{
		Region: "us-west-2", BaseEndpoint: &server.URL, Credentials: credentials.NewStaticCredentialsProvider("a", "b", ""), Retryer: aws.NopRetryer{},
	})
	f.nodes = cache.NewIndexer(cache.MetaNamespaceKeyFunc, nil)
	f.loop = newLoop(Config{
		EC2: f.ec2, Kube: f.kube, Region: "us-west-2", Cluster: "cluster", Delay: 25 * time.Second, Every: time.Second, Overhead: 0.05,
		Clock: f.clock, Log: slog.New(slog.NewTextHandler(f.log, nil)),
	}, corelisters.NewNodeLister(f.nodes))
	return f
}

func (f *farm) must(err error) {
	f.Helper()
	if err != nil {
		f.Fatal(err)
	}
}

// launch starts an instance with the user data.
func (f *farm) launch(name, kind, image, data string) string {
	f.Helper()
	images, err := f.ec2.DescribeImages(f.Context(), &ec2.DescribeImagesInput{Filters: []types.Filter{{Name: aws.String("name"), Values: []string{image}}}})
	f.must(err)
	subnets, err := f.ec2.DescribeSubnets(f.Context(), nil)
	f.must(err)
	_, err = f.ec2.CreateLaunchTemplate(f.Context(), &ec2.CreateLaunchTemplateInput{
		LaunchTemplateName: &name, LaunchTemplateData: &types.RequestLaunchTemplateData{
			ImageId: images.Images[0].ImageId, UserData: aws.String(base64.StdEncoding.EncodeToString([]byte(data))),
			BlockDeviceMappings: []types.LaunchTemplateBlockDeviceMappingRequest{
				{DeviceName: aws.String("/dev/xvda"), Ebs: &types.LaunchTemplateEbsBlockDeviceRequest{VolumeSize: aws.Int32(50)}},
			},
		},
	})
	f.must(err)
	out, err := f.ec2.CreateFleet(f.Context(), &ec2.CreateFleetInput{
		Type: types.FleetTypeInstant, TargetCapacitySpecification: &types.TargetCapacitySpecificationRequest{TotalTargetCapacity: aws.Int32(1), DefaultTargetCapacityType: "on-demand"},
		LaunchTemplateConfigs: []types.FleetLaunchTemplateConfigRequest{{
			LaunchTemplateSpecification: &types.FleetLaunchTemplateSpecificationRequest{LaunchTemplateName: &name, Version: aws.String("$Latest")},
			Overrides:                   []types.FleetLaunchTemplateOverridesRequest{{InstanceType: types.InstanceType(kind), SubnetId: subnets.Subnets[0].SubnetId}},
		}},
	})
	f.must(err)
	if len(out.Instances) != 1 {
		f.Fatalf("%+v", out.Errors)
	}
	return out.Instances[0].InstanceIds[0]
}

// look lets time pass and the loop look, with the nodes as they are.
func (f *farm) look(after time.Duration) []corev1.Node {
	f.Helper()
	f.clock.Step(after)
	f.must(f.loop.look(f.Context()))
	list, err := f.kube.CoreV1().Nodes().List(f.Context(), metav1.ListOptions{})
	f.must(err)
	var known []any
	for i := range list.Items {
		known = append(known, &list.Items[i])
	}
	f.must(f.nodes.Replace(known, ""))
	return list.Items
}

func rendered(t *testing.T) string {
	t.Helper()
	data, err := userdata.Render(&userdata.Machine{
		Family:       awsv1.AMIFamilyAL2023,
		Cluster:      &userdata.Cluster{Name: "cluster", Endpoint: "https://api.example.com", CABundle: "Y2E=", CIDR: "10.100.0.0/16"},
		CapacityType: "on-demand", Labels: map[string]string{"example.com/team": "a"}, MaxPods: 29,
		KubeReserved: corev1.ResourceList{"cpu": resource.MustParse("70m"), "memory": resource.MustParse("574Mi"), "ephemeral-storage": resource.MustParse("1Gi")},
	})
	if err != nil {
		t.Fatal(err)
	}
	return data.Text
}

func TestInstancesBecomeNodesAndEnd(t *testing.T) {
	f := newFarm(t)
	id := f.launch("one", "m5.large", "*al2023-x86_64-standard*", rendered(t))
	if nodes := f.look(15 * time.Second); len(nodes) != 0 {
		t.Fatalf("it runs, and its kubelet needs 10 seconds more: %v", nodes)
	}
	nodes := f.look(10 * time.Second)
	if len(nodes) != 1 {
		t.Fatalf("%v\n%s", nodes, f.log)
	}
	node := nodes[0]
	if node.Name != "ip-192-168-0-4.us-west-2.compute.internal" || node.Spec.ProviderID != "aws:///us-west-2a/"+id {
		t.Errorf("%s %s", node.Name, node.Spec.ProviderID)
	}
	if diff := cmp.Diff([]corev1.Taint{{Key: "karpenter.sh/unregistered", Effect: "NoExecute"}}, node.Spec.Taints); diff != "" {
		t.Error(diff)
	}
	for key, want := range map[string]string{
		"example.com/team": "a", "karpenter.sh/capacity-type": "on-demand", "node.kubernetes.io/instance-type": "m5.large",
		"topology.kubernetes.io/zone": "us-west-2a", "topology.k8s.aws/zone-id": "usw2-az2", "kubernetes.io/arch": "amd64", "kubernetes.io/os": "linux",
		"kubernetes.io/hostname": node.Name, "topology.kubernetes.io/region": "us-west-2",
	} {
		if node.Labels[key] != want {
			t.Errorf("label %s is %q, want %q", key, node.Labels[key], want)
		}
	}
	for name, want := range map[corev1.ResourceName]string{"cpu": "2 1930m", "memory": "7782Mi 7108Mi", "pods": "29 29", "ephemeral-storage": "50Gi 44Gi"} {
		capacity, allocatable := node.Status.Capacity[name], node.Status.Allocatable[name]
		if got := capacity.String() + " " + allocatable.String(); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
	_, err := f.ec2.TerminateInstances(t.Context(), &ec2.TerminateInstancesInput{InstanceIds: []string{id}})
	f.must(err)
	if nodes := f.look(time.Second); nodes[0].Annotations[heartbeatKey] != dead {
		t.Error("the instance shuts down, and its machine lives on")
	}
	f.mark(id, corev1.ConditionTrue)
	if nodes := f.look(time.Minute); len(nodes) != 1 {
		t.Error("a node is deleted before the cluster has noticed that its machine is dead")
	}
	f.mark(id, corev1.ConditionUnknown)
	if nodes := f.look(time.Second); len(nodes) != 0 {
		t.Error("the instance is gone and its node not ready, but it stays")
	}
	if nodes := f.look(time.Second); len(nodes) != 0 {
		t.Error("it has come back")
	}
}

// mark sets the condition Ready of the instance's node.
func (f *farm) mark(id string, ready corev1.ConditionStatus) {
	f.Helper()
	for _, object := range f.nodes.List() {
		node := object.(*corev1.Node).DeepCopy()
		if instanceID(node.Spec.ProviderID) == id {
			node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: ready}}
			_, err := f.kube.CoreV1().Nodes().UpdateStatus(f.Context(), node, metav1.UpdateOptions{})
			f.must(err)
			f.must(f.nodes.Update(node))
		}
	}
}

func TestForeignInstancesDoNotJoin(t *testing.T) {
	f := newFarm(t)
	f.launch("stranger", "m5.large", "*al2023-x86_64-standard*", strings.ReplaceAll(rendered(t), "name: cluster", "name: other"))
	f.launch("empty", "m6g.large", "*al2023-arm64-standard*", "")
	f.look(time.Minute)
	if nodes := f.look(time.Minute); len(nodes) != 0 {
		t.Errorf("%v", nodes)
	}
	for _, why := range []string{`it must join cluster \"other\"`, "there is no user data"} {
		if strings.Count(f.log.String(), why) != 1 {
			t.Errorf("%s is not said once:\n%s", why, f.log)
		}
	}
}

func TestGPUsAndArchitectures(t *testing.T) {
	f := newFarm(t)
	f.launch("gpu", "g4dn.8xlarge", "*al2023-x86_64-nvidia*", rendered(t))
	f.launch("arm", "m6g.large", "*al2023-arm64-standard*", rendered(t))
	seen := map[string]string{}
	for _, node := range f.look(time.Minute) {
		gpus := node.Status.Allocatable["nvidia.com/gpu"]
		seen[node.Labels["node.kubernetes.io/instance-type"]] = node.Labels["kubernetes.io/arch"] + " " + gpus.String()
	}
	if diff := cmp.Diff(map[string]string{"g4dn.8xlarge": "amd64 1", "m6g.large": "arm64 0"}, seen); diff != "" {
		t.Errorf("%s\n%s", diff, f.log)
	}
}

func TestRunStopsWhenTold(t *testing.T) {
	f := newFarm(t)
	f.launch("one", "m5.large", "*al2023-x86_64-standard*", rendered(t))
	f.clock.Step(time.Minute)
	created := make(chan struct{}, 1)
	watch, err := f.kube.CoreV1().Nodes().Watch(t.Context(), metav1.ListOptions{})
	f.must(err)
	go func() {
		<-watch.ResultChan()
		created <- struct{}{}
	}()
	done := make(chan error, 1)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	go func() { done <- Run(ctx, f.loop.Config) }()
	<-created
	stop()
	if err := <-done; err != nil {
		t.Error(err)
	}
}
