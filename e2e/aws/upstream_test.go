// SPDX-License-Identifier: Apache-2.0

package aws

import (
	"encoding/base64"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	iamtypes "github.com/aws/aws-sdk-go-v2/service/iam/types"
	"github.com/aws/aws-sdk-go-v2/service/ssm"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	awsv1 "karpenter/api/aws/v1"
	v1 "karpenter/api/v1"
	"karpenter/e2e/harness"
)

// upstream makes what upstream Karpenter leaves in a cluster and an account: one
// NodePool with its EC2NodeClass, both of the name of the scene.
type upstream struct {
	*scene
	view *harness.View
	// Versions of the rules by which hashes were made, and the hashes if they are
	// not those of today's rules.
	poolVersion, classVersion, hash string

	pool    v1.NodePool
	class   awsv1.EC2NodeClass
	image   string
	profile string
	subnets []ec2types.Subnet
	groups  []string
}

// machine is one that upstream has launched.
type machine struct {
	name         string // of the NodeClaim
	instanceType string
	capacityType string
	family       string
	generation   string
	memory       string // MiB
}

// stamps are the annotations about what a claim was made from.
func (u *upstream) stamps() (pool, class map[string]string) {
	poolHash, classHash := u.hash, u.hash
	if u.hash == "" {
		poolHash, classHash = u.pool.Hash(), u.class.Hash(u.authority())
	}
	return map[string]string{v1.NodePoolHashAnnotationKey: poolHash, v1.NodePoolHashVersionAnnotationKey: u.poolVersion},
		map[string]string{awsv1.HashAnnotationKey: classHash, awsv1.HashVersionAnnotationKey: u.classVersion}
}

// authority is the cluster's certificate authority as settings have it.
func (u *upstream) authority() string { return base64.StdEncoding.EncodeToString(u.Config.CAData) }

// make makes the NodePool and the EC2NodeClass, as they were applied by a user and
// completed by upstream.
func (u *upstream) make() {
	u.Helper()
	u.Apply(u.T, fmt.Sprintf(`
apiVersion: karpenter.k8s.aws/v1
kind: EC2NodeClass
metadata: {name: %[1]s, finalizers: [karpenter.k8s.aws/termination]}
spec:
  role: KarpenterNodeRole-prod
  amiSelectorTerms: [{alias: al2023@latest}]
  subnetSelectorTerms: [{tags: {karpenter.sh/discovery: prod}}]
  securityGroupSelectorTerms: [{tags: {karpenter.sh/discovery: prod}}]
  tags: {team: platform}
---
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: %[1]s}
spec:
  template:
    metadata: {labels: {team: platform}}
    spec:
      requirements:
        - {key: karpenter.sh/capacity-type, operator: In, values: [spot, on-demand]}
        - {key: kubernetes.io/arch, operator: In, values: [amd64]}
        - {key: karpenter.k8s.aws/instance-category, operator: In, values: [c, m, r]}
        - {key: karpenter.k8s.aws/instance-generation, operator: Gt, values: ["4"]}
      nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: %[1]s}
  disruption:
    consolidateAfter: 0s
    budgets: [{nodes: 100%%, reasons: [Drifted]}, {nodes: "0", reasons: [Empty, Underutilized]}]
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
`, u.name))
	u.fetch()
	pool, class := u.stamps()
	u.annotate(&u.pool, pool)
	u.annotate(&u.class, class)
	u.profiled()
}

func (u *upstream) fetch() {
	u.Helper()
	key := client.ObjectKey{Name: u.name}
	must(u.T, u.Client.Get(u.Context(), key, &u.pool))
	must(u.T, u.Client.Get(u.Context(), key, &u.class))
}

func (u *upstream) annotate(o client.Object, annotations map[string]string) {
	u.Helper()
	before := o.DeepCopyObject().(client.Object)
	o.SetAnnotations(annotations)
	must(u.T, u.Client.Patch(u.Context(), o, client.MergeFrom(before)))
}

