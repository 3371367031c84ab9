// SPDX-License-Identifier: Apache-2.0

package aws

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	awsv1 "karpenter/api/aws/v1"
	v1 "karpenter/api/v1"
	"karpenter/cloud"
	"karpenter/cloud/aws/awsfake"
	"karpenter/cloud/aws/catalogue"
	awsclient "karpenter/cloud/aws/client"
	"karpenter/cloud/aws/image"
	"karpenter/cloud/aws/instance"
	"karpenter/cloud/aws/instancetype"
	"karpenter/cloud/aws/network"
	"karpenter/cloud/aws/reservation"
	"karpenter/cloud/aws/shortage"
	"karpenter/cloud/aws/template"
	"karpenter/cloud/aws/userdata"
	"karpenter/cloud/batch"
	"karpenter/kube/join"
	"karpenter/model"
)

// region is a provider on an AWS and an API server in memory. Batches wait in
// real time, all else goes by the clock.
type region struct {
	*Provider
	t         *testing.T
	aws       *awsfake.AWS
	services  *awsclient.Services
	clock     *clocktesting.FakeClock
	api       client.WithWatch
	pool      *v1.NodePool
	short     *shortage.Log
	counts    *reservation.Counts
	groups    *reservation.Groups
	registry  *prometheus.Registry
	catalogue *catalogue.Catalogue
	overlay   func(string, []*cloud.InstanceType) ([]*cloud.InstanceType, error)
	typesErr  error
	amounts   []model.Extra // that the user adds

	mu     sync.Mutex
	events []string
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func newRegion(t *testing.T, change func(*awsfake.Config)) *region {
	t.Helper()
	clock := clocktesting.NewFakeClock(time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC))
	config := awsfake.Config{
		Clock: clock, VisibleAfter: 5 * time.Second, BootDelay: 10 * time.Second, ShutdownDelay: 5 * time.Second,
		Types: []string{"m5.large", "m5.xlarge", "c5.large", "m6g.large", "t3.large", "m5.metal", "g4dn.xlarge"},
	}
	if change != nil {
		change(&config)
	}
	account, err := awsfake.New(config)
	must(t, err)
	scheme := runtime.NewScheme()
	must(t, corev1.AddToScheme(scheme))
	must(t, v1.AddToScheme(scheme))
	must(t, awsv1.AddToScheme(scheme))
	r := &region{
		t: t, aws: account, services: account.Services(), clock: clock,
		api: fake.NewClientBuilder().WithScheme(scheme).WithStatusSubresource(&v1.NodeClaim{}, &awsv1.EC2NodeClass{}).
			WithIndex(&corev1.Node{}, join.NodeProviderID, func(o client.Object) []string { return []string{o.(*corev1.Node).Spec.ProviderID} }).
			Build(),
	}
	r.pool = &v1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: "default", UID: "pool"}}
	r.pool.Spec.Template.Spec.NodeClassRef = &v1.NodeClassReference{Group: awsv1.Group, Kind: awsv1.Kind, Name: "default"}
	must(t, r.api.Create(t.Context(), r.pool))
	_, err = r.services.IAM.CreateInstanceProfile(t.Context(), &iam.CreateInstanceProfileInput{InstanceProfileName: aws.String("profile")})
	must(t, err)
	_, err = r.services.IAM.AddRoleToInstanceProfile(t.Context(), &iam.AddRoleToInstanceProfileInput{
		InstanceProfileName: aws.String("profile"), RoleName: aws.String("KarpenterNodeRole-cluster"),
	})
	must(t, err)
	account.HoldToPolicy(true) // the provider has what its installation gives it, and no more
	r.class(func(*awsv1.EC2NodeClass) {})
	r.restart()
	return r
}

