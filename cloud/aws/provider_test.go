// SPDX-License-Identifier: Apache-2.0

package aws

import (
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	awsv1 "karpenter/api/aws/v1"
	v1 "karpenter/api/v1"
	"karpenter/cloud"
	"karpenter/cloud/aws/awsfake"
	"karpenter/cloud/aws/instancetype"
	"karpenter/cloud/aws/shortage"
	"karpenter/model"
)

func reasonOf(err error) string {
	var create *cloud.CreateError
	if errors.As(err, &create) {
		return create.Reason
	}
	return ""
}

// spec 65/90: nothing is launched with a class that is not ready for it, and
// whether the claim is deleted depends on whether the class may be ready soon.
func TestGates(t *testing.T) {
	condition := func(c *awsv1.EC2NodeClass) *metav1.Condition {
		if len(c.Status.Conditions) == 0 {
			return &metav1.Condition{}
		}
		return &c.Status.Conditions[0]
	}
	for name, c := range map[string]struct {
		change func(*awsv1.EC2NodeClass)
		is     func(error) bool
		reason string
		said   string
	}{
		"not ready": {
			change: func(c *awsv1.EC2NodeClass) {
				condition(c).Status, condition(c).Message = metav1.ConditionFalse, "no subnets"
			},
			is: cloud.IsNodeClassNotReady, said: "no subnets",
		},
		"unknown": {
			change: func(c *awsv1.EC2NodeClass) { condition(c).Status = metav1.ConditionUnknown },
			is:     cloud.IsCreateError, reason: "NodeClassReadinessUnknown",
		},
		"never looked at": {
			change: func(c *awsv1.EC2NodeClass) { c.Status.Conditions = nil },
			is:     cloud.IsCreateError, reason: "NodeClassReadinessUnknown",
		},
		"older than the spec": {
			change: func(c *awsv1.EC2NodeClass) { condition(c).ObservedGeneration = 7 },
			is:     cloud.IsNodeClassNotReady, said: "nodeclass status has not been reconciled against the latest spec",
		},
		"tags of ours": {
			change: func(c *awsv1.EC2NodeClass) { c.Spec.Tags = map[string]string{awsv1.NodePoolTagKey: "x"} },
			is:     cloud.IsNodeClassNotReady, said: awsv1.NodePoolTagKey,
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRegion(t, nil)
			r.class(c.change)
			_, err := r.Create(t.Context(), r.claim("claim"))
			if !c.is(err) || reasonOf(err) != c.reason || !strings.Contains(err.Error(), c.said) {
				t.Errorf("error %v", err)
			}
			check(t, "events", r.events, []string(nil))
			check(t, "fleets", r.aws.Calls()["CreateFleet"], 0)
		})
	}
}

