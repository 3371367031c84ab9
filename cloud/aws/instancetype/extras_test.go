// SPDX-License-Identifier: Apache-2.0

package instancetype_test

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"

	awsv1 "karpenter/api/aws/v1"
	"karpenter/cloud/aws/instancetype"
	"karpenter/cloud/ec2"
	"karpenter/model"
)

// mapping is a volume as users write it.
func mapping(device, kind, size string, iops, mibps int64) *awsv1.BlockDeviceMapping {
	out := &awsv1.BlockDeviceMapping{DeviceName: &device, EBS: &awsv1.BlockDevice{}}
	if kind != "" {
		out.EBS.VolumeType = &kind
	}
	if size != "" {
		out.EBS.VolumeSize = ptr.To(resource.MustParse(size))
	}
	if iops > 0 {
		out.EBS.IOPS = &iops
	}
	if mibps > 0 {
		out.EBS.Throughput = &mibps
	}
	return out
}

// TestNodeExtras: what the volumes and the address of a node cost in us-east-1.
func TestNodeExtras(t *testing.T) {
	type list = []*awsv1.BlockDeviceMapping
	for name, c := range map[string]struct {
		family  awsv1.AMIFamily
		disks   list
		asked   *bool
		public  []string
		want    string
		dollars float64 // per month of 730 hours
	}{
		"AL2023 by default":       {awsv1.AMIFamilyAL2023, nil, nil, nil, "/dev/xvda gp3: 20 GiB", 20 * 0.08},
		"Bottlerocket by default": {awsv1.AMIFamilyBottlerocket, nil, nil, nil, "/dev/xvda gp3: 6 GiB|/dev/xvdb gp3: 20 GiB", 26 * 0.08},
		"Windows by default":      {awsv1.AMIFamilyWindows2022, nil, nil, nil, "/dev/sda1 gp3: 50 GiB", 50 * 0.08},
		"a custom image":          {awsv1.AMIFamilyCustom, nil, nil, nil, "/dev/xvda gp3: 20 GiB (assumed)", 20 * 0.08},
		"a custom image's disk":   {awsv1.AMIFamilyCustom, list{mapping("/dev/sda1", "gp3", "100Gi", 0, 0)}, nil, nil, "/dev/sda1 gp3: 100 GiB", 8},
		"gp3 within what is free": {awsv1.AMIFamilyAL2023, list{mapping("/dev/xvda", "gp3", "100Gi", 3000, 125)}, nil, nil, "/dev/xvda gp3: 100 GiB", 8},
		"gp3 with more": {awsv1.AMIFamilyAL2023, list{mapping("/dev/xvda", "gp3", "100Gi", 10000, 500)}, nil, nil,
			"/dev/xvda gp3: 100 GiB|/dev/xvda gp3: 7000 IOPS|/dev/xvda gp3: 375 MiB/s", 8 + 7000*0.005 + 375*0.04},
		"gp2": {awsv1.AMIFamilyAL2023, list{mapping("/dev/xvda", "gp2", "30G", 0, 0)}, nil, nil, "/dev/xvda gp2: 28 GiB", 2.8},
		"io1": {awsv1.AMIFamilyAL2023, list{mapping("/dev/xvda", "io1", "100Gi", 40000, 0)}, nil, nil,
			"/dev/xvda io1: 100 GiB|/dev/xvda io1: 40000 IOPS", 12.5 + 40000*0.065},
		"io2 in three tiers": {awsv1.AMIFamilyAL2023, list{mapping("/dev/xvda", "io2", "1Ti", 100000, 0)}, nil, nil,
			"/dev/xvda io2: 1024 GiB|/dev/xvda io2: 100000 IOPS", 128 + 32000*0.065 + 32000*0.0455 + 36000*0.03185},
		"no type": {awsv1.AMIFamilyAL2023, list{mapping("/dev/xvda", "", "10Gi", 0, 0)}, nil, nil, "/dev/xvda gp2: 10 GiB (assumed)", 1},
		"no size": {awsv1.AMIFamilyAL2023, list{mapping("/dev/xvda", "gp3", "", 0, 0)}, nil, nil, "/dev/xvda gp3: 20 GiB (assumed)", 1.6},
		"the image's root beside": {awsv1.AMIFamilyBottlerocket, list{mapping("/dev/xvdb", "gp3", "100Gi", 0, 0)}, nil, nil,
			"/dev/xvdb gp3: 100 GiB|/dev/xvda gp3: 6 GiB (assumed)", 106 * 0.08},
		"a local disk":            {awsv1.AMIFamilyAL2023, list{{DeviceName: ptr.To("/dev/sdb")}}, nil, nil, "/dev/xvda gp3: 20 GiB (assumed)", 1.6},
		"an address":              {awsv1.AMIFamilyAL2023, nil, ptr.To(true), nil, "/dev/xvda gp3: 20 GiB|public IPv4 address", 1.6 + 0.005*730},
		"the subnets' address":    {awsv1.AMIFamilyAL2023, nil, nil, []string{"a"}, "/dev/xvda gp3: 20 GiB|public IPv4 address in a", 1.6 + 0.005*730},
		"some subnets' address":   {awsv1.AMIFamilyAL2023, nil, nil, []string{"a", "b"}, "/dev/xvda gp3: 20 GiB|public IPv4 address in a|public IPv4 address in b", 1.6 + 0.005*730},
		"no address all the same": {awsv1.AMIFamilyAL2023, nil, ptr.To(false), []string{"a"}, "/dev/xvda gp3: 20 GiB", 1.6},
	} {
		prices, err := ec2.Extras("us-east-1")
		if err != nil {
			t.Fatal(err)
		}
		class := &awsv1.EC2NodeClass{Spec: awsv1.EC2NodeClassSpec{AMIFamily: &c.family, BlockDeviceMappings: c.disks, AssociatePublicIPAddress: c.asked}}
		got := instancetype.NodeExtras(class, c.public, prices)
		var parts []string
		for i, e := range got.Parts() {
			text := e.Name
			if e.Zone != "" {
				text += " in " + e.Zone
			}
			if parts = append(parts, text); e.Price != got[i].Price || e.VCPU {
				t.Errorf("%s: %+v", name, e)
			}
		}
		if text := strings.Join(parts, "|"); text != c.want {
			t.Errorf("%s: %s, want %s", name, text, c.want)
		}
		const vcpu = 1000
		if month := model.Extras(got.Parts(), vcpu, "a").Dollars() * 730; month < c.dollars-1e-5 || month > c.dollars+1e-5 {
			t.Errorf("%s: $%.6f in a month, want $%.6f", name, month, c.dollars)
		}
	}
}