// restart forgets what the process knows.
func (r *region) restart() {
	r.t.Helper()
	r.registry, r.short, r.counts = prometheus.NewRegistry(), &shortage.Log{}, &reservation.Counts{}
	r.groups = reservation.NewGroups(r.services.EC2, r.clock)
	r.catalogue = r.newCatalogue()
	subnets := network.NewSubnets(r.services.EC2, r.clock, time.Minute)
	reservations := reservation.NewReservations(r.services.EC2, r.clock, r.counts)
	class := r.getClass()
	_, err := subnets.Of(r.t.Context(), class)
	must(r.t, err)
	_, _, err = reservations.Of(r.t.Context(), class.Spec.CapacityReservationSelectorTerms)
	must(r.t, err)
	c := r.aws.Config()
	r.Provider = New(Config{
		Client: r.api, Live: r.api, Clock: r.clock, Types: r.types, Group: r.groups.For, CABundle: "ca",
		Overlay: func(pool string, types []*cloud.InstanceType) ([]*cloud.InstanceType, error) {
			if r.overlay == nil {
				return types, nil
			}
			return r.overlay(pool, types)
		},
		Extras: func(ctx context.Context, class *awsv1.EC2NodeClass) []model.Extra {
			return r.catalogue.NodeExtras(class, subnets.PublicZones(ctx, class)).Parts()
		},
		Additional: func(_ context.Context, pool string) ([]model.Extra, error) {
			if pool != "default" {
				return nil, fmt.Errorf("asked for pool %q", pool)
			}
			return r.amounts, nil
		},
		Event: func(object client.Object, eventType, reason, message string) {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.events = append(r.events, fmt.Sprint(eventType, " ", object.GetName(), ": ", message))
		},
		Instances: instance.Config{
			EC2: r.services.EC2, Cluster: c.Cluster, Clock: r.clock, ReservedCapacity: true,
			Metrics: instance.NewMetrics(r.registry), Batches: batch.NewMetrics(r.registry, prometheus.DefBuckets),
			Launch: instance.LaunchConfig{
				Subnets: subnets, Reservations: r.counts, Shortages: r.short,
				Templates: template.New(template.Config{
					EC2: r.services.EC2, Clock: r.clock, Metrics: template.NewMetrics(r.registry), Region: c.Region, ReservedCapacity: true,
					Cluster: userdata.Cluster{Name: c.Cluster, Endpoint: c.Endpoint, CABundle: c.CertificateAuthority, DNS: "10.100.0.10"},
					CIDR:    template.NewServiceCIDR(r.services.EKS, c.Cluster, r.clock).Get,
				}),
			},
		},
	})
	must(r.t, r.Start(r.t.Context()))
}

func (r *region) getClass() *awsv1.EC2NodeClass {
	r.t.Helper()
	class := &awsv1.EC2NodeClass{}
	must(r.t, r.api.Get(r.t.Context(), client.ObjectKey{Name: "default"}, class))
	return class
}

// class creates the class, with changes by change, and its status as its
// controller does.
func (r *region) class(change func(*awsv1.EC2NodeClass)) *awsv1.EC2NodeClass {
	r.t.Helper()
	discovery := map[string]string{"karpenter.sh/discovery": "cluster"}
	class := &awsv1.EC2NodeClass{ObjectMeta: metav1.ObjectMeta{Name: "default", UID: "class", Generation: 1}, Spec: awsv1.EC2NodeClassSpec{
		InstanceProfile:            aws.String("profile"),
		AMISelectorTerms:           []awsv1.AMISelectorTerm{{Alias: "al2023@latest"}},
		SubnetSelectorTerms:        []awsv1.SubnetSelectorTerm{{Tags: map[string]string{"kubernetes.io/role/internal-elb": "1"}}},
		SecurityGroupSelectorTerms: []awsv1.SecurityGroupSelectorTerm{{Tags: discovery}},
	}}
	existing := &awsv1.EC2NodeClass{}
	exists := r.api.Get(r.t.Context(), client.ObjectKeyFromObject(class), existing) == nil
	if exists {
		class = existing
	}
	change(class)
	r.resolve(class)
	change(class) // the status too
	status := class.Status
	if !exists {
		must(r.t, r.api.Create(r.t.Context(), class))
	} else {
		must(r.t, r.api.Update(r.t.Context(), class))
	}
	class.Status = status
	must(r.t, r.api.Status().Update(r.t.Context(), class))
	return class
}

