// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/arm"
	azure "github.com/Azure/azure-sdk-for-go/sdk/azcore/cloud"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azidentity"
	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/compute/armcompute/v7"
	aks "github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/containerservice/armcontainerservice/v8"
	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/network/armnetwork/v9"

	"karpenter/cloud"
)

// Azure is the clients of one subscription.
type Azure struct {
	Subscription string
	Machines     *aks.MachinesClient
	Pools        *aks.AgentPoolsClient

	versions   *aks.Client
	skus       *armcompute.ResourceSKUsClient
	usages     *armcompute.UsageClient
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
	if fence != nil {
		out.PerRetryPolicies = append(out.PerRetryPolicies, guard{fence})
	}
	return out
}

// New returns the clients of the subscription.
func New(subscription string, credential azcore.TokenCredential, options *arm.ClientOptions) (*Azure, error) {
	machines, e1 := aks.NewMachinesClient(subscription, credential, options)
	pools, e2 := aks.NewAgentPoolsClient(subscription, credential, options)
	versions, e3 := aks.NewClient(subscription, credential, options)
	skus, e4 := armcompute.NewResourceSKUsClient(subscription, credential, options)
	usages, e5 := armcompute.NewUsageClient(subscription, credential, options)
	if err := errors.Join(e1, e2, e3, e4, e5); err != nil {
		return nil, fmt.Errorf("clients of Azure: %w", err)
	}
	return &Azure{
		Subscription: subscription, Machines: machines, Pools: pools, versions: versions, skus: skus, usages: usages,
		options: options, credential: credential,
	}, nil
}

// subnets returns the client of the subnets of a subscription.
func (a *Azure) subnets(subscription string) (*armnetwork.SubnetsClient, error) {
	return armnetwork.NewSubnetsClient(subscription, a.credential, a.options)
}

// encryptionSets returns the client of the disk encryption sets of a subscription.
func (a *Azure) encryptionSets(subscription string) (*armcompute.DiskEncryptionSetsClient, error) {
	return armcompute.NewDiskEncryptionSetsClient(subscription, a.credential, a.options)
}
