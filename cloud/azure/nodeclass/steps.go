// SPDX-License-Identifier: Apache-2.0

package nodeclass

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/version"

	"karpenter/api/azure/v1beta1"
	"karpenter/api/conditions"
	"karpenter/cloud"
	"karpenter/cloud/azure/image"
	"karpenter/cloud/azure/subnet"
)

// When to look again.
const (
	versionInterval    = 15 * time.Minute
	imagesInterval     = 5 * time.Minute
	subnetInterval     = 3 * time.Minute
	validationInterval = time.Hour
	localDNSInterval   = 5 * time.Minute
	failedInterval     = time.Minute
)

// version follows the API server upwards.
func (p *pass) version(ctx context.Context) (time.Duration, error) {
	text, err := p.Version(ctx)
	if err != nil {
		return 0, fmt.Errorf("read the version of the API server: %w", err)
	}
	text = strings.TrimPrefix(text, "v")
	served, err := version.ParseGeneric(text)
	if err != nil {
		return 0, fmt.Errorf("read the version of the API server: %w", err)
	}
	stored := p.class.Status.KubernetesVersion
	if stored == nil || !conditions.IsTrue(p.class, v1beta1.KubernetesVersionReadyCondition) {
		p.class.Status.KubernetesVersion = &text
	} else if known, err := version.ParseGeneric(*stored); err != nil || known.LessThan(served) {
		p.class.Status.KubernetesVersion = &text
		p.set.SetFalse(v1beta1.ImagesReadyCondition, v1beta1.KubernetesUpgradeReason, "Performing kubernetes upgrade, need to get latest images")
	}
	p.set.SetTrue(v1beta1.KubernetesVersionReadyCondition)
	return versionInterval, nil
}

// images takes the newest images when nothing else is known, and while maintenance
// may happen. Otherwise the versions stay.
func (p *pass) images(ctx context.Context) (time.Duration, error) {
	kubernetes, err := p.class.KubernetesVersion()
	if err != nil {
		return 0, err
	}
	if p.class.FIPS() && !p.SharedImages {
		p.class.Status.Images = nil
		p.set.SetFalse(v1beta1.ImagesReadyCondition, v1beta1.SIGRequiredForFIPSReason,
			"FIPS images require UseSIG to be enabled, but UseSIG is false (note: UseSIG is only supported in AKS managed NAP)")
		return 0, nil
	}
	announced, err := p.Window(ctx)
	if err != nil {
		return 0, fmt.Errorf("read ConfigMap %s: %w", image.WindowConfigMap, err)
	}
	open, err := image.WindowOpen(announced, p.now)
	if err != nil {
		return 0, err
	}
	images, err := p.Newest(ctx, image.Of(p.class, kubernetes))
	if err != nil {
		return 0, fmt.Errorf("find images: %w", err)
	}
	if conditions.IsTrue(p.class, v1beta1.ImagesReadyCondition) && !open {
		images = image.Keep(p.class.Status.Images, images)
	}
	p.class.Status.Images = images
	if len(images) == 0 {
		p.set.SetFalse(v1beta1.ImagesReadyCondition, v1beta1.ImagesNotFoundReason, "ImageSelectors did not match any Images")
		return imagesInterval, nil
	}
	p.set.SetTrue(v1beta1.ImagesReadyCondition)
	return imagesInterval, nil
}

// invalidSubnet returns why nodes cannot be in the subnet of the class, "" if they
// can be.
func (p *pass) invalidSubnet(id string) string {
	parsed, ok := subnet.Parse(id)
	cluster, known := subnet.Parse(p.Subnet)
	switch {
	case !ok:
		return "Failed to parse vnetSubnetID " + id
	case !known:
		return "Failed to parse vnetSubnetID " + p.Subnet
	case strings.EqualFold(id, p.Subnet):
		return ""
	case !parsed.SameNetwork(cluster):
		return "vnetSubnetID does not match the cluster subscription, resource group, or virtual network: " + id
	case cluster.Managed(p.NodeResourceGroup):
		return "custom subnet cannot be in the same VNet as cluster managed VNet: " + id
	}
	return ""
}

