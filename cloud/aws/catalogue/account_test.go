// SPDX-License-Identifier: Apache-2.0

package catalogue_test

import (
	"context"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	clocktesting "k8s.io/utils/clock/testing"

	awsv1 "karpenter/api/aws/v1"
	"karpenter/cloud/aws/awsfake"
	"karpenter/cloud/aws/catalogue"
	"karpenter/cloud/aws/image"
	"karpenter/cloud/aws/instancetype"
	"karpenter/cloud/aws/network"
	"karpenter/cloud/aws/shortage"
	"karpenter/cloud/aws/zonalshift"
)

// A whole account: types, zones and prices come from it, machines have images,
// and a shifted zone has no offerings.
func TestAccount(t *testing.T) {
	clock := clocktesting.NewFakeClock(time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC))
	account, err := awsfake.New(awsfake.Config{Clock: clock, Types: []string{"m5.large", "m6g.large", "g4dn.xlarge", "m5.metal"}})
	if err != nil {
		t.Fatal(err)
	}
	services := account.Services()
	shifts := zonalshift.New(zonalshift.Config{EKS: services.EKS, Shifts: services.ZonalShift, Cluster: account.Config().Cluster, Clock: clock})
	c, err := catalogue.New(catalogue.Config{
		EC2: services.EC2, Pricing: services.Pricing, Cluster: instancetype.Cluster{Region: services.Region, MemoryOverhead: 0.075}, Clock: clock,
		Metrics: catalogue.NewMetrics(prometheus.NewRegistry()), Shortages: &shortage.Log{}, Memory: &instancetype.Memory{}, Shifts: shifts,
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, refresh := range []func(context.Context) error{c.Refresh, c.RefreshPrices, shifts.Refresh} {
		if err := refresh(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	class := &awsv1.EC2NodeClass{Spec: awsv1.EC2NodeClassSpec{
		AMISelectorTerms:    []awsv1.AMISelectorTerm{{Alias: "al2023@latest"}},
		SubnetSelectorTerms: []awsv1.SubnetSelectorTerm{{Tags: map[string]string{"karpenter.sh/discovery": account.Config().Cluster}}},
	}}
	images := image.New(image.Config{EC2: services.EC2, SSM: services.SSM, Kubernetes: func() string { return "1.33" }, Refresh: time.Minute, Clock: clock})
	account.SetKubernetesVersion("1.33")
	if err := account.ReleaseImages("1.33", clock.Now(), "1.46.0"); err != nil {
		t.Fatal(err)
	}
	if class.Status.AMIs, err = images.List(t.Context(), class); err != nil {
		t.Fatal(err)
	}
	if class.Status.Subnets, err = network.NewSubnets(services.EC2, clock, time.Minute).Of(t.Context(), class); err != nil {
		t.Fatal(err)
	}
	types, err := c.Types(t.Context(), class)
	if err != nil || len(types) != 4 {
		t.Fatal(len(types), err)
	}
	shifted := class.Status.Subnets[0]
	account.ShiftAway(shifted.ZoneID, clock.Now().Add(time.Hour), true)
	if err := shifts.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	after, err := c.Types(t.Context(), class)
	if err != nil {
		t.Fatal(err)
	}
	for i, it := range types {
		if ami, ok := image.For(class, it); !ok || ami.ID == "" {
			t.Errorf("%s has no image", it.Name)
		}
		for j, o := range it.Offerings {
			if !o.Available || o.Price <= 0 {
				t.Errorf("%s: %s is not for sale", it.Name, o.Requirements)
			}
			if now := after[i].Offerings[j]; now.Available == (o.Zone() == shifted.Zone) {
				t.Errorf("%s: %s for sale: %t, with %s shifted", it.Name, o.Requirements, now.Available, shifted.Zone)
			}
		}
	}
}
