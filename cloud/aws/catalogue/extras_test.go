// SPDX-License-Identifier: Apache-2.0

package catalogue_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	clocktesting "k8s.io/utils/clock/testing"

	awsv1 "karpenter/api/aws/v1"
	"karpenter/cloud/aws/awsfake"
	"karpenter/cloud/aws/catalogue"
	"karpenter/cloud/aws/instancetype"
	"karpenter/cloud/aws/shortage"
	"karpenter/cloud/ec2"
	"karpenter/model"
)

// newAccount returns an account in the region, and a catalogue on it.
func newAccount(t *testing.T, region string) (*awsfake.AWS, *catalogue.Catalogue) {
	t.Helper()
	clock := clocktesting.NewFakeClock(time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC))
	account, err := awsfake.New(awsfake.Config{Clock: clock, Region: region, Types: []string{"m5.large", "m5.metal"}})
	if err != nil {
		t.Fatal(err)
	}
	services := account.Services()
	c, err := catalogue.New(catalogue.Config{
		EC2: services.EC2, Pricing: services.Pricing, Cluster: instancetype.Cluster{Region: region}, Clock: clock,
		Metrics: catalogue.NewMetrics(prometheus.NewRegistry()), Shortages: &shortage.Log{}, Memory: &instancetype.Memory{},
	})
	if err != nil {
		t.Fatal(err)
	}
	return account, c
}

// TestNodeExtrasRefresh: the prices of volumes and addresses are those built in
// until AWS has answered, then AWS's; what an answer lacks stays.
func TestNodeExtrasRefresh(t *testing.T) {
	class := &awsv1.EC2NodeClass{}
	class.Spec.AMISelectorTerms = []awsv1.AMISelectorTerm{{Alias: "al2023@latest"}}
	kind, iops, mibps := "gp3", int64(5000), int64(225)
	class.Spec.BlockDeviceMappings = awsv1.AMIFamilyAL2023.Disks()
	class.Spec.BlockDeviceMappings[0].EBS.IOPS, class.Spec.BlockDeviceMappings[0].EBS.Throughput = &iops, &mibps
	io2 := awsv1.AMIFamilyBottlerocket.Disks()[1]
	kind2, many := "io2", int64(70000)
	io2.EBS.VolumeType, io2.EBS.IOPS = &kind2, &many
	class.Spec.BlockDeviceMappings = append(class.Spec.BlockDeviceMappings, io2)
	perMonth := func(p *ec2.ExtraPrices) float64 {
		g, o := p.Volumes[kind], p.Volumes[kind2]
		return 20*g.GiB + 2000*g.IOPS[0] + 100*g.MiBps + 20*o.GiB + 32000*o.IOPS[0] + 32000*o.IOPS[1] + 6000*o.IOPS[2] + 730*p.PublicIPv4
	}
	account, c := newAccount(t, "eu-west-1")
	prices, err := ec2.Extras("eu-west-1")
	if err != nil {
		t.Fatal(err)
	}
	check := func(what string) {
		t.Helper()
		got := c.NodeExtras(class, []string{"eu-west-1a"}).Parts()
		if month, want := model.Extras(got, 0, "eu-west-1a").Dollars()*730, perMonth(prices); month < want-1e-4 || month > want+1e-4 || len(got) != 6 {
			t.Errorf("%s: $%.5f in a month of %v, want $%.5f", what, month, got, want)
		}
	}
	set := func(change func(*ec2.ExtraPrices)) { account.SetExtraPrices(change); change(prices) }
	check("built in")
	set(func(p *ec2.ExtraPrices) {
		p.PublicIPv4 = 0.006
		p.Volumes["gp3"] = ec2.VolumePrice{GiB: 0.1, IOPS: []float64{0.007}, MiBps: 0.05}
		p.Volumes["io2"] = ec2.VolumePrice{GiB: 0.2, IOPS: []float64{0.09, 0.06, 0.03}}
	})
	must(t, c.RefreshPrices(t.Context()))
	check("AWS's")
	account.SetExtraPrices(func(p *ec2.ExtraPrices) { delete(p.Volumes, "io2") })
	must(t, c.RefreshPrices(t.Context()))
	check("without io2 in the answer")
	account.SetExtraPrices(func(p *ec2.ExtraPrices) { p.PublicIPv4 = 0.1 })
	mend := account.Fail("GetProducts", awsfake.Failure{Code: "InternalErrorException", Server: true})
	if err := c.RefreshPrices(t.Context()); err == nil {
		t.Error("no error")
	}
	check("the price list fails")
	mend()
	must(t, c.RefreshPrices(t.Context()))
	prices.PublicIPv4 = 0.1
	check("and works again")
}

// TestNodeExtrasWhereNoOneIsAsked: AWS GovCloud (US) goes by what is built in;
// China's prices are in yuan, before AWS has answered and afterwards.
func TestNodeExtrasWhereNoOneIsAsked(t *testing.T) {
	class := &awsv1.EC2NodeClass{}
	class.Spec.AMISelectorTerms = []awsv1.AMISelectorTerm{{Alias: "al2023@latest"}}
	account, c := newAccount(t, "us-gov-west-1")
	account.SetExtraPrices(func(p *ec2.ExtraPrices) { p.Volumes["gp3"] = ec2.VolumePrice{GiB: 50} })
	must(t, c.RefreshPrices(t.Context()))
	if got := c.NodeExtras(class, nil); account.Calls()["GetProducts"] != 0 || len(got) != 1 || got[0].Name() != "/dev/xvda gp3: 20 GiB" || !strings.HasPrefix(fmt.Sprint(got[0].Price.Dollars()), "0.0026") {
		t.Errorf("GovCloud: %v, asked %d times", got, account.Calls()["GetProducts"])
	}
	account, c = newAccount(t, "cn-north-1")
	before := c.NodeExtras(class, nil)[0].Price
	account.SetExtraPrices(func(p *ec2.ExtraPrices) {
		p.Volumes["gp3"] = ec2.VolumePrice{GiB: 0.5, IOPS: []float64{0.05}, MiBps: 0.3}
	})
	must(t, c.RefreshPrices(t.Context()))
	if after := c.NodeExtras(class, nil)[0].Price.Dollars() * 730; after < 9.999 || after > 10.001 || before.Dollars()*730 < 8 {
		t.Errorf("China: %.2f in a month before, %.2f afterwards", before.Dollars()*730, after)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
