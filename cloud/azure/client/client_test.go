// SPDX-License-Identifier: Apache-2.0

package client_test

import (
	"context"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	aks "github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/containerservice/armcontainerservice/v8"
	clocktesting "k8s.io/utils/clock/testing"

	azurecloud "karpenter/cloud"
	"karpenter/cloud/azure/azurefake"
	"karpenter/cloud/azure/catalogue"
	"karpenter/cloud/azure/client"
	"karpenter/cloud/azure/image"
	"karpenter/cloud/azure/machine"
	"karpenter/cloud/azure/nodeclass"
	"karpenter/cloud/azure/vm"
	"karpenter/cloud/azurevm"
)

const (
	subnet = "/subscriptions/sub/resourceGroups/Net/providers/Microsoft.Network/virtualNetworks/vnet/subnets/nodes"
	set    = "/subscriptions/sub/resourceGroups/Net/providers/Microsoft.Compute/diskEncryptionSets/keys"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func connected(t *testing.T, fence azurecloud.Fence) (*azurefake.Cloud, *client.Azure, []azurevm.SKU) {
	t.Helper()
	sizes, err := azurevm.Sizes()
	must(t, err)
	skus := azurevm.Offered(sizes, "eastus")
	fake := azurefake.New(azurefake.Config{
		Clock: clocktesting.NewFakePassiveClock(time.Now()), Subscription: "sub", ResourceGroup: "Shop", Cluster: "prod", NodeGroup: "nodes", Region: "eastus",
		Pools: map[string]string{"machines": "Machines"}, SKUs: skus, Subnets: []string{subnet}, EncryptionSets: []string{set},
		ImageVersions: []string{"202607.9.0", "202607.10.0"},
	})
	options := fake.Options()
	options.PerRetryPolicies = client.Options(options.Cloud, "1.2.3", fence).PerRetryPolicies
	azure, err := client.New("sub", fake.Credential(), options)
	must(t, err)
	return fake, azure, skus
}

// TestSKUs: what Azure says of sizes comes through as it was, over several pages,
// and nothing else does.
func TestSKUs(t *testing.T) {
	fake, azure, want := connected(t, nil)
	got, err := azure.SKUs(t.Context(), "eastus")
	must(t, err)
	if len(got) != len(want) {
		t.Fatalf("%d sizes, want %d", len(got), len(want))
	}
	for i := range want {
		w, g := want[i], got[i]
		for _, list := range []*[]string{&w.Placements, &g.Placements, &w.HyperVGenerations, &g.HyperVGenerations, &w.Zones, &g.Zones, &w.UltraSSDZones, &g.UltraSSDZones, &w.RestrictedZones, &g.RestrictedZones} {
			if len(*list) == 0 {
				*list = nil
			}
		}
		if !reflect.DeepEqual(g, w) {
			t.Fatalf("%s is\n%+v, want\n%+v", w.Name, g, w)
		}
	}
	if calls := fake.Calls()["LIST sku"]; calls != len(want)/100+1 {
		t.Errorf("%d calls", calls)
	}
	if other, err := azure.SKUs(t.Context(), "westus"); err != nil || len(other) != 0 {
		t.Errorf("another region has %d sizes, error %v", len(other), err)
	}
}

func TestUsages(t *testing.T) {
	fake, azure, _ := connected(t, nil)
	fake.Quota("standardDSv3Family", 10)
	got, err := azure.Usages(t.Context(), "eastus")
	must(t, err)
	if want := (catalogue.Usage{Limit: 10}); got["standardDSv3Family"] != want {
		t.Errorf("usage is %+v", got["standardDSv3Family"])
	}
}

// TestImages: the newest version of each definition, in the order of definitions.
func TestImages(t *testing.T) {
	_, azure, _ := connected(t, nil)
	got, err := azure.Images(t.Context(), "eastus", "galleries", image.Wanted{Family: image.Ubuntu2404})
	must(t, err)
	var ids []string
	for _, i := range got {
		ids = append(ids, i.ID)
	}
	const of = "/subscriptions/galleries/resourceGroups/AKS-Ubuntu/providers/Microsoft.Compute/galleries/AKSUbuntu/images/"
	want := []string{of + "2404gen2containerd/versions/202607.10.0", of + "2404containerd/versions/202607.10.0", of + "2404gen2arm64containerd/versions/202607.10.0"}
	if !reflect.DeepEqual(ids, want) {
		t.Errorf("images are %q", ids)
	}
}

// TestCommunityImages: the version of each definition that was published last; FIPS images
// are in no community gallery.
func TestCommunityImages(t *testing.T) {
	_, azure, _ := connected(t, nil)
	got, err := azure.CommunityImages(t.Context(), "eastus", image.Wanted{Family: image.AzureLinux3})
	must(t, err)
	var ids []string
	for _, i := range got {
		ids = append(ids, i.ID)
	}
	const of = "/CommunityGalleries/AKSAzureLinux-f7c7cda5-1c9a-4bdc-a222-9614c968580b/images/"
	want := []string{of + "V3gen2/versions/202607.10.0", of + "V3/versions/202607.10.0", of + "V3gen2arm64/versions/202607.10.0"}
	if !reflect.DeepEqual(ids, want) {
		t.Errorf("images are %q", ids)
	}
	if got, err := azure.CommunityImages(t.Context(), "eastus", image.Wanted{Family: image.AzureLinux3, FIPS: true}); err != nil || got != nil {
		t.Errorf("FIPS images are %v, %v", got, err)
	}
}

func TestNetworkGUID(t *testing.T) {
	_, azure, _ := connected(t, nil)
	if got, err := azure.NetworkGUID(t.Context(), subnet); err != nil || got != azurefake.NetworkGUID {
		t.Errorf("GUID %q, %v", got, err)
	}
	if got, err := azure.NetworkGUID(t.Context(), strings.Replace(subnet, "vnet/", "other/", 1)); err == nil {
		t.Errorf("the GUID of a network that is not there is %q", got)
	}
}

func TestCheckSubnet(t *testing.T) {
	fake, azure, _ := connected(t, nil)
	must(t, azure.CheckSubnet(t.Context(), subnet))
	if err := azure.CheckSubnet(t.Context(), subnet+"2"); !azurecloud.IsNotFound(err) {
		t.Errorf("a subnet that is not there: %v", err)
	}
	fake.Fail("GET subnet", azurefake.Failure{Status: http.StatusForbidden, Code: "AuthorizationFailed", Message: "no"})
	if err := azure.CheckSubnet(t.Context(), subnet); err == nil || azurecloud.IsNotFound(err) {
		t.Errorf("a subnet that must not be read: %v", err)
	}
}

func TestCheckEncryptionSet(t *testing.T) {
	fake, azure, _ := connected(t, nil)
	must(t, azure.CheckEncryptionSet(t.Context(), set))
	fake.Fail("GET diskEncryptionSet", azurefake.Failure{Status: http.StatusForbidden, Code: "AuthorizationFailed", Message: "no"})
	if err := azure.CheckEncryptionSet(t.Context(), set); !errors.Is(err, nodeclass.ErrForbidden) {
		t.Errorf("a set that must not be read: %v", err)
	}
	if err := azure.CheckEncryptionSet(t.Context(), set+"2"); err == nil || errors.Is(err, nodeclass.ErrForbidden) {
		t.Errorf("a set that is not there: %v", err)
	}
}

// fence lets nothing be changed while it is closed.
type fence struct{ closed error }

func (f *fence) Check() error { return f.closed }

func (f *fence) Hold(ctx context.Context) (context.Context, context.CancelFunc, error) {
	return ctx, func() {}, f.closed
}

// TestFence: a replica that does not lead reads, and changes nothing.
func TestFence(t *testing.T) {
	closed := &fence{errors.New("another leads")}
	fake, azure, _ := connected(t, closed)
	machines := machine.New(machine.Config{Machines: azure.Machines, Pools: azure.Pools, ResourceGroup: "Shop", Cluster: "prod", Pool: "machines", Region: "eastus", Clock: clocktesting.NewFakePassiveClock(time.Now())})
	_, err := machines.List(t.Context())
	must(t, err)
	// A question to Resource Graph is a POST, and changes nothing.
	_, err = vm.New(vm.Config{Graph: azure.Graph, Clock: clocktesting.NewFakePassiveClock(time.Now()), Subscription: "sub", NodeResourceGroup: "nodes", Region: "eastus"}).List(t.Context())
	must(t, err)
	if _, err := azure.Pools.BeginDeleteMachines(t.Context(), "Shop", "prod", "machines", deletion("a"), nil); !errors.Is(err, closed.closed) {
		t.Errorf("a deletion ends with %v", err)
	}
	if n := fake.Calls()["POST deleteMachines"]; n != 0 {
		t.Errorf("%d deletions were sent", n)
	}
	closed.closed = nil
	if _, err := azure.Pools.BeginDeleteMachines(t.Context(), "Shop", "prod", "machines", deletion("a"), nil); err == nil {
		t.Error("a machine that is not there was deleted")
	}
	if n := fake.Calls()["POST deleteMachines"]; n != 1 {
		t.Errorf("%d deletions were sent", n)
	}
}

// TestEnvironment covers spec 71/108, but for what the settings refuse.
// TestPause covers spec 71/93 for all requests of a kind: when Azure asks to wait for longer than the SDK
// does, callers get the error at once, and nothing is sent until then. When it is less, all wait.
// Requests of other kinds are sent.
func TestPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fake, azure, _ := connected(t, nil)
		sent := func() int { return fake.Calls()["GET subnet"] }
		asks := func(wait string) {
			fake.Fail("GET subnet", azurefake.Failure{Status: http.StatusTooManyRequests, Code: "TooManyRequests", RetryAfter: wait})
		}
		throttled := func(err error) bool {
			answer, ok := errors.AsType[*azcore.ResponseError](err)
			return ok && answer.StatusCode == http.StatusTooManyRequests && answer.ErrorCode == "TooManyRequests"
		}
		asks("120")
		for i := range 3 {
			if err := azure.CheckSubnet(t.Context(), subnet); !throttled(err) || sent() != 1 {
				t.Errorf("call %d while Azure throttles: %v, %d requests", i, err, sent())
			}
		}
		must(t, azure.CheckEncryptionSet(t.Context(), set))
		time.Sleep(90 * time.Second)
		began := time.Now()
		must(t, azure.CheckSubnet(t.Context(), subnet)) // the SDK waits for the rest
		if waited := time.Since(began); waited < 30*time.Second || waited > 31*time.Second || sent() != 2 {
			t.Errorf("after %s, %d requests", waited, sent())
		}
		asks("7")
		began = time.Now()
		var group sync.WaitGroup
		for range 5 {
			group.Go(func() {
				if err := azure.CheckSubnet(t.Context(), subnet); err != nil || time.Since(began) < 7*time.Second {
					t.Errorf("after %s: %v", time.Since(began), err)
				}
			})
			synctest.Wait()
		}
		group.Wait()
		if sent() != 8 {
			t.Errorf("%d requests, want one that is rejected and five", sent()-2)
		}
		asks(time.Now().Add(100 * time.Second).UTC().Format(http.TimeFormat))
		for range 2 {
			if err := azure.CheckSubnet(t.Context(), subnet); !throttled(err) || sent() != 9 {
				t.Errorf("Azure names a time: %v, %d requests", err, sent())
			}
		}
		asks("")
		time.Sleep(2 * time.Minute)
		must(t, azure.CheckSubnet(t.Context(), subnet))
	})
}

