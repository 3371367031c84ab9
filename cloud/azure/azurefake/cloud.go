// SPDX-License-Identifier: Apache-2.0

package azurefake

import (
	"cmp"
	"context"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/arm"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/cloud"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"k8s.io/utils/clock"

	"karpenter/cloud/azurevm"
)

// Config describes a Cloud. Everything is required but what says otherwise.
type Config struct {
	Clock         clock.PassiveClock
	Subscription  string
	ResourceGroup string // of the cluster
	Cluster       string
	NodeGroup     string // resource group of the nodes
	Region        string
	Pools         map[string]string // modes of the agent pools, such as Machines, by name
	SKUs          []azurevm.SKU
	// Subnets and EncryptionSets are the ARM IDs of those that there are. May be nil.
	Subnets, EncryptionSets []string
	// ImageVersions are those of every image in AKS' galleries. May be nil.
	ImageVersions []string
	Prices        azurevm.Prices // of the price list
	// SecurityGroups and Balancers are what there is beside the nodes, as their methods set it.
	// May be nil.
	SecurityGroups []string
	Balancers      map[string][]BackendPool
	// Creation and Deletion are how long those of machines take; 0 = CreationTime and
	// DeletionTime.
	Creation, Deletion time.Duration
	// Record is told of everything that changes the Cloud, one after the other; see Restore.
	// May be nil.
	Record func(Entry)
}

// Cloud is Azure in memory. Safe for concurrent use.
type Cloud struct {
	config Config

	mu         sync.Mutex
	machines   map[string]*machine // by pool/name, in lower case
	vms        map[string]*virtualMachine
	nics       map[string]*networkInterface // by name in lower case, as vms
	balancers  []balancer
	groups     []string       // network security groups
	ghosts     []ghost        // what is gone, and Resource Graph still shows
	free       map[string]int // addresses, by ID of the subnet in lower case
	operations map[string]*operation
	stock      map[Place]int
	scripts    map[Place]Refusal
	quotas     map[string]int64 // of vCPUs, by family in lower case
	failures   map[string][]Failure
	lost       map[string][]Failure
	failing    int // how many of the extensions that are added next fail
	calls      map[string]int
	serial     int
	pageSize   int
	listLag    time.Duration
	address    string // under which the last request came
}

// How long operations take, if a Config does not say otherwise.
const (
	CreationTime = time.Minute
	DeletionTime = time.Minute
)

// New returns a Cloud without machines.
func New(c Config) *Cloud {
	c.Pools = maps.Clone(c.Pools)
	c.Creation, c.Deletion = cmp.Or(c.Creation, CreationTime), cmp.Or(c.Deletion, DeletionTime)
	out := &Cloud{
		config: c, groups: c.SecurityGroups, machines: map[string]*machine{}, operations: map[string]*operation{}, stock: map[Place]int{},
		vms: map[string]*virtualMachine{}, nics: map[string]*networkInterface{}, free: map[string]int{}, scripts: map[Place]Refusal{}, quotas: map[string]int64{}, failures: map[string][]Failure{}, lost: map[string][]Failure{}, calls: map[string]int{},
		pageSize: 100,
	}
	for _, name := range slices.Sorted(maps.Keys(c.Balancers)) {
		out.balancers = append(out.balancers, balancer{name, c.Balancers[name]})
	}
	return out
}

// Calls returns how often each operation was called, such as "PUT machine".
func (c *Cloud) Calls() map[string]int {
	c.mu.Lock()
	defer c.mu.Unlock()
	out := map[string]int{}
	for name, n := range c.calls {
		out[name] = n
	}
	return out
}

// PageSize sets how many items a page of a list has.
func (c *Cloud) PageSize(n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.pageSize = n
}

// ListLag sets how long after their creation began machines are missing in lists, and
// how far Resource Graph lags behind.
func (c *Cloud) ListLag(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.listLag = d
}

// Failure is an answer to a call that fails.
type Failure struct {
	Status     int
	Code       string
	Message    string
	RetryAfter string // "" = none
}

// Fail has the next calls of the operation answered with the failures.
func (c *Cloud) Fail(operation string, failures ...Failure) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.failures[operation] = append(c.failures[operation], failures...)
}

// FailAfter has the next calls of the operation carried out, and answered with the
// failures.
func (c *Cloud) FailAfter(operation string, failures ...Failure) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lost[operation] = append(c.lost[operation], failures...)
}

// endpoint is where clients believe Azure to be.
const endpoint = "https://management.azure.test"

// Token is the secret of the credential: a JSON web token whose tenant is TenantID.
const (
	Token    = "eyJhbGciOiJub25lIn0.eyJ0aWQiOiIwMDAwMDAwMC0wMDAwLTAwMDAtMDAwMC0wMDAwMDAwMDAwY2MifQ.azurefake"
	TenantID = "00000000-0000-0000-0000-0000000000cc"
)

// credential is known to the Cloud.
type credential struct{}

// GetToken implements azcore.TokenCredential.
func (credential) GetToken(context.Context, policy.TokenRequestOptions) (azcore.AccessToken, error) {
	return azcore.AccessToken{Token: Token, ExpiresOn: time.Now().Add(time.Hour)}, nil
}

// Credential returns a credential that the Cloud accepts.
func (c *Cloud) Credential() azcore.TokenCredential { return credential{} }

// Options returns the options of clients that reach the Cloud.
func (c *Cloud) Options() *arm.ClientOptions {
	return &arm.ClientOptions{
		ClientOptions: policy.ClientOptions{
			Cloud: cloud.Configuration{
				ActiveDirectoryAuthorityHost: "https://login.azure.test/",
				Services: map[cloud.ServiceName]cloud.ServiceConfiguration{
					cloud.ResourceManager: {Endpoint: endpoint, Audience: endpoint},
				},
			},
			Retry:     policy.RetryOptions{MaxRetries: 3, RetryDelay: time.Millisecond, MaxRetryDelay: time.Minute},
			Transport: inProcess{c.Handler()},
		},
		DisableRPRegistration: true,
	}
}

// inProcess serves requests without a network.
type inProcess struct{ handler http.Handler }

// Do implements policy.Transporter.
func (t inProcess) Do(r *http.Request) (*http.Response, error) {
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	if r.Body == nil {
		r.Body = http.NoBody
	}
	recorder := httptest.NewRecorder()
	t.handler.ServeHTTP(recorder, r)
	answer := recorder.Result()
	answer.Request = r
	return answer, nil
}

// authorized reports whether the request carries the credential.
func authorized(r *http.Request) bool {
	return strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ") == Token
}
