// SPDX-License-Identifier: Apache-2.0

package nodeclass_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/smithy-go"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	awsv1 "karpenter/api/aws/v1"
	"karpenter/cloud/aws/expression"
	"karpenter/cloud/aws/image"
	"karpenter/cloud/aws/instancetype"
	"karpenter/cloud/aws/nodeclass"
	"karpenter/cloud/aws/reservation"
	"karpenter/cloud/aws/template"
	awsec2 "karpenter/cloud/ec2"
	"karpenter/control/controltest"
	"karpenter/kube/events"
)

// TestControllers runs the scripts in testdata. Beside the language of package
// controltest there is:
//
//	have images|subnets|groups|reservations NAME…
//	                     what the class selects; nothing at first. Images: those
//	                     with "gpu" in their name have drivers for GPUs, with
//	                     "arm" they are for arm64. Reservations end at the time
//	                     behind an "@"
//	have group NAME      the placement group
//	fail CALL CODE TEXT… until "mend CALL". Calls are those of AWS, and Images,
//	                     Profile, CIDR. For one subnet: RunInstances/NAME
//	with GATE            cel, no-rehearsal, isolated, no-reserved, gpu-devices; before the first reconcile
//	unknown-types        no instance type is known
func TestControllers(t *testing.T) {
	files, err := filepath.Glob("testdata/controllers/*")
	if err != nil || len(files) == 0 {
		t.Fatalf("no scripts: %v", err)
	}
	facts := allFacts(t)
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			controltest.Run(t, file, func(c *controltest.Cluster) { (&world{cluster: c, facts: facts, fails: map[string]error{}}).setup(t) })
		})
	}
}

// TestRegister adds the controllers to a manager.
func TestRegister(t *testing.T) {
	c := controltest.New(t)
	c.Setup(func(c *controltest.Cluster) { (&world{cluster: c}).setup(t) })
	c.Register(t)
}

func allFacts(t *testing.T) []*instancetype.Facts {
	descriptions, err := awsec2.Descriptions()
	if err != nil {
		t.Fatal(err)
	}
	var out []*instancetype.Facts
	for _, d := range descriptions {
		out = append(out, &instancetype.Facts{Description: d, Zones: []string{"a", "b"}})
	}
	return out
}

// world is AWS as the class sees it.
type world struct {
	cluster      *controltest.Cluster
	config       nodeclass.Config
	images       []awsv1.AMI
	subnets      []awsv1.Subnet
	groups       []awsv1.SecurityGroup
	reservations []awsv1.CapacityReservation
	group        *instancetype.PlacementGroup
	facts        []*instancetype.Facts
	fails        map[string]error
	used         []string
}

func (w *world) setup(t *testing.T) {
	c := w.cluster
	w.config = nodeclass.Config{
		Client: c.Client, Clock: c.Clock, ClusterName: "prod", ReservedCapacity: true,
		Cluster: instancetype.Cluster{Region: "eu-west-1"},
		AWS: nodeclass.AWS{
			Images: images{w}, Subnets: subnets{w}, SecurityGroups: groups{w}, Reservations: reservations{w},
			PlacementGroups: placement{w}, Profiles: profiles{w}, Templates: templates{w}, Launch: w,
			Facts: func() []*instancetype.Facts { return w.facts },
			CIDR:  func(context.Context) (string, error) { return "10.0.0.0/16", w.fails["CIDR"] },
		},
		Tell: func(class *awsv1.EC2NodeClass, eventType, reason, message string) {
			c.Recorder.Publish(events.Event{Object: class, Type: eventType, Reason: reason, Message: message})
		},
	}
	w.begin()
	c.Reconcilers["hash"] = &nodeclass.Hash{Client: c.Client, CABundle: "ca"}
	c.Reconcilers["collect"] = &nodeclass.Collector{Client: c.Client, Profiles: w}
	c.Commands["have"] = w.have
	c.Commands["fail"] = func(words []string) error {
		w.fails[words[0]] = &smithy.GenericAPIError{Code: words[1], Message: strings.Join(words[2:], " ")}
		switch words[1] {
		case "InternalError":
			w.fails[words[0]] = &smithy.GenericAPIError{Code: words[1], Fault: smithy.FaultServer}
		case "UnsupportedAlias":
			w.fails[words[0]] = &image.UnsupportedAliasError{Alias: awsv1.Alias{Family: awsv1.AMIFamilyAL2, Version: "latest"}, Kubernetes: "1.33", Hint: "use another"}
		}
		return nil
	}
	c.Commands["mend"] = func(words []string) error { delete(w.fails, words[0]); return nil }
	c.Commands["with"] = func(words []string) error { return w.with(words[0]) }
	c.Commands["unknown-types"] = func([]string) error { w.facts = nil; return nil }
}