func (r *region) resolve(class *awsv1.EC2NodeClass) {
	r.t.Helper()
	ctx := r.t.Context()
	var err error
	class.Annotations = map[string]string{awsv1.HashAnnotationKey: class.Hash("ca"), awsv1.HashVersionAnnotationKey: awsv1.HashVersion}
	class.Status.InstanceProfile = *class.Spec.InstanceProfile
	class.Status.Subnets, err = network.NewSubnets(r.services.EC2, r.clock, time.Minute).Of(ctx, class)
	must(r.t, err)
	class.Status.SecurityGroups, err = network.NewSecurityGroups(r.services.EC2, r.clock, time.Minute).Of(ctx, class)
	must(r.t, err)
	class.Status.CapacityReservations, _, err = reservation.NewReservations(r.services.EC2, r.clock, &reservation.Counts{}).Of(ctx, class.Spec.CapacityReservationSelectorTerms)
	must(r.t, err)
	class.Status.AMIs, err = image.New(image.Config{
		EC2: r.services.EC2, SSM: r.services.SSM, Clock: r.clock, Refresh: time.Minute, Kubernetes: func() string { return "1.33" },
	}).List(ctx, class)
	must(r.t, err)
	class.Status.Conditions = []metav1.Condition{{Type: v1.ReadyCondition, Status: metav1.ConditionTrue, Reason: "Ready", ObservedGeneration: class.Generation}}
}

// types are the types that the account offers.
func (r *region) types(ctx context.Context, class *awsv1.EC2NodeClass) ([]*cloud.InstanceType, error) {
	if r.typesErr != nil {
		return nil, r.typesErr
	}
	return r.catalogue.Types(ctx, class)
}

func (r *region) newCatalogue() *catalogue.Catalogue {
	r.t.Helper()
	c, err := catalogue.New(catalogue.Config{
		EC2: r.services.EC2, Clock: r.clock, Metrics: catalogue.NewMetrics(r.registry),
		Cluster:   instancetype.Cluster{Region: r.aws.Config().Region, MemoryOverhead: 0.075},
		Shortages: r.short, Memory: &instancetype.Memory{}, Left: r.counts.Left,
		Group: r.groups.For,
	})
	must(r.t, err)
	must(r.t, c.Refresh(r.t.Context()))
	must(r.t, c.RefreshPrices(r.t.Context()))
	return c
}

// claim stores a claim of the pool with the requirements.
func (r *region) claim(name string, requirements ...v1.NodeSelectorRequirementWithMinValues) *v1.NodeClaim {
	r.t.Helper()
	claim := &v1.NodeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("uid-of-" + name), Labels: map[string]string{v1.NodePoolLabelKey: "default"}},
		Spec:       v1.NodeClaimSpec{NodeClassRef: r.pool.Spec.Template.Spec.NodeClassRef, Requirements: requirements},
	}
	r.store(claim)
	return claim
}

func in(key string, values ...string) v1.NodeSelectorRequirementWithMinValues {
	return v1.NodeSelectorRequirementWithMinValues{Key: key, Operator: corev1.NodeSelectorOpIn, Values: values}
}

func (r *region) store(claim *v1.NodeClaim) {
	r.t.Helper()
	ctx, status := r.t.Context(), claim.Status
	existing := &v1.NodeClaim{}
	if err := r.api.Get(ctx, client.ObjectKeyFromObject(claim), existing); err != nil {
		claim.ResourceVersion = ""
		must(r.t, r.api.Create(ctx, claim))
	} else {
		claim.ResourceVersion = existing.ResourceVersion
		must(r.t, r.api.Update(ctx, claim))
	}
	claim.Status = status
	must(r.t, r.api.Status().Update(ctx, claim))
}

// record writes the machine into the claim, as the lifecycle controller does.
func (r *region) record(claim *v1.NodeClaim, m *cloud.Machine) {
	r.t.Helper()
	for key, value := range m.Labels {
		if _, ok := claim.Labels[key]; !ok {
			claim.Labels[key] = value
		}
	}
	claim.Annotations = m.Annotations
	claim.Status.ProviderID, claim.Status.ImageID = m.ProviderID, m.ImageID
	r.store(claim)
}

// launch starts the claim's machine and lets it boot.
func (r *region) launch(claim *v1.NodeClaim) *cloud.Machine {
	r.t.Helper()
	m, err := r.Create(r.t.Context(), claim)
	must(r.t, err)
	r.record(claim, m)
	r.clock.Step(time.Minute)
	_, err = r.List(r.t.Context())
	must(r.t, err)
	return m
}

// running returns the IDs of instances that exist and are not ending.
func (r *region) running() []string {
	var out []string
	for _, i := range r.aws.Instances() {
		if i.State.Name == "running" || i.State.Name == "pending" {
			out = append(out, *i.InstanceId)
		}
	}
	slices.Sort(out)
	return out
}

func check(t *testing.T, what string, got, want any) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s: %s", what, diff)
	}
}

func keyOf(name string) client.ObjectKey { return client.ObjectKey{Name: name} }
