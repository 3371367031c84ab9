// SPDX-License-Identifier: Apache-2.0

package vm

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/network/armnetwork/v9"
)

// joins is what network interfaces join.
type joins struct {
	pools []string // ARM IDs of backend pools of load balancers
	group string   // name of the security group that AKS manages
	round int      // how often they had been read
}

// joinsLast is how long what network interfaces join is taken to stay the same.
const joinsLast = 2 * time.Hour

// joinable returns what network interfaces join. What was read in the round, and is stale, is
// read again; by one of those who say so.
func (v *VMs) joinable(ctx context.Context, stale int) (joins, error) {
	select {
	case v.reading <- struct{}{}:
		defer func() { <-v.reading }()
	case <-ctx.Done():
		return joins{}, ctx.Err()
	}
	if now := v.config.Clock.Now(); v.joins.round == stale || now.Sub(v.joinsRead) >= joinsLast {
		group, err := v.managedGroup(ctx)
		if err != nil {
			return joins{}, err
		}
		pools, err := v.backendPools(ctx)
		if err != nil {
			return joins{}, err
		}
		v.joins, v.joinsRead = joins{pools, group, v.joins.round + 1}, now
	}
	return v.joins, nil
}

// managedGroup returns the name of the only security group that AKS manages.
func (v *VMs) managedGroup(ctx context.Context) (string, error) {
	var found []string
	name := regexp.MustCompile(`(?i)^aks-agentpool-[0-9]{8}-nsg$`)
	pager := v.config.Groups.NewListPager(v.config.NodeResourceGroup, nil)
	for pager.More() {
		page, err := pager.NextPage(ctx)
		if err != nil {
			return "", fmt.Errorf("list the network security groups of %s: %w", v.config.NodeResourceGroup, err)
		}
		for _, g := range page.Value {
			if g != nil && g.Name != nil && name.MatchString(*g.Name) {
				found = append(found, *g.Name)
			}
		}
	}
	if len(found) != 1 {
		return "", fmt.Errorf("couldn't find managed NSG: %s has %d network security groups named aks-agentpool-NUMBER-nsg", v.config.NodeResourceGroup, len(found))
	}
	return found[0], nil
}

// backendPools returns the ARM IDs of the pools of AKS' load balancers that network
// interfaces join: not those of IPv6, and not those whose members are addresses.
func (v *VMs) backendPools(ctx context.Context) ([]string, error) {
	var out []string
	pager := v.config.Balancers.NewListPager(v.config.NodeResourceGroup, nil)
	for pager.More() {
		page, err := pager.NextPage(ctx)
		if err != nil {
			return nil, fmt.Errorf("list the load balancers of %s: %w", v.config.NodeResourceGroup, err)
		}
		for _, b := range page.Value {
			if b == nil || b.Name == nil || b.Properties == nil || !strings.EqualFold(*b.Name, "kubernetes") && !strings.EqualFold(*b.Name, "kubernetes-internal") {
				continue
			}
			for _, p := range b.Properties.BackendAddressPools {
				if p != nil && p.ID != nil && p.Name != nil && joinablePool(p) {
					out = append(out, *p.ID)
				}
			}
		}
	}
	return out, nil
}

func joinablePool(p *armnetwork.BackendAddressPool) bool {
	if strings.EqualFold(*p.Name, "aksOutboundBackendPool-ipv6") || strings.EqualFold(*p.Name, "kubernetes-ipv6") {
		return false
	}
	if p.Properties == nil {
		return true
	}
	for _, member := range p.Properties.LoadBalancerBackendAddresses {
		if member != nil && member.Properties != nil && member.Properties.IPAddress != nil && *member.Properties.IPAddress != "" {
			return false
		}
	}
	return true
}

// stale reports whether Azure has refused a network interface because the security group or one
// of the pools is gone.
func (j joins) stale(err error) bool {
	var answer *azcore.ResponseError
	if !errors.As(err, &answer) || answer.ErrorCode != "InvalidResourceReference" {
		return false
	}
	text := strings.ToLower(answer.Error())
	for _, id := range append([]string{"/networkSecurityGroups/" + j.group}, j.pools...) {
		if strings.Contains(text, strings.ToLower(id)) {
			return true
		}
	}
	return false
}
