// SPDX-License-Identifier: Apache-2.0

package instancetype

import (
	"fmt"

	"k8s.io/utils/ptr"

	awsv1 "karpenter/api/aws/v1"
	"karpenter/cloud/ec2"
	"karpenter/model"
)

// ExtraKind is a kind of cost that a node has beside its instance.
type ExtraKind string

// The kinds of extra costs.
const (
	ExtraStorage    ExtraKind = "storage"     // of a volume, by size
	ExtraIOPS       ExtraKind = "iops"        // that are provisioned for a volume
	ExtraThroughput ExtraKind = "throughput"  // that is provisioned for a volume
	ExtraPublicIPv4 ExtraKind = "public-ipv4" // address
)

// Extra is one part of what a node costs beside its instance.
type Extra struct {
	Kind       ExtraKind
	Device     string // of a volume, such as /dev/xvda
	VolumeType string // such as gp3
	Amount     int64  // charged: GiB, I/O operations per second, MiB/s, or addresses
	// Assumed reports that the EC2NodeClass does not say the size or type of the
	// volume, but leaves it to the AMI, a snapshot or EC2.
	Assumed bool
	Zone    string      // only nodes in it have the part; "" = all nodes
	Price   model.Price // per hour
}

// Name returns what the part is, as people read it.
func (e Extra) Name() string {
	unit := map[ExtraKind]string{ExtraStorage: "GiB", ExtraIOPS: "IOPS", ExtraThroughput: "MiB/s"}[e.Kind]
	if e.Kind == ExtraPublicIPv4 {
		return "public IPv4 address"
	}
	text := fmt.Sprintf("%s %s: %d %s", e.Device, e.VolumeType, e.Amount, unit)
	if e.Assumed {
		text += " (assumed)"
	}
	return text
}

// Extras are everything that a node costs beside its instance.
type Extras []Extra

// Parts returns the extras as plans see them.
func (x Extras) Parts() []model.Extra {
	var out []model.Extra
	for _, e := range x {
		out = append(out, model.Extra{Name: e.Name(), Price: e.Price, Zone: e.Zone})
	}
	return out
}

func (x *Extras) add(e Extra) {
	if e.Price > 0 {
		*x = append(*x, e)
	}
}

// NodeExtras returns what each node of the class costs beside its instance: its
// volumes, and a public IPv4 address. Public are the zones in which subnets of the
// class assign public addresses to instances; they count if the class itself does
// not say whether nodes get an address.
//
// Every volume counts while the node runs. One-off costs (volume initialization)
// and costs of use (I/O requests of magnetic volumes, snapshots, traffic) do not.
func NodeExtras(class *awsv1.EC2NodeClass, public []string, prices *ec2.ExtraPrices) Extras {
	var out Extras
	for _, d := range volumes(class) {
		out.volume(d, prices)
	}
	address := Extra{Kind: ExtraPublicIPv4, Amount: 1, Price: prices.Address()}
	switch asked := class.Spec.AssociatePublicIPAddress; {
	case asked == nil:
		for _, zone := range public {
			address.Zone = zone
			out.add(address)
		}
	case *asked:
		out.add(address)
	}
	return out
}

// disk is a volume with everything that its price depends on.
type disk struct {
	device, kind     string
	gib, iops, mibps int64
	assumed          bool
}

// assumedGiB is the size of volumes of unknown size.
const assumedGiB = 20

// volumes are those of the class, or, if it has none, of its AMI family. The AMI
// adds its root volume if the class does not map that device.
func volumes(class *awsv1.EC2NodeClass) []disk {
	family := class.AMIFamily().Disks()
	unknown := len(family) == 0 // Custom: taken for an image like AL2023
	if unknown {
		family = awsv1.AMIFamilyAL2023.Disks()
	}
	mapped := class.Spec.BlockDeviceMappings
	if len(mapped) == 0 {
		var out []disk
		for _, m := range family {
			out = append(out, diskOf(m, unknown))
		}
		return out
	}
	var out []disk
	root := unknown // of a custom image no one knows the root device; the class is taken to map it
	for _, m := range mapped {
		root = root || m.RootVolume || ptr.Deref(m.DeviceName, "") == *family[0].DeviceName
		if m.EBS != nil {
			out = append(out, diskOf(m, false))
		}
	}
	if !root {
		out = append(out, diskOf(family[0], true))
	}
	return out
}

func diskOf(m *awsv1.BlockDeviceMapping, assumed bool) disk {
	const gibibyte = 1 << 30
	out := disk{
		device: ptr.Deref(m.DeviceName, ""), kind: ptr.Deref(m.EBS.VolumeType, ""), gib: assumedGiB,
		iops: ptr.Deref(m.EBS.IOPS, 0), mibps: ptr.Deref(m.EBS.Throughput, 0), assumed: assumed,
	}
	if size := m.EBS.VolumeSize; size != nil {
		out.gib = (size.Value() + gibibyte - 1) / gibibyte
	} else {
		out.assumed = true
	}
	if out.kind == "" { // EC2's default, if neither the AMI nor the snapshot says otherwise
		out.kind, out.assumed = "gp2", true
	}
	return out
}

// volume adds the parts of a volume's price.
func (x *Extras) volume(d disk, prices *ec2.ExtraPrices) {
	price := prices.Volumes[d.kind]
	part := Extra{Device: d.device, VolumeType: d.kind, Assumed: d.assumed}
	part.Kind, part.Amount, part.Price = ExtraStorage, d.gib, price.Storage(d.gib)
	x.add(part)
	part.Kind = ExtraIOPS
	part.Amount, part.Price = price.ProvisionedIOPS(d.kind, d.iops)
	x.add(part)
	part.Kind = ExtraThroughput
	part.Amount, part.Price = price.ProvisionedThroughput(d.mibps)
	x.add(part)
}