// profiled makes the instance profile, finds what machines are made of, and says so
// in the status.
func (u *upstream) profiled() {
	u.Helper()
	cfg, ctx := connect(u.T, u.server), u.Context()
	profiles := iam.NewFromConfig(cfg)
	u.profile = "prod_1234567890" + u.name
	_, err := profiles.CreateInstanceProfile(ctx, &iam.CreateInstanceProfileInput{
		InstanceProfileName: &u.profile, Path: aws.String(fmt.Sprintf("/karpenter/us-east-1/%s/%s/", cluster, u.class.UID)),
		Tags: []iamtypes.Tag{
			{Key: aws.String("kubernetes.io/cluster/" + cluster), Value: aws.String("owned")}, {Key: aws.String("eks:eks-cluster-name"), Value: aws.String(cluster)},
			{Key: aws.String("karpenter.k8s.aws/ec2nodeclass"), Value: &u.name}, {Key: aws.String("topology.kubernetes.io/region"), Value: aws.String("us-east-1")},
		},
	})
	must(u.T, err)
	_, err = profiles.AddRoleToInstanceProfile(ctx, &iam.AddRoleToInstanceProfileInput{InstanceProfileName: &u.profile, RoleName: aws.String("KarpenterNodeRole-prod")})
	must(u.T, err)
	version, err := discovery.NewDiscoveryClientForConfigOrDie(u.Config).ServerVersion()
	must(u.T, err)
	parameter, err := ssm.NewFromConfig(cfg).GetParameter(ctx, &ssm.GetParameterInput{Name: aws.String(fmt.Sprintf(
		"/aws/service/eks/optimized-ami/%s.%s/amazon-linux-2023/x86_64/standard/recommended/image_id", version.Major, version.Minor))})
	must(u.T, err)
	u.image = *parameter.Parameter.Value
	discovery := []ec2types.Filter{{Name: aws.String("tag:karpenter.sh/discovery"), Values: []string{cluster}}}
	subnets, err := ec2.NewFromConfig(cfg).DescribeSubnets(ctx, &ec2.DescribeSubnetsInput{Filters: discovery})
	must(u.T, err)
	u.subnets = subnets.Subnets
	before := u.class.DeepCopy()
	groups, err := ec2.NewFromConfig(cfg).DescribeSecurityGroups(ctx, &ec2.DescribeSecurityGroupsInput{Filters: discovery})
	must(u.T, err)
	for _, g := range groups.SecurityGroups {
		u.groups = append(u.groups, *g.GroupId)
		u.class.Status.SecurityGroups = append(u.class.Status.SecurityGroups, awsv1.SecurityGroup{ID: *g.GroupId, Name: aws.ToString(g.GroupName)})
	}
	for _, subnet := range u.subnets {
		u.class.Status.Subnets = append(u.class.Status.Subnets, awsv1.Subnet{ID: *subnet.SubnetId, Zone: *subnet.AvailabilityZone, ZoneID: aws.ToString(subnet.AvailabilityZoneId)})
	}
	u.class.Status.InstanceProfile = u.profile
	u.class.Status.AMIs = []awsv1.AMI{{ID: u.image, Requirements: []corev1.NodeSelectorRequirement{
		{Key: corev1.LabelArchStable, Operator: "In", Values: []string{"amd64"}},
		{Key: awsv1.InstanceGPUCountLabelKey, Operator: "DoesNotExist"}, {Key: awsv1.InstanceAcceleratorCountLabelKey, Operator: "DoesNotExist"}}}}
	for _, condition := range []string{
		awsv1.AMIsReadyCondition, awsv1.SubnetsReadyCondition, awsv1.SecurityGroupsReadyCondition, awsv1.InstanceProfileReadyCondition,
		awsv1.ValidationSucceededCondition, v1.ReadyCondition,
	} {
		u.class.Status.Conditions = append(u.class.Status.Conditions, metav1.Condition{
			Type: condition, Status: metav1.ConditionTrue, Reason: condition, ObservedGeneration: 1, LastTransitionTime: metav1.Now()})
	}
	must(u.T, u.Client.Status().Patch(ctx, &u.class, client.MergeFrom(before)))
}

// userData is what an AL2023 machine is told.
func (u *upstream) userData(m machine) string {
	return base64.StdEncoding.EncodeToString(fmt.Appendf(nil, `MIME-Version: 1.0
Content-Type: multipart/mixed; boundary="//"

--//
Content-Type: application/node.eks.aws

apiVersion: node.eks.aws/v1alpha1
kind: NodeConfig
spec:
  cluster:
    name: %s
    apiServerEndpoint: %s
    certificateAuthority: %s
    cidr: 10.100.0.0/16
  kubelet:
    config:
      clusterDNS: [10.100.0.10]
      maxPods: 29
      registerWithTaints: [{effect: NoExecute, key: karpenter.sh/unregistered}]
    flags:
    - --node-labels="karpenter.k8s.aws/ec2nodeclass=%s,karpenter.sh/capacity-type=%s,karpenter.sh/nodepool=%[4]s,team=platform"

--//--
`, cluster, u.Config.Host, u.authority(), u.name, m.capacityType))
}