func (p *pass) subnet(ctx context.Context) (time.Duration, error) {
	id := p.Subnet
	if own := p.class.Spec.VNETSubnetID; own != nil {
		id = *own
	}
	if why := p.invalidSubnet(id); why != "" {
		p.set.SetFalse(v1beta1.SubnetsReadyCondition, v1beta1.SubnetIDInvalidReason, why)
		return failedInterval, nil
	}
	err := p.CheckSubnet(ctx, id)
	switch {
	case cloud.IsNotFound(err):
		p.set.SetFalse(v1beta1.SubnetsReadyCondition, v1beta1.SubnetNotFoundReason, "resource not found: "+id)
		return failedInterval, nil
	case err != nil:
		p.set.SetFalse(v1beta1.SubnetsReadyCondition, v1beta1.SubnetUnknownErrorReason, err.Error())
		return 0, fmt.Errorf("read subnet %s: %w", id, err)
	}
	p.set.SetTrue(v1beta1.SubnetsReadyCondition)
	return subnetInterval, nil
}

func (p *pass) validate(ctx context.Context) (time.Duration, error) {
	if p.Unsupported != nil {
		if what := p.Unsupported(p.class); what != "" {
			p.set.SetFalse(v1beta1.ValidationSucceededCondition, v1beta1.NotSupportedByProvisionModeReason,
				what+" has no effect on VMs that Karpenter makes itself; remove it, or set PROVISION_MODE to aksmachineapi")
			return validationInterval, nil
		}
	}
	if p.DiskEncryptionSet != nil {
		err := p.DiskEncryptionSet(ctx)
		if errors.Is(err, ErrForbidden) {
			p.set.SetFalse(v1beta1.ValidationSucceededCondition, v1beta1.DiskEncryptionSetRBACMissingReason, err.Error())
			return failedInterval, nil
		}
		if err != nil {
			return 0, fmt.Errorf("read the disk encryption set: %w", err)
		}
	}
	p.set.SetTrue(v1beta1.ValidationSucceededCondition)
	return validationInterval, nil
}

// localDNSVersion is the version of Kubernetes from which Preferred switches
// localDNS on. AKS has not released it yet.
const localDNSVersion = "1.99.0"

func (p *pass) localDNS(ctx context.Context) (time.Duration, error) {
	state, again := v1beta1.LocalDNSStateDisabled, time.Duration(0)
	if dns := p.class.Spec.LocalDNS; dns != nil {
		switch dns.Mode {
		case v1beta1.LocalDNSModeRequired:
			state = v1beta1.LocalDNSStateEnabled
		case v1beta1.LocalDNSModePreferred:
			enabled, err := p.preferredDNS(ctx)
			if err != nil {
				p.set.SetFalse(v1beta1.LocalDNSReadyCondition, v1beta1.CheckingClusterRequirementsFailedReason, err.Error())
				return 0, err
			}
			if again = localDNSInterval; enabled {
				state, again = v1beta1.LocalDNSStateEnabled, 0
			}
		}
	}
	p.class.Status.LocalDNSState = &state
	p.set.SetTrue(v1beta1.LocalDNSReadyCondition)
	return again, nil
}

// preferredDNS reports whether Preferred means Enabled. Once it does, it does for
// good. The API server is asked only if nothing else speaks against it.
func (p *pass) preferredDNS(ctx context.Context) (bool, error) {
	if s := p.class.Status.LocalDNSState; s != nil && *s == v1beta1.LocalDNSStateEnabled {
		return true, nil
	}
	kubernetes, err := p.class.KubernetesVersion()
	if err != nil {
		return false, err
	}
	served, err := version.ParseGeneric(kubernetes)
	if err != nil {
		return false, err
	}
	if served.LessThan(version.MustParseGeneric(localDNSVersion)) || p.NetworkPlugin == "none" ||
		image.Of(p.class, kubernetes).Family == image.Ubuntu2004 {
		return false, nil
	}
	if p.DNSConflicts == nil {
		return false, nil
	}
	conflicts, err := p.DNSConflicts(ctx)
	return !conflicts, err
}