// spec 65/90: without its class a claim is abandoned, and told so.
func TestNoClass(t *testing.T) {
	r := newRegion(t, nil)
	class := r.class(func(c *awsv1.EC2NodeClass) { c.Finalizers = []string{awsv1.TerminationFinalizer} })
	must(t, r.api.Delete(t.Context(), class))
	if _, err := r.Create(t.Context(), r.claim("deleting")); !cloud.IsInsufficientCapacity(err) {
		t.Errorf("class is being deleted: %v", err)
	}
	class.Finalizers = nil
	must(t, client.IgnoreNotFound(r.api.Patch(t.Context(), &awsv1.EC2NodeClass{ObjectMeta: metav1.ObjectMeta{Name: "default"}},
		client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"finalizers":null}}`)))))
	if _, err := r.Create(t.Context(), r.claim("deleted")); !cloud.IsInsufficientCapacity(err) {
		t.Errorf("class is gone: %v", err)
	}
	check(t, "events", r.events, []string{"Warning deleting: Failed resolving NodeClass", "Warning deleted: Failed resolving NodeClass"})
	if _, err := r.InstanceTypes(t.Context(), r.pool); err == nil {
		t.Error("types without a class")
	}
}

func TestTypesUnknown(t *testing.T) {
	r := newRegion(t, nil)
	r.typesErr = errors.New("no instance types found")
	_, err := r.Create(t.Context(), r.claim("claim"))
	check(t, "reason", reasonOf(err), "InstanceTypeResolutionFailed")
}

// spec 65/94: what a claim learns from its launch.
func TestMachine(t *testing.T) {
	r := newRegion(t, nil)
	m, err := r.Create(t.Context(), r.claim("claim", in(model.LabelInstanceType, "m5.large"), in(model.LabelZone, "us-west-2b")))
	must(t, err)
	class := r.getClass()
	check(t, "annotations", m.Annotations, map[string]string{
		awsv1.HashAnnotationKey: class.Hash("ca"), awsv1.HashVersionAnnotationKey: "v6", awsv1.InstanceProfileNameAnnotationKey: "profile",
	})
	for key, want := range map[string]string{
		model.LabelInstanceType: "m5.large", model.LabelZone: "us-west-2b", model.LabelCapacityType: "spot", model.LabelArch: "amd64", model.LabelOS: "linux",
		model.LabelRegion: "us-west-2", v1.NodePoolLabelKey: "default", awsv1.InstanceTenancyLabelKey: "default",
		awsv1.ZoneIDLabelKey: class.Status.Subnets[1].ZoneID, awsv1.InstanceFamilyLabelKey: "m5", awsv1.InstanceCPULabelKey: "2",
	} {
		check(t, key, m.Labels[key], want)
	}
	for _, key := range []string{awsv1.CapacityReservationIDLabelKey, awsv1.PlacementGroupIDLabelKey, awsv1.PlacementGroupPartitionLabelKey, awsv1.InstanceGPUNameLabelKey} {
		if value, ok := m.Labels[key]; ok {
			t.Errorf("label %s is %q", key, value)
		}
	}
	check(t, "image", m.ImageID != "", true)
	for name, q := range m.Capacity {
		if q.Sign() <= 0 {
			t.Errorf("capacity of %s is %s", name, q.String())
		}
	}
	id, _ := InstanceID(m.ProviderID)
	check(t, "provider ID", m.ProviderID, "aws:///us-west-2b/"+id)
	r.clock.Step(time.Minute)
	listed, err := r.List(t.Context())
	must(t, err)
	check(t, "listed", listed[0].Labels, m.Labels)
	check(t, "whose", string(listed[0].ClaimUID), "uid-of-claim")
}

// spec 65/94: interfaces for EFA are there only if they were asked for.
func TestEFA(t *testing.T) {
	for asked, want := range map[string]int64{"0": 0, "1": 1} {
		r := newRegion(t, func(c *awsfake.Config) { c.Types = []string{"c5n.18xlarge"} })
		claim := r.claim("claim")
		claim.Spec.Resources.Requests = corev1.ResourceList{instancetype.ResourceEFA: resource.MustParse(asked)}
		m, err := r.Create(t.Context(), claim)
		must(t, err)
		r.record(claim, m)
		q := m.Capacity[instancetype.ResourceEFA]
		check(t, asked+" asked", q.Value(), want)
		r.clock.Step(time.Minute)
		m, err = r.Get(t.Context(), m.ProviderID)
		must(t, err)
		q = m.Capacity[instancetype.ResourceEFA]
		check(t, asked+" asked, described", q.Value(), want)
	}
}

// spec 65/89: tenancy is dedicated when shared hardware is excluded.
func TestTenancy(t *testing.T) {
	r := newRegion(t, nil)
	m := r.launch(r.claim("dedicated", in(awsv1.InstanceTenancyLabelKey, "dedicated"), in(model.LabelCapacityType, "on-demand")))
	check(t, "label", m.Labels[awsv1.InstanceTenancyLabelKey], "dedicated")
	check(t, "instance", string(r.aws.Instances()[0].Placement.Tenancy), "dedicated")
	m = r.launch(r.claim("either", in(awsv1.InstanceTenancyLabelKey, "dedicated", "default")))
	check(t, "label", m.Labels[awsv1.InstanceTenancyLabelKey], "default")
}

// spec 65/62: if one zone is out of capacity, another is used, until it has
// been forgotten. spec 65/72: when no spot capacity is left, it is on demand.
func TestShortages(t *testing.T) {
	r := newRegion(t, nil)
	only := in(model.LabelInstanceType, "m5.large")
	zoneA := awsfake.Pool{Type: "m5.large", Zone: "us-west-2a", CapacityType: awsfake.Spot}
	r.aws.SetSpotPrice("m5.large", "us-west-2a", 0.001)
	must(t, r.catalogue.RefreshPrices(t.Context()))
	r.aws.Stock(zoneA, 0)
	spot := in(model.LabelCapacityType, "spot")
	inA := in(model.LabelZone, "us-west-2a")
	if _, err := r.Create(t.Context(), r.claim("first", only, inA, spot)); !cloud.IsInsufficientCapacity(err) {
		t.Fatalf("sold out: %v", err)
	}
	if zone := r.launch(r.claim("second", only, spot)).Labels[model.LabelZone]; zone == "us-west-2a" {
		t.Error("bought in the zone that is sold out")
	}
	r.aws.Stock(zoneA, -1)
	r.clock.Step(shortage.Lasting)
	check(t, "later", r.launch(r.claim("third", only, spot)).Labels[model.LabelZone], "us-west-2a")

	r.aws.Stock(awsfake.Pool{CapacityType: awsfake.Spot}, 0)
	either := in(model.LabelCapacityType, "spot", "on-demand")
	if _, err := r.Create(t.Context(), r.claim("no-spot", either)); !cloud.IsInsufficientCapacity(err) {
		t.Fatalf("no spot: %v", err)
	}
	check(t, "next", r.launch(r.claim("on-demand", either)).Labels[model.LabelCapacityType], "on-demand")
}

// spec 65/64: an account without the role for spot gets on-demand capacity with
// the next launch, and an event names the reason.
func TestNoSpotRole(t *testing.T) {
	r := newRegion(t, nil)
	r.aws.RefuseSpotRole(true)
	either := in(model.LabelCapacityType, "spot", "on-demand")
	if _, err := r.Create(t.Context(), r.claim("first", either)); !cloud.IsInsufficientCapacity(err) {
		t.Fatalf("error %v", err)
	}
	check(t, "next", r.launch(r.claim("second", either)).Labels[model.LabelCapacityType], "on-demand")
	if len(r.events) == 0 || r.events[0] != `Warning first: Attempted to launch a spot instance but failed due to "AuthFailure.ServiceLinkedRoleCreationNotPermitted"` {
		t.Errorf("events %q", r.events)
	}
}

// Launches need no questions about instances, and make each template once.
func TestManyLaunches(t *testing.T) {
	r := newRegion(t, nil)
	ids := r.createAll("claim", 10)
	check(t, "machines", len(ids), 10)
	check(t, "templates", r.aws.Calls()["CreateLaunchTemplate"], len(r.aws.LaunchTemplates())) // none twice
	check(t, "looked for", r.aws.Calls()["DescribeInstances"], 0)
}

// createAll launches claims at once and returns the machines by claim.
func (r *region) createAll(name string, n int) map[string]string {
	r.t.Helper()
	out := map[string]string{}
	var mu sync.Mutex
	var wg sync.WaitGroup
	for i := range n {
		claim := r.claim(name + string(rune('a'+i)))
		wg.Go(func() {
			m, err := r.Create(r.t.Context(), claim)
			if err != nil {
				r.t.Error(err)
				return
			}
			mu.Lock()
			defer mu.Unlock()
			out[claim.Name] = m.ProviderID
		})
	}
	wg.Wait()
	return out
}

// spec 65/75, as far as it is sent: neither metal nor devices, unless asked for.
func TestMetalAndDeviceTypesOnlyIfRequested(t *testing.T) {
	r := newRegion(t, func(c *awsfake.Config) { c.Types = []string{"m5.metal", "g4dn.xlarge", "m5.24xlarge"} })
	check(t, "usual", r.launch(r.claim("usual")).Labels[model.LabelInstanceType], "m5.24xlarge")
	claim := r.claim("gpu")
	claim.Spec.Resources.Requests = corev1.ResourceList{instancetype.ResourceNvidiaGPU: resource.MustParse("1")}
	check(t, "gpu", r.launch(claim).Labels[model.LabelInstanceType], "g4dn.xlarge")
}

// An overlay's price goes into the launch.
func TestOverlay(t *testing.T) {
	r := newRegion(t, nil)
	r.overlay = func(pool string, types []*cloud.InstanceType) ([]*cloud.InstanceType, error) {
		if pool != "default" {
			t.Errorf("pool %q", pool)
		}
		var out []*cloud.InstanceType
		for _, it := range types {
			if it.Name == "m5.xlarge" {
				out = append(out, it)
			}
		}
		return out, nil
	}
	check(t, "type", r.launch(r.claim("claim")).Labels[model.LabelInstanceType], "m5.xlarge")
}

// A launch goes by what nodes cost: with an amount for each vCPU, the cheapest
// instance need not be the cheapest node.
func TestLaunchByNodePrice(t *testing.T) {
	r := newRegion(t, func(c *awsfake.Config) { c.Types = []string{"t3.xlarge", "z1d.large"} })
	launch := func(name string) string {
		t.Helper()
		claim := r.claim(name)
		claim.Spec.Requirements = []v1.NodeSelectorRequirementWithMinValues{{Key: v1.CapacityTypeLabelKey, Operator: corev1.NodeSelectorOpIn, Values: []string{model.OnDemand}}}
		return r.launch(claim).Labels[model.LabelInstanceType]
	}
	check(t, "by the instance", launch("plain"), "t3.xlarge")
	r.amounts = []model.Extra{{Name: "agent", Price: model.Dollar}}
	check(t, "with an amount per node", launch("agent"), "t3.xlarge")
	r.amounts = []model.Extra{{Name: "licence", Price: model.Dollar / 20, VCPU: true}}
	check(t, "with an amount per vCPU", launch("licence"), "z1d.large")
}

// Nodes have the volumes of their class, and an address where their subnets or
// their class assign one.
func TestExtras(t *testing.T) {
	r := newRegion(t, nil)
	for _, c := range []struct {
		role   string // of the subnets: elb are public
		public *bool
		want   string
	}{
		{"kubernetes.io/role/internal-elb", nil, "/dev/xvda gp3: 20 GiB"},
		{"kubernetes.io/role/internal-elb", aws.Bool(true), "/dev/xvda gp3: 20 GiB, public IPv4 address"},
		{"kubernetes.io/role/elb", nil, "/dev/xvda gp3: 20 GiB, public IPv4 address us-west-2a, public IPv4 address us-west-2b, public IPv4 address us-west-2c"},
		{"kubernetes.io/role/elb", aws.Bool(false), "/dev/xvda gp3: 20 GiB"},
	} {
		r.class(func(class *awsv1.EC2NodeClass) {
			class.Generation++
			class.Spec.SubnetSelectorTerms = []awsv1.SubnetSelectorTerm{{Tags: map[string]string{c.role: "1"}}}
			class.Spec.AssociatePublicIPAddress = c.public
		})
		extras, err := r.Extras(t.Context(), r.pool)
		must(t, err)
		var parts []string
		for _, e := range extras {
			parts = append(parts, strings.TrimSpace(e.Name+" "+e.Zone))
		}
		check(t, c.role, strings.Join(parts, ", "), c.want)
	}
	must(t, r.api.Delete(t.Context(), r.getClass()))
	if _, err := r.Extras(t.Context(), r.pool); !errors.Is(err, errNoClass) {
		t.Errorf("without class: %v", err)
	}
}

func TestInstanceID(t *testing.T) {
	for text, want := range map[string]string{
		"aws:///us-west-2a/i-0123": "i-0123", "other:///zone/id": "id",
		"": "", "aws:///": "", "aws:///i-0123": "", "aws://us-west-2a/i-0123": "", "aws:///a/b/c": "", "aws:////i-1": "",
	} {
		if got, ok := InstanceID(text); ok != (want != "") || ok && got != want {
			t.Errorf("%q: %q, %v", text, got, ok)
		}
	}
}

// A machine is listed even if its class has changed or is gone.
func TestListWithoutClass(t *testing.T) {
	r := newRegion(t, nil)
	m := r.launch(r.claim("claim"))
	must(t, r.api.Delete(t.Context(), r.getClass()))
	listed, err := r.List(t.Context())
	must(t, err)
	check(t, "machines", len(listed), 1)
	check(t, "type", listed[0].Labels[model.LabelInstanceType], m.Labels[model.LabelInstanceType])
	check(t, "claim", listed[0].Claim, "claim")
	got, err := r.Get(t.Context(), m.ProviderID)
	must(t, err)
	check(t, "provider ID", got.ProviderID, m.ProviderID)
}

// spec 65/86: a launch template that someone has deleted is made again.
func TestTemplateDeleted(t *testing.T) {
	r := newRegion(t, nil)
	r.launch(r.claim("first"))
	for name := range r.aws.LaunchTemplates() {
		_, err := r.services.EC2.DeleteLaunchTemplate(t.Context(), &ec2.DeleteLaunchTemplateInput{LaunchTemplateName: aws.String(name)})
		must(t, err)
	}
	if _, err := r.Create(t.Context(), r.claim("second")); err != nil {
		t.Error(err)
	}
}

// spec 65/63: in a zone with two small subnets, both are filled, and one that is
// full is left for the other.
func TestSmallSubnets(t *testing.T) {
	r := newRegion(t, nil)
	const each = 11 // addresses that AWS leaves of a /28
	first := r.aws.AddSubnet("us-west-2a", "192.168.240.0/28", "small", "yes")
	r.aws.AddSubnet("us-west-2a", "192.168.240.16/28", "small", "yes")
	r.class(func(c *awsv1.EC2NodeClass) {
		c.Spec.SubnetSelectorTerms = []awsv1.SubnetSelectorTerm{{Tags: map[string]string{"small": "yes"}}}
	})
	r.restart()
	check(t, "machines", len(r.createAll("claim", 16)), 16)

	must(t, r.aws.UseAddresses(first, each))
	launched, short := 0, 0
	for i := range 8 {
		_, err := r.Create(t.Context(), r.claim("more-"+string(rune('a'+i))))
		switch {
		case err == nil:
			launched++
		case cloud.IsInsufficientCapacity(err):
			short++
		default:
			t.Error(err)
		}
	}
	if launched == 0 || short == 0 || launched+16 > 2*each {
		t.Errorf("%d more launched, %d refused", launched, short)
	}
}
