// SPDX-License-Identifier: Apache-2.0

package zonalshift_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/arczonalshift"
	"github.com/aws/aws-sdk-go-v2/service/arczonalshift/types"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	ekstypes "github.com/aws/aws-sdk-go-v2/service/eks/types"
	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	awsv1 "karpenter/api/aws/v1"
	"karpenter/api/scheme"
	karpenterv1 "karpenter/api/v1"
	"karpenter/cloud/aws/zonalshift"
)

// recovery is an account with one cluster.
type recovery struct {
	shifts []types.ZonalShiftInResource
	auto   []types.AutoshiftInResource
	fails  error
	named  int // calls of DescribeCluster
}

func (r *recovery) DescribeCluster(context.Context, *eks.DescribeClusterInput, ...func(*eks.Options)) (*eks.DescribeClusterOutput, error) {
	r.named++
	return &eks.DescribeClusterOutput{Cluster: &ekstypes.Cluster{Arn: aws.String("arn:c")}}, nil
}

func (r *recovery) GetManagedResource(_ context.Context, in *arczonalshift.GetManagedResourceInput, _ ...func(*arczonalshift.Options)) (*arczonalshift.GetManagedResourceOutput, error) {
	if *in.ResourceIdentifier != "arn:c" {
		return nil, errors.New("not the cluster")
	}
	return &arczonalshift.GetManagedResourceOutput{ZonalShifts: r.shifts, Autoshifts: r.auto}, r.fails
}

func start() time.Time { return time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC) }

func shift(zone string, status types.AppliedStatus, minutes int) types.ZonalShiftInResource {
	return types.ZonalShiftInResource{AwayFrom: &zone, AppliedStatus: status, ExpiryTime: aws.Time(start().Add(time.Duration(minutes) * time.Minute))}
}

// spec 65/68: what counts as shifted.
func TestShifted(t *testing.T) {
	const applied, waiting = types.AppliedStatusApplied, types.AppliedStatusNotApplied
	account, clock := &recovery{}, clocktesting.NewFakePassiveClock(start())
	s := zonalshift.New(zonalshift.Config{EKS: account, Shifts: account, Cluster: "c", Clock: clock})
	for _, step := range []struct {
		name   string
		minute int
		shifts []types.ZonalShiftInResource
		auto   []types.AutoshiftInResource
		fails  error
		az1    bool
		az2    bool
	}{
		{"none", 0, nil, nil, nil, false, false},
		{"one", 1, []types.ZonalShiftInResource{shift("use1-az1", applied, 10)}, nil, nil, true, false},
		{"not applied", 2, []types.ZonalShiftInResource{shift("use1-az1", applied, 10), shift("use1-az2", waiting, 10)}, nil, nil, true, false},
		{"cancelled while another begins", 3, []types.ZonalShiftInResource{shift("use1-az2", applied, 10)}, nil, nil, false, true},
		{"no answer", 4, nil, nil, errors.New("down"), false, true},
		{"expired", 10, nil, nil, errors.New("down"), false, false},
		{"expired but listed", 11, []types.ZonalShiftInResource{shift("use1-az1", applied, 11)}, nil, nil, false, false},
		{"two shifts of a zone", 12, []types.ZonalShiftInResource{shift("use1-az1", applied, 20), shift("use1-az1", waiting, 13)}, nil, nil, true, false},
		{"AWS's own", 13, nil, []types.AutoshiftInResource{
			{AwayFrom: aws.String("use1-az2"), AppliedStatus: types.AutoshiftAppliedStatusApplied},
			{AwayFrom: aws.String("use1-az1"), AppliedStatus: types.AutoshiftAppliedStatusNotApplied},
		}, nil, false, true},
		{"all over", 14, nil, nil, nil, false, false},
	} {
		clock.SetTime(start().Add(time.Duration(step.minute) * time.Minute))
		account.shifts, account.auto, account.fails = step.shifts, step.auto, step.fails
		if err := s.Refresh(t.Context()); (err != nil) != (step.fails != nil) {
			t.Errorf("%s: %v", step.name, err)
		}
		if az1, az2 := s.Shifted("use1-az1"), s.Shifted("use1-az2"); az1 != step.az1 || az2 != step.az2 {
			t.Errorf("%s: az1 %t, az2 %t", step.name, az1, az2)
		}
	}
	if account.named != 1 {
		t.Errorf("asked for the ARN %d times", account.named)
	}
	if (*zonalshift.Shifts)(nil).Shifted("use1-az1") || s.Shifted("") {
		t.Error("shifted without anything known")
	}
}