// begin makes the controller again.
func (w *world) begin() { w.cluster.Reconcilers[""] = nodeclass.New(w.config) }

func (w *world) with(gate string) (err error) {
	switch gate {
	case "cel":
		w.config.Language, err = expression.NewLanguage()
	case "no-rehearsal":
		w.config.NoRehearsal = true
	case "isolated":
		w.config.IsolatedVPC = true
	case "no-reserved":
		w.config.ReservedCapacity = false
	case "gpu-devices":
		w.config.Cluster.GPUDevices = true
	default:
		return fmt.Errorf("unknown gate %s", gate)
	}
	w.begin()
	return err
}

func (w *world) have(words []string) error {
	names := words[1:]
	switch words[0] {
	case "images":
		w.images = nil
		for _, name := range names {
			w.images = append(w.images, ami(name))
		}
	case "subnets":
		w.subnets = nil
		for _, name := range names {
			w.subnets = append(w.subnets, awsv1.Subnet{ID: name, Zone: name[len(name)-1:]})
		}
	case "groups":
		w.groups = nil
		for _, name := range names {
			w.groups = append(w.groups, awsv1.SecurityGroup{ID: name})
		}
	case "reservations":
		w.reservations = nil
		for _, name := range names {
			id, end, ends := strings.Cut(name, "@")
			r := awsv1.CapacityReservation{ID: id, InstanceType: "m5.large", AvailabilityZone: "a", ReservationType: "default", State: "active"}
			if d, err := time.ParseDuration(end); ends && err == nil {
				at := metav1.NewTime(w.cluster.Clock.Now().Add(d))
				r.EndTime = &at
			}
			w.reservations = append(w.reservations, r)
		}
	case "group":
		w.group = &instancetype.PlacementGroup{ID: names[0], Strategy: "cluster"}
	default:
		return errors.New("what?")
	}
	return nil
}

func ami(name string) awsv1.AMI {
	arch, gpu := "amd64", corev1.NodeSelectorOpDoesNotExist
	if strings.Contains(name, "arm") {
		arch = "arm64"
	}
	if strings.Contains(name, "gpu") {
		gpu = corev1.NodeSelectorOpExists
	}
	return awsv1.AMI{ID: name, Requirements: []corev1.NodeSelectorRequirement{
		{Key: corev1.LabelArchStable, Operator: corev1.NodeSelectorOpIn, Values: []string{arch}},
		{Key: awsv1.InstanceGPUCountLabelKey, Operator: gpu},
	}}
}

type images struct{ *world }

func (w images) List(context.Context, *awsv1.EC2NodeClass) ([]awsv1.AMI, error) {
	return slices.Clone(w.images), w.fails["Images"]
}

type subnets struct{ *world }

func (w subnets) Of(context.Context, *awsv1.EC2NodeClass) ([]awsv1.Subnet, error) {
	return w.subnets, w.fails["DescribeSubnets"]
}

type groups struct{ *world }

func (w groups) Of(context.Context, *awsv1.EC2NodeClass) ([]awsv1.SecurityGroup, error) {
	return w.groups, w.fails["DescribeSecurityGroups"]
}

type reservations struct{ *world }

func (w reservations) Of(_ context.Context, terms []awsv1.CapacityReservationSelectorTerm) ([]awsv1.CapacityReservation, error, error) {
	if len(terms) == 0 {
		return nil, nil, nil
	}
	now := w.cluster.Clock.Now()
	ended := func(r awsv1.CapacityReservation) bool { return r.EndTime != nil && !r.EndTime.After(now) }
	return slices.DeleteFunc(slices.Clone(w.reservations), ended), w.fails["skip"], w.fails["DescribeCapacityReservations"]
}

type placement struct{ *world }

