// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/arm"
	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/compute/armcompute/v7"
	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/network/armnetwork/v9"

	"karpenter/api/azure/v1beta1"
	"karpenter/cloud"
	"karpenter/cloud/azure/catalogue"
	"karpenter/cloud/azure/image"
	"karpenter/cloud/azure/nodeclass"
	"karpenter/cloud/azure/subnet"
	"karpenter/cloud/azurevm"
)

// SKUs returns the VM sizes that the region offers to the subscription.
func (a *Azure) SKUs(ctx context.Context, region string) ([]azurevm.SKU, error) {
	filter := "location eq '" + region + "'"
	var out []azurevm.SKU
	pager := a.skus.NewListPager(&armcompute.ResourceSKUsClientListOptions{Filter: &filter})
	for pager.More() {
		page, err := pager.NextPage(ctx)
		if err != nil {
			return nil, err
		}
		for _, sku := range page.Value {
			if sku != nil && strings.EqualFold(text(sku.ResourceType), virtualMachines) {
				out = append(out, skuOf(sku, region))
			}
		}
	}
	return out, nil
}

// Usages returns the quotas of vCPUs in the region, by family.
func (a *Azure) Usages(ctx context.Context, region string) (map[string]catalogue.Usage, error) {
	out := map[string]catalogue.Usage{}
	pager := a.usages.NewListPager(region, nil)
	for pager.More() {
		page, err := pager.NextPage(ctx)
		if err != nil {
			return nil, err
		}
		for _, u := range page.Value {
			if u != nil && u.Name != nil && u.Name.Value != nil && u.CurrentValue != nil && u.Limit != nil {
				out[*u.Name.Value] = catalogue.Usage{Current: int64(*u.CurrentValue), Limit: *u.Limit}
			}
		}
	}
	return out, nil
}

// Images returns the newest image of each definition that is wanted and exists in
// AKS' shared galleries, whose subscription is named.
func (a *Azure) Images(ctx context.Context, region, galleries string, wanted image.Wanted) ([]v1beta1.NodeImage, error) {
	var versions []image.Shared
	pager := a.versions.NewListNodeImageVersionsPager(region, nil)
	for pager.More() {
		page, err := pager.NextPage(ctx)
		if err != nil {
			return nil, err
		}
		for _, v := range page.Value {
			if v != nil {
				versions = append(versions, image.Shared{OS: text(v.OS), SKU: text(v.SKU), Version: text(v.Version)})
			}
		}
	}
	newest := image.NewestShared(versions)
	var out []v1beta1.NodeImage
	for _, d := range wanted.Definitions() {
		if version := newest[d.Name]; version != "" {
			out = append(out, d.Node(d.SharedID(galleries, version)))
		}
	}
	return out, nil
}

// CommunityImages returns the newest image of each definition that is wanted and exists
// in AKS' community galleries.
func (a *Azure) CommunityImages(ctx context.Context, region string, wanted image.Wanted) ([]v1beta1.NodeImage, error) {
	var out []v1beta1.NodeImage
	for _, d := range wanted.Definitions() {
		var versions []image.Published
		pager := a.community.NewListPager(region, d.CommunityGallery(), d.Name, nil)
		for pager.More() {
			page, err := pager.NextPage(ctx)
			if status(err) == http.StatusNotFound {
				break
			}
			if err != nil {
				return nil, err
			}
			for _, v := range page.Value {
				if v != nil && v.Name != nil && v.Properties != nil && v.Properties.PublishedDate != nil {
					versions = append(versions, image.Published{Version: *v.Name, Date: *v.Properties.PublishedDate})
				}
			}
		}
		if version := image.NewestPublished(versions); version != "" {
			out = append(out, d.Node(d.CommunityID(version)))
		}
	}
	return out, nil
}

// NetworkGUID returns the GUID of the virtual network of a subnet.
func (a *Azure) NetworkGUID(ctx context.Context, id string) (string, error) {
	parsed, ok := subnet.Parse(id)
	if !ok {
		return "", fmt.Errorf("%s is not the ID of a subnet", id)
	}
	networks, err := armnetwork.NewVirtualNetworksClient(parsed.Subscription, a.credential, a.options)
	if err != nil {
		return "", err
	}
	answer, err := networks.Get(ctx, parsed.Group, parsed.Network, nil)
	if err != nil {
		return "", fmt.Errorf("read virtual network %s: %w", parsed.Network, err)
	}
	if answer.Properties == nil || answer.Properties.ResourceGUID == nil {
		return "", fmt.Errorf("virtual network %s has no GUID", parsed.Network)
	}
	return *answer.Properties.ResourceGUID, nil
}

// CheckSubnet reads a subnet by its ARM ID. The error of one that does not exist is
// a cloud.NotFoundError.
func (a *Azure) CheckSubnet(ctx context.Context, id string) error {
	parsed, err := arm.ParseResourceID(id)
	if err != nil {
		return err
	}
	if parsed.Parent == nil {
		return fmt.Errorf("%s is not the ID of a subnet", id)
	}
	subnets, err := a.subnets(parsed.SubscriptionID)
	if err != nil {
		return err
	}
	_, err = subnets.Get(ctx, parsed.ResourceGroupName, parsed.Parent.Name, parsed.Name, nil)
	if status(err) == http.StatusNotFound {
		return &cloud.NotFoundError{Err: err}
	}
	return err
}

// CheckEncryptionSet reads a disk encryption set by its ARM ID. The error is or
// wraps nodeclass.ErrForbidden when Azure refuses that.
func (a *Azure) CheckEncryptionSet(ctx context.Context, id string) error {
	parsed, err := arm.ParseResourceID(id)
	if err != nil {
		return err
	}
	sets, err := a.encryptionSets(parsed.SubscriptionID)
	if err != nil {
		return err
	}
	_, err = sets.Get(ctx, parsed.ResourceGroupName, parsed.Name, nil)
	if s := status(err); s == http.StatusUnauthorized || s == http.StatusForbidden {
		return fmt.Errorf("disk encryption set %s: %w", id, errors.Join(nodeclass.ErrForbidden, err))
	}
	return err
}

// status returns the HTTP status of an answer of Azure that is an error, else 0.
func status(err error) int {
	if answer, ok := errors.AsType[*azcore.ResponseError](err); ok {
		return answer.StatusCode
	}
	return 0
}