// launch starts an instance as upstream does: a launch template and a fleet of one.
func (u *upstream) launch(m machine) (instance string, subnet ec2types.Subnet) {
	u.Helper()
	cloud := ec2.NewFromConfig(connect(u.T, u.server))
	tag := func(kind ec2types.ResourceType, more ...ec2types.Tag) ec2types.TagSpecification {
		return ec2types.TagSpecification{ResourceType: kind, Tags: append(more,
			ec2types.Tag{Key: aws.String("kubernetes.io/cluster/" + cluster), Value: aws.String("owned")},
			ec2types.Tag{Key: aws.String("eks:eks-cluster-name"), Value: aws.String(cluster)},
			ec2types.Tag{Key: aws.String("karpenter.sh/nodepool"), Value: &u.name},
			ec2types.Tag{Key: aws.String("karpenter.k8s.aws/ec2nodeclass"), Value: &u.name},
			ec2types.Tag{Key: aws.String("team"), Value: aws.String("platform")})}
	}
	template := "karpenter.k8s.aws/1234567890" + m.name
	_, err := cloud.CreateLaunchTemplate(u.Context(), &ec2.CreateLaunchTemplateInput{
		LaunchTemplateName: &template, TagSpecifications: []ec2types.TagSpecification{tag(ec2types.ResourceTypeLaunchTemplate)},
		LaunchTemplateData: &ec2types.RequestLaunchTemplateData{
			ImageId: &u.image, UserData: aws.String(u.userData(m)),
			IamInstanceProfile: &ec2types.LaunchTemplateIamInstanceProfileSpecificationRequest{Name: &u.profile},
			NetworkInterfaces:  []ec2types.LaunchTemplateInstanceNetworkInterfaceSpecificationRequest{{DeviceIndex: aws.Int32(0), Groups: u.groups}},
			MetadataOptions: &ec2types.LaunchTemplateInstanceMetadataOptionsRequest{
				HttpEndpoint: "enabled", HttpProtocolIpv6: "disabled", HttpPutResponseHopLimit: aws.Int32(1), HttpTokens: "required"},
		},
	})
	must(u.T, err)
	subnet = u.subnets[0]
	fleet, err := cloud.CreateFleet(u.Context(), &ec2.CreateFleetInput{
		Type: ec2types.FleetTypeInstant,
		LaunchTemplateConfigs: []ec2types.FleetLaunchTemplateConfigRequest{{
			LaunchTemplateSpecification: &ec2types.FleetLaunchTemplateSpecificationRequest{LaunchTemplateName: &template, Version: aws.String("$Latest")},
			Overrides: []ec2types.FleetLaunchTemplateOverridesRequest{{
				InstanceType: ec2types.InstanceType(m.instanceType), SubnetId: subnet.SubnetId, AvailabilityZone: subnet.AvailabilityZone}},
		}},
		TargetCapacitySpecification: &ec2types.TargetCapacitySpecificationRequest{
			TotalTargetCapacity: aws.Int32(1), DefaultTargetCapacityType: ec2types.DefaultTargetCapacityType(m.capacityType)},
		TagSpecifications: []ec2types.TagSpecification{tag(ec2types.ResourceTypeInstance), tag(ec2types.ResourceTypeVolume), tag(ec2types.ResourceTypeFleet)},
	})
	must(u.T, err)
	if len(fleet.Instances) != 1 || len(fleet.Instances[0].InstanceIds) != 1 {
		u.Fatalf("the fleet of %s: %+v", m.name, fleet)
	}
	return fleet.Instances[0].InstanceIds[0], subnet
}

// labels are those of the claim, which the Node has, too.
func (u *upstream) labels(m machine, subnet ec2types.Subnet) map[string]string {
	return map[string]string{
		v1.NodePoolLabelKey: u.name, awsv1.NodeClassLabelKey: u.name, v1.CapacityTypeLabelKey: m.capacityType, "team": "platform",
		corev1.LabelInstanceTypeStable: m.instanceType, corev1.LabelTopologyZone: *subnet.AvailabilityZone, corev1.LabelTopologyRegion: "us-east-1",
		corev1.LabelArchStable: "amd64", corev1.LabelOSStable: "linux", awsv1.ZoneIDLabelKey: aws.ToString(subnet.AvailabilityZoneId),
		awsv1.InstanceCategoryLabelKey: m.family[:1], awsv1.InstanceFamilyLabelKey: m.family, awsv1.InstanceGenerationLabelKey: m.generation,
		awsv1.InstanceSizeLabelKey: "large", awsv1.InstanceCPULabelKey: "2", awsv1.InstanceMemoryLabelKey: m.memory,
		awsv1.InstanceHypervisorLabelKey: "nitro", awsv1.InstanceTenancyLabelKey: "default",
	}
}