func (w placement) For(context.Context, *awsv1.EC2NodeClass) (*instancetype.PlacementGroup, error) {
	if err := w.fails["DescribePlacementGroups"]; err != nil {
		return nil, err
	}
	if w.group == nil {
		return nil, reservation.ErrNoGroup
	}
	return w.group, nil
}

type profiles struct{ *world }

func (w profiles) Ensure(_ context.Context, class *awsv1.EC2NodeClass) (string, error) {
	if own := class.Spec.InstanceProfile; own != nil {
		return *own, nil
	}
	return "profile-of-" + class.Spec.Role, w.fails["Profile"]
}
func (w profiles) Missing(name string) { w.cluster.Tell("profile %s is missing", name) }
func (w profiles) Without() string {
	if err := w.fails["ListInstanceProfiles"]; err != nil {
		return "profiles cannot be listed"
	}
	return ""
}
func (w profiles) Delete(_ context.Context, class *awsv1.EC2NodeClass) error {
	w.cluster.Tell("profiles of %s are deleted", class.Name)
	return w.fails["DeleteInstanceProfile"]
}

// Collect is that of profiles, which knows two.
func (w *world) Collect(_ context.Context, used map[string]bool) (gone []string, err error) {
	for _, name := range []string{"profile-of-nodes", "profile-of-claim"} {
		if !used[name] {
			gone = append(gone, name)
		}
	}
	w.cluster.Tell("profiles nobody uses: %v", gone)
	return gone, w.fails["ListInstanceProfiles"]
}

type templates struct{ *world }

func (w templates) Ensure(_ context.Context, want *template.Want) ([]template.Template, error) {
	t := want.Candidates[0].Type
	w.cluster.Tell("CreateLaunchTemplate %s %s %s with %s pods", t.Name, want.CapacityType, want.Tenancy, t.Capacity.Pods())
	if err := w.fails["CreateLaunchTemplate"]; err != nil {
		return nil, fmt.Errorf("create launch template: %w", err)
	}
	return []template.Template{{Name: "template-of-" + want.Class.Name}}, nil
}

func (w templates) DeleteAll(_ context.Context, class string) error {
	w.cluster.Tell("launch templates of %s are deleted", class)
	return w.fails["DeleteLaunchTemplate"]
}

func (w *world) CreateFleet(_ context.Context, in *ec2.CreateFleetInput, _ ...func(*ec2.Options)) (*ec2.CreateFleetOutput, error) {
	var overrides []string
	for _, o := range in.LaunchTemplateConfigs[0].Overrides {
		overrides = append(overrides, fmt.Sprintf("%s in %s", o.InstanceType, *o.SubnetId))
	}
	w.cluster.Tell("CreateFleet dry=%t %s %s: %s", *in.DryRun, *in.LaunchTemplateConfigs[0].LaunchTemplateSpecification.LaunchTemplateName, strings.Join(overrides, ", "), tagTexts(in.TagSpecifications))
	return nil, w.answer("CreateFleet")
}

func (w *world) RunInstances(_ context.Context, in *ec2.RunInstancesInput, _ ...func(*ec2.Options)) (*ec2.RunInstancesOutput, error) {
	subnet := *in.NetworkInterfaces[0].SubnetId
	w.cluster.Tell("RunInstances dry=%t %s %s in %s, %d interfaces of %v: %s", *in.DryRun, *in.LaunchTemplate.LaunchTemplateName, in.InstanceType, subnet,
		len(in.NetworkInterfaces), in.NetworkInterfaces[0].Groups, tagTexts(in.TagSpecifications))
	if err := w.fails["RunInstances/"+subnet]; err != nil {
		return nil, err
	}
	return nil, w.answer("RunInstances")
}

func (w *world) answer(call string) error {
	if err := w.fails[call]; err != nil {
		return err
	}
	return &smithy.GenericAPIError{Code: "DryRunOperation", Message: "Request would have succeeded"}
}

func tagTexts(specs []types.TagSpecification) string {
	var resources, tags []string
	for _, s := range specs {
		resources = append(resources, string(s.ResourceType))
		tags = nil
		for _, tag := range s.Tags {
			tags = append(tags, *tag.Key+"="+*tag.Value)
		}
	}
	return strings.Join(resources, "+") + " " + strings.Join(tags, ",")
}
