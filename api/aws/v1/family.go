// SPDX-License-Identifier: Apache-2.0

package v1

import (
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
)

// Alias stands for the images AWS publishes for an AMI family.
//
// +kubebuilder:object:generate=false
type Alias struct {
	Family AMIFamily
	// Version is a release of the family as the user wrote it, or "latest".
	Version string
}

// AliasVersionLatest is the version that follows the family's releases.
const AliasVersionLatest = "latest"

// Alias returns the alias among the AMI selector terms. If there is none, or it
// names a family that has no images, ok is false.
func (c *EC2NodeClass) Alias() (alias Alias, ok bool) {
	for _, term := range c.Spec.AMISelectorTerms {
		if term.Alias != "" {
			return parseAlias(term.Alias)
		}
	}
	return Alias{}, false
}

func parseAlias(text string) (Alias, bool) {
	name, version, ok := strings.Cut(text, "@")
	if !ok || version == "" {
		return Alias{}, false
	}
	for _, family := range []AMIFamily{
		AMIFamilyAL2, AMIFamilyAL2023, AMIFamilyBottlerocket,
		AMIFamilyWindows2019, AMIFamilyWindows2022, AMIFamilyWindows2025,
	} {
		if name == strings.ToLower(string(family)) {
			return Alias{Family: family, Version: version}, true
		}
	}
	return Alias{}, false
}

// AMIFamily returns how nodes of the class boot: spec.amiFamily, or else the
// family of the alias, or else Custom. It does not decide where images come
// from: with the family Custom and an alias, images of the alias boot with
// unchanged user data.
func (c *EC2NodeClass) AMIFamily() AMIFamily {
	if c.Spec.AMIFamily != nil {
		return *c.Spec.AMIFamily
	}
	if alias, ok := c.Alias(); ok {
		return alias.Family
	}
	return AMIFamilyCustom
}

// IsWindows reports whether nodes of the family run Windows.
func (f AMIFamily) IsWindows() bool {
	switch f {
	case AMIFamilyWindows2019, AMIFamilyWindows2022, AMIFamilyWindows2025:
		return true
	}
	return false
}

// Disks returns the default disks of the family, for classes that set none. It
// returns none if the image decides. The last disk holds the ephemeral storage
// of pods. The caller may modify the result.
func (f AMIFamily) Disks() []*BlockDeviceMapping {
	disk := func(name, size string) *BlockDeviceMapping {
		quantity, encrypted, volumeType := resource.MustParse(size), true, "gp3"
		return &BlockDeviceMapping{
			DeviceName: &name,
			EBS:        &BlockDevice{Encrypted: &encrypted, VolumeType: &volumeType, VolumeSize: &quantity},
		}
	}
	switch f {
	case AMIFamilyAL2, AMIFamilyAL2023:
		return []*BlockDeviceMapping{disk("/dev/xvda", "20Gi")}
	case AMIFamilyBottlerocket:
		return []*BlockDeviceMapping{disk("/dev/xvda", "6Gi"), disk("/dev/xvdb", "20Gi")}
	case AMIFamilyWindows2019, AMIFamilyWindows2022, AMIFamilyWindows2025:
		return []*BlockDeviceMapping{disk("/dev/sda1", "50Gi")}
	}
	return nil
}