// run makes the claim of a running machine and has its Node join, all as upstream
// has it once a machine is initialized. It returns the instance.
func (u *upstream) run(m machine) string {
	u.Helper()
	instance, subnet := u.launch(m)
	providerID := "aws:///" + *subnet.AvailabilityZone + "/" + instance
	labels := u.labels(m, subnet)
	node := u.joined(providerID)
	claim := u.claim(m, labels)
	must(u.T, u.Client.Create(u.Context(), claim))
	before := claim.DeepCopy()
	claim.Status = v1.NodeClaimStatus{
		ProviderID: providerID, NodeName: node.Name, ImageID: u.image, Capacity: node.Status.Capacity, Allocatable: node.Status.Allocatable,
		LastPodEventTime: metav1.NewTime(time.Now().Add(-time.Hour).Truncate(time.Second)),
	}
	for _, condition := range []string{v1.LaunchedCondition, v1.RegisteredCondition, v1.InitializedCondition, v1.ReadyCondition} {
		claim.Status.Conditions = append(claim.Status.Conditions, v1.Condition{
			Type: condition, Status: metav1.ConditionTrue, Reason: condition, ObservedGeneration: 1, LastTransitionTime: metav1.Now()})
	}
	must(u.T, u.Client.Status().Patch(u.Context(), claim, client.MergeFrom(before)))
	was := node.DeepCopy()
	labels[v1.NodeRegisteredLabelKey], labels[v1.NodeInitializedLabelKey] = "true", "true"
	for key, value := range labels {
		node.Labels[key] = value
	}
	controllerutil.AddFinalizer(node, v1.TerminationFinalizer)
	node.OwnerReferences = append(node.OwnerReferences, metav1.OwnerReference{
		APIVersion: "karpenter.sh/v1", Kind: "NodeClaim", Name: claim.Name, UID: claim.UID, BlockOwnerDeletion: aws.Bool(true)})
	var taints []corev1.Taint
	for _, taint := range node.Spec.Taints {
		if taint.Key != "karpenter.sh/unregistered" {
			taints = append(taints, taint)
		}
	}
	node.Spec.Taints = taints
	must(u.T, u.Client.Patch(u.Context(), node, client.MergeFrom(was)))
	return instance
}

// joined waits until the machine's Node is there and ready.
func (u *upstream) joined(providerID string) *corev1.Node {
	u.Helper()
	var found *corev1.Node
	u.view.Until("the node of "+providerID+" joins", patience, func() string {
		for _, n := range u.view.Nodes() {
			for _, c := range n.Status.Conditions {
				if n.Spec.ProviderID == providerID && c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue {
					found = n.DeepCopy()
				}
			}
		}
		if found == nil {
			return "it is not there, or not ready"
		}
		return ""
	})
	return found
}

func (u *upstream) claim(m machine, labels map[string]string) *v1.NodeClaim {
	annotations := map[string]string{
		awsv1.TaggedAnnotationKey: "true", awsv1.ClusterNameTaggedAnnotationKey: "true",
		awsv1.InstanceProfileNameAnnotationKey: u.profile, "karpenter.sh/nodeclaim-min-values-relaxed": "false",
	}
	pool, class := u.stamps()
	for _, stamps := range []map[string]string{pool, class} {
		for key, value := range stamps {
			annotations[key] = value
		}
	}
	in := func(key string, values ...string) v1.NodeSelectorRequirementWithMinValues {
		return v1.NodeSelectorRequirementWithMinValues{Key: key, Operator: corev1.NodeSelectorOpIn, Values: values}
	}
	claim := &v1.NodeClaim{ObjectMeta: metav1.ObjectMeta{
		Name: m.name, Labels: map[string]string{}, Annotations: annotations, Finalizers: []string{v1.TerminationFinalizer},
		OwnerReferences: []metav1.OwnerReference{{APIVersion: "karpenter.sh/v1", Kind: "NodePool", Name: u.name, UID: u.pool.UID, BlockOwnerDeletion: aws.Bool(true)}},
	}}
	for key, value := range labels {
		claim.Labels[key] = value
	}
	claim.Spec = v1.NodeClaimSpec{
		NodeClassRef: u.pool.Spec.Template.Spec.NodeClassRef, ExpireAfter: u.pool.Spec.Template.Spec.ExpireAfter,
		Resources: v1.ResourceRequirements{Requests: corev1.ResourceList{"cpu": resource.MustParse("1800m"), "memory": resource.MustParse("2Gi"), "pods": resource.MustParse("2")}},
		Requirements: []v1.NodeSelectorRequirementWithMinValues{
			in(v1.NodePoolLabelKey, u.name), in(awsv1.NodeClassLabelKey, u.name), in("team", "platform"), in(corev1.LabelArchStable, "amd64"),
			in(v1.CapacityTypeLabelKey, "spot", "on-demand"), in(awsv1.InstanceCategoryLabelKey, "c", "m", "r"),
			in(corev1.LabelInstanceTypeStable, m.instanceType, "c5a.large", "m5a.large", "m5.large", "r5a.large"),
			{Key: awsv1.InstanceGenerationLabelKey, Operator: "Gt", Values: []string{"4"}},
		},
	}
	return claim
}