func TestEnvironment(t *testing.T) {
	for _, name := range append(client.Clouds(), "azurepubliccloud") {
		if c, err := client.Environment(name, ""); err != nil || c.ActiveDirectoryAuthorityHost == "" {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := client.Environment("AzureGermanCloud", ""); err == nil || !strings.Contains(err.Error(), "AzurePublicCloud, AzureUSGovernmentCloud, AzureChinaCloud") {
		t.Errorf("an unknown cloud: %v", err)
	}
	file := filepath.Join(t.TempDir(), "cloud.json")
	must(t, os.WriteFile(file, []byte(`{"resourceManagerEndpoint": "https://arm", "activeDirectoryEndpoint": "https://login"}`), 0o600))
	if _, err := client.Environment("", file); err == nil || !strings.Contains(err.Error(), "tokenAudience is missing") {
		t.Errorf("a file without audience: %v", err)
	}
	must(t, os.WriteFile(file, []byte(`{"resourceManagerEndpoint": "https://arm", "activeDirectoryEndpoint": "https://login", "tokenAudience": "https://audience"}`), 0o600))
	c, err := client.Environment("", file)
	must(t, err)
	if c.Services["resourceManager"].Endpoint != "https://arm" || c.Services["resourceManager"].Audience != "https://audience" || c.ActiveDirectoryAuthorityHost != "https://login" {
		t.Errorf("the cloud is %+v", c)
	}
}

func deletion(name string) aks.AgentPoolDeleteMachinesParameter {
	return aks.AgentPoolDeleteMachinesParameter{MachineNames: []*string{&name}}
}

// opaque is a credential whose tokens tell nothing.
type opaque struct{}

func (opaque) GetToken(context.Context, policy.TokenRequestOptions) (azcore.AccessToken, error) {
	return azcore.AccessToken{Token: "opaque"}, nil
}

// TestTenant: the tenant that nodes are told is that of the token.
func TestTenant(t *testing.T) {
	azure := azurefake.New(azurefake.Config{})
	for want, credential := range map[string]azcore.TokenCredential{azurefake.TenantID: azure.Credential(), "": opaque{}} {
		services, err := client.New("sub", credential, azure.Options())
		must(t, err)
		if got, err := services.Tenant(t.Context()); err != nil || got != want {
			t.Errorf("tenant %q, %v; want %q", got, err, want)
		}
	}
}