func TestEvents(t *testing.T) {
	s := runtime.NewScheme()
	if err := scheme.AddToScheme(s); err != nil {
		t.Fatal(err)
	}
	if err := awsv1.AddToScheme(s); err != nil {
		t.Fatal(err)
	}
	class := &awsv1.EC2NodeClass{}
	class.Name = "default"
	class.Status.Subnets = []awsv1.Subnet{{ID: "subnet-1", Zone: "us-east-1a", ZoneID: "use1-az1"}, {ID: "subnet-2", Zone: "us-east-1b", ZoneID: "use1-az2"}}
	objects := []client.Object{class}
	for name, of := range map[string]struct {
		class, key string
		values     []string
	}{
		"any":      {class: "default"},
		"a":        {"default", "topology.kubernetes.io/zone", []string{"us-east-1a"}},
		"az1":      {"default", awsv1.ZoneIDLabelKey, []string{"use1-az1"}},
		"b":        {"default", awsv1.EBSZoneLabelKey, []string{"us-east-1b"}},
		"az2":      {"default", awsv1.ZoneIDLabelKey, []string{"use1-az2"}},
		"no-class": {class: "missing"},
	} {
		pool := &karpenterv1.NodePool{}
		pool.Name = name
		pool.Spec.Template.Spec.NodeClassRef = &karpenterv1.NodeClassReference{Group: awsv1.Group, Kind: "EC2NodeClass", Name: of.class}
		if of.key != "" {
			pool.Spec.Template.Spec.Requirements = []karpenterv1.NodeSelectorRequirementWithMinValues{{Key: of.key, Operator: "In", Values: of.values}}
		}
		objects = append(objects, pool)
	}
	account, clock := &recovery{shifts: []types.ZonalShiftInResource{shift("use1-az1", types.AppliedStatusApplied, 10)}}, clocktesting.NewFakePassiveClock(start())
	var told []string
	down := true
	reader := fake.NewClientBuilder().WithScheme(s).WithObjects(objects...).WithInterceptorFuncs(interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
			if down {
				return errors.New("down")
			}
			return c.List(ctx, list, options...)
		},
	}).Build()
	shifts := zonalshift.New(zonalshift.Config{
		EKS: account, Shifts: account, Cluster: "c", Clock: clock, Reader: reader,
		Tell: func(e zonalshift.Event) {
			told = append(told, e.Object.GetName()+" "+e.Type+" "+e.Reason+": "+e.Message)
		},
	})
	const active = " Warning ZonalShiftActive: Zonal shift detected: offerings in zone us-east-1a (use1-az1) are unavailable for this NodePool"
	const cleared = " Normal ZonalShiftCleared: Zonal shift cleared: offerings in zone us-east-1a (use1-az1) are available for this NodePool again"
	if err := shifts.Load(t.Context()); err != nil || told != nil || !shifts.Shifted("use1-az1") {
		t.Errorf("Load asks the API server: %v, told %v", err, told)
	}
	if err := shifts.Refresh(t.Context()); err == nil || told != nil || !shifts.Shifted("use1-az1") {
		t.Errorf("without an API server: %v, told %v", err, told)
	}
	down = false
	for _, step := range []struct {
		minute int
		want   []string
	}{
		{0, []string{"a" + active, "any" + active, "az1" + active}},
		{1, nil},
		{10, []string{"a" + cleared, "any" + cleared, "az1" + cleared}},
	} {
		told = nil
		clock.SetTime(start().Add(time.Duration(step.minute) * time.Minute))
		if err := shifts.Refresh(t.Context()); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(step.want, told); diff != "" {
			t.Errorf("minute %d: %s", step.minute, diff)
		}
	}
}
