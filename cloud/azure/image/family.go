// SPDX-License-Identifier: Apache-2.0

package image

import (
	"strings"

	"k8s.io/apimachinery/pkg/util/version"

	"karpenter/api/azure/v1beta1"
)

// Family is an operating system with its version.
type Family string

// The families. Ubuntu 20.04 exists with FIPS only.
const (
	Ubuntu2004  Family = "Ubuntu2004"
	Ubuntu2204  Family = "Ubuntu2204"
	Ubuntu2404  Family = "Ubuntu2404"
	AzureLinux2 Family = "AzureLinux2"
	AzureLinux3 Family = "AzureLinux3"
)

// Wanted is what an AKSNodeClass says about images.
type Wanted struct {
	Family        Family
	FIPS          bool
	TrustedLaunch bool
}

// Of returns what the class wants of images for nodes with a version of
// Kubernetes, such as 1.33.4. For text that is no version it is the family of
// older versions.
func Of(class *v1beta1.AKSNodeClass, kubernetes string) Wanted {
	w := Wanted{FIPS: class.FIPS(), TrustedLaunch: class.TrustsLaunch()}
	family := ""
	if class.Spec.ImageFamily != nil {
		family = *class.Spec.ImageFamily
	}
	switch family {
	case v1beta1.Ubuntu2204ImageFamily:
		w.Family = Ubuntu2204
	case v1beta1.Ubuntu2404ImageFamily:
		w.Family = Ubuntu2404
	case v1beta1.AzureLinuxImageFamily:
		w.Family = AzureLinux2
		if atLeast(kubernetes, "1.32") {
			w.Family = AzureLinux3
		}
	default:
		w.Family = ubuntu(w, kubernetes)
	}
	return w
}

// ubuntu returns the version of Ubuntu for a class that names none.
func ubuntu(w Wanted, kubernetes string) Family {
	switch {
	case w.TrustedLaunch:
		return Ubuntu2204
	case w.FIPS:
		return Ubuntu2004
	case atLeast(kubernetes, "1.34"):
		return Ubuntu2404
	}
	return Ubuntu2204
}

func atLeast(kubernetes, least string) bool {
	v, err := version.ParseGeneric(kubernetes)
	return err == nil && v.AtLeast(version.MustParseGeneric(least))
}

// GPUSystem returns the family's name in azurevm.GPU.
func (f Family) GPUSystem() string {
	switch f {
	case AzureLinux2:
		return "azurelinux"
	case AzureLinux3:
		return "azurelinux3"
	}
	return "ubuntu"
}

// Definition is an image for some instance types.
type Definition struct {
	Name       string
	Arch       string // amd64, arm64
	Generation string // of virtual machines: 1, 2
}

// Gallery returns the name of the shared gallery that holds the definition.
func (d Definition) Gallery() string {
	if strings.HasPrefix(d.Name, "V") {
		return azureLinuxGallery
	}
	return ubuntuGallery
}

// Definitions returns the images that are wanted, the preferred ones first. It is
// nil for combinations that do not exist.
func (w Wanted) Definitions() []Definition {
	return definitions()[w]
}

func definitions() map[Wanted][]Definition {
	gen2 := func(name string) Definition { return Definition{name, "amd64", "2"} }
	gen1 := func(name string) Definition { return Definition{name, "amd64", "1"} }
	arm := func(name string) Definition { return Definition{name, "arm64", "2"} }
	return map[Wanted][]Definition{
		{Family: Ubuntu2204}:  {gen2("2204gen2containerd"), gen1("2204containerd"), arm("2204gen2arm64containerd")},
		{Family: Ubuntu2404}:  {gen2("2404gen2containerd"), gen1("2404containerd"), arm("2404gen2arm64containerd")},
		{Family: AzureLinux2}: {gen2("V2gen2"), gen1("V2"), arm("V2gen2arm64")},
		{Family: AzureLinux3}: {gen2("V3gen2"), gen1("V3"), arm("V3gen2arm64")},

		{Family: Ubuntu2004, FIPS: true}:  {gen2("2004gen2fipscontainerd"), gen1("2004fipscontainerd")},
		{Family: AzureLinux2, FIPS: true}: {gen2("V2gen2fips"), gen1("V2fips")},
		{Family: AzureLinux3, FIPS: true}: {gen2("V3gen2fips"), gen1("V3fips"), arm("V3gen2arm64fips")},

		{Family: Ubuntu2204, TrustedLaunch: true}:             {gen2("2204gen2TLcontainerd")},
		{Family: Ubuntu2404, TrustedLaunch: true}:             {gen2("2404gen2TLcontainerd")},
		{Family: AzureLinux2, TrustedLaunch: true}:            {gen2("V2gen2TL")},
		{Family: AzureLinux3, TrustedLaunch: true}:            {gen2("V3gen2TL")},
		{Family: Ubuntu2204, FIPS: true, TrustedLaunch: true}: {gen2("2204gen2fipsTLcontainerd")},
	}
}
