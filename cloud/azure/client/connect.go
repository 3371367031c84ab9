// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/arm"
	azure "github.com/Azure/azure-sdk-for-go/sdk/azcore/cloud"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azidentity"
	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/compute/armcompute/v7"
	aks "github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/containerservice/armcontainerservice/v8"
	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/network/armnetwork/v9"
	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/resourcegraph/armresourcegraph"

	"karpenter/cloud"
)

// Azure is the clients of one subscription.
type Azure struct {
	Subscription string
	Machines     *aks.MachinesClient
	Pools        *aks.AgentPoolsClient
	// Those of virtual machines without AKS.
	VirtualMachines *armcompute.VirtualMachinesClient
	Extensions      *armcompute.VirtualMachineExtensionsClient
	Interfaces      *armnetwork.InterfacesClient
	Balancers       *armnetwork.LoadBalancersClient
	SecurityGroups  *armnetwork.SecurityGroupsClient
	Graph           *armresourcegraph.Client

	versions   *aks.Client
	skus       *armcompute.ResourceSKUsClient
	usages     *armcompute.UsageClient
	community  *armcompute.CommunityGalleryImageVersionsClient
	options    *arm.ClientOptions // of clients of other subscriptions
	credential azcore.TokenCredential
}

const (
	// tokenWait is how long the first token may take.
	tokenWait = 5 * time.Second
	// tryTimeout is how long one attempt of a call may take.
	tryTimeout = time.Minute
)

// Credential returns the credential of the SDK's default chain: environment,
// workload identity, managed identity, the login of a person. It must give a token
// soon, so that a process without credentials says so at its start.
func Credential(ctx context.Context, environment azure.Configuration) (azcore.TokenCredential, error) {
	return credentialWithin(ctx, environment, tokenWait)
}

func credentialWithin(ctx context.Context, environment azure.Configuration, wait time.Duration) (azcore.TokenCredential, error) {
	chain, err := azidentity.NewDefaultAzureCredential(&azidentity.DefaultAzureCredentialOptions{
		ClientOptions: policy.ClientOptions{Cloud: environment},
	})
	if err != nil {
		return nil, fmt.Errorf("credentials for Azure: %w", err)
	}
	scope := environment.Services[azure.ResourceManager].Audience + "/.default"
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	if _, err := chain.GetToken(ctx, policy.TokenRequestOptions{Scopes: []string{scope}}); err != nil {
		return nil, fmt.Errorf("no token for Azure within %v: label the pod azure.workload.identity/use=true and annotate its service account "+
			"with azure.workload.identity/client-id, or set the variables that azidentity reads: %w", wait, err)
	}
	return chain, nil
}

// Tenant returns the ID of the tenant that the credential is of, as its tokens tell; "" if
// they do not.
func (a *Azure) Tenant(ctx context.Context) (string, error) {
	scope := a.options.Cloud.Services[azure.ResourceManager].Audience + "/.default"
	token, err := a.credential.GetToken(ctx, policy.TokenRequestOptions{Scopes: []string{scope}})
	if err != nil {
		return "", fmt.Errorf("token for Azure: %w", err)
	}
	_, rest, _ := strings.Cut(token.Token, ".")
	payload, _, _ := strings.Cut(rest, ".")
	var claims struct {
		Tenant string `json:"tid"`
	}
	text, err := base64.RawURLEncoding.DecodeString(payload)
	if err != nil || json.Unmarshal(text, &claims) != nil {
		return "", nil // tokens need not be readable
	}
	return claims.Tenant, nil
}

// Options returns the options of clients in the cloud. What changes something is
// sent while the fence allows it; nil means always.
func Options(environment azure.Configuration, version string, fence cloud.Fence) *arm.ClientOptions {
	const longestID = 24 // of what the SDK accepts
	id := "karpenter-aks/v" + version
	out := &arm.ClientOptions{ClientOptions: policy.ClientOptions{
		Cloud:     environment,
		Telemetry: policy.TelemetryOptions{ApplicationID: id[:min(len(id), longestID)]},
		Retry:     policy.RetryOptions{TryTimeout: tryTimeout},
	}}
	out.PerRetryPolicies = append(out.PerRetryPolicies, &pause{until: map[string]time.Time{}})
	if fence != nil {
		out.PerRetryPolicies = append(out.PerRetryPolicies, guard{fence})
	}
	return out
}

// New returns the clients of the subscription.
func New(subscription string, credential azcore.TokenCredential, options *arm.ClientOptions) (*Azure, error) {
	out := &Azure{Subscription: subscription, options: options, credential: credential}
	var errs [9]error
	out.Machines, errs[0] = aks.NewMachinesClient(subscription, credential, options)
	out.Pools, errs[1] = aks.NewAgentPoolsClient(subscription, credential, options)
	out.versions, errs[2] = aks.NewClient(subscription, credential, options)
	out.skus, errs[3] = armcompute.NewResourceSKUsClient(subscription, credential, options)
	out.usages, errs[4] = armcompute.NewUsageClient(subscription, credential, options)
	out.community, errs[5] = armcompute.NewCommunityGalleryImageVersionsClient(subscription, credential, options)
	out.VirtualMachines, errs[6] = armcompute.NewVirtualMachinesClient(subscription, credential, options)
	out.Extensions, errs[7] = armcompute.NewVirtualMachineExtensionsClient(subscription, credential, options)
	out.Graph, errs[8] = armresourcegraph.NewClient(credential, options)
	network, err := armnetwork.NewClientFactory(subscription, credential, options)
	if err := errors.Join(append(errs[:], err)...); err != nil {
		return nil, fmt.Errorf("clients of Azure: %w", err)
	}
	out.Interfaces, out.Balancers, out.SecurityGroups = network.NewInterfacesClient(), network.NewLoadBalancersClient(), network.NewSecurityGroupsClient()
	return out, nil
}

// subnets returns the client of the subnets of a subscription.
func (a *Azure) subnets(subscription string) (*armnetwork.SubnetsClient, error) {
	return armnetwork.NewSubnetsClient(subscription, a.credential, a.options)
}

// encryptionSets returns the client of the disk encryption sets of a subscription.
func (a *Azure) encryptionSets(subscription string) (*armcompute.DiskEncryptionSetsClient, error) {
	return armcompute.NewDiskEncryptionSetsClient(subscription, a.credential, a.options)
}
