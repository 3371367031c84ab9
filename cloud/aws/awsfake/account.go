// SPDX-License-Identifier: Apache-2.0

package awsfake

import (
	"container/heap"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"k8s.io/utils/clock"

	"karpenter/cloud/aws/client"
)

// Config describes an account. Only Clock is required.
type Config struct {
	Clock   clock.PassiveClock
	Region  string // default us-west-2
	Account string // 12 digits; default 111122223333
	Cluster string // default "cluster"
	// KubernetesVersion is the cluster's, as in "1.33" (the default).
	KubernetesVersion string
	// Endpoint of the cluster's API server; default an address of EKS's shape.
	Endpoint string
	// CertificateAuthority of the cluster, base64.
	CertificateAuthority string
	// Types are the instance types on sale; nil is all that EC2 describes.
	Types []string

	// BootDelay is from launch to running, ShutdownDelay from the call to
	// terminated, VisibleAfter from launch until other calls see the instance.
	// Zero is at once.
	BootDelay, ShutdownDelay, VisibleAfter time.Duration
	// ProfileDelay is how long EC2 does not know a new instance profile.
	ProfileDelay time.Duration
	// ControllerPolicy holds the caller to the IAM policies that Karpenter's
	// installation gives its controller; else everything not denied is allowed.
	ControllerPolicy bool
	// Seed makes identifiers those of another account: instances of a simulation
	// that begins from scratch are no namesakes of those that its cluster remembers.
	Seed uint32
	// Limits throttles operations by name, see RealLimits. Nil is no throttling.
	Limits map[string]Limit
	// Record receives what changes the account, in order, for Restore. It is
	// called with the account's lock held. Only the calls and the methods that
	// Restore knows are recorded.
	Record func(Entry)
}

func (c *Config) complete() error {
	if c.Clock == nil {
		return errors.New("awsfake: Config.Clock is missing")
	}
	for _, d := range []struct {
		field *string
		value string
	}{
		{&c.Region, "us-west-2"}, {&c.Account, "111122223333"}, {&c.Cluster, "cluster"}, {&c.KubernetesVersion, "1.33"},
		{&c.CertificateAuthority, "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0t"},
	} {
		if *d.field == "" {
			*d.field = d.value
		}
	}
	if c.Endpoint == "" {
		c.Endpoint = fmt.Sprintf("https://0123456789ABCDEF.gr7.%s.eks.amazonaws.com", c.Region)
	}
	return nil
}

// AWS is one account in one region. It may be used concurrently.
type AWS struct {
	config Config
	clock  clock.PassiveClock

	mu      sync.Mutex
	ids     uint64
	pending events
	guard   guard

	zones     []zone
	vpc       string
	subnets   []*subnet
	groups    []types.SecurityGroup
	images    []*types.Image
	market    market
	templates templates
	fleets    map[string]*fleetAnswer // by client token
	instances instances
	reserved  []*reservation
	placement []*placementGroup
	spotRole  bool // the service-linked role of spot exists
	quotas    map[string]int64

	parameters map[string]parameter
	iam        identities
	queues     map[string]*queue
	cluster    cluster
	shifts     []shift
}

// New returns an account with what an EKS user has in it, see the package.
func New(config Config) (*AWS, error) {
	if err := config.complete(); err != nil {
		return nil, err
	}
	now, record := config.Clock.Now(), config.Record
	config.Record = nil // all of the making is one entry
	a := &AWS{config: config, clock: instant(now), ids: uint64(config.Seed) << 32, spotRole: true, fleets: map[string]*fleetAnswer{}, quotas: map[string]int64{}}
	a.guard.start(config.Limits)
	var err error
	if a.market, err = newMarket(config, now); err != nil {
		return nil, err
	}
	a.instances.byID = map[string]*instance{}
	a.templates.byName = map[string]*template{}
	a.parameters = map[string]parameter{}
	a.iam.start()
	a.queues = map[string]*queue{}
	a.furnish()
	for _, r := range []struct {
		age          time.Duration
		bottlerocket string
	}{{45 * 24 * time.Hour, "1.45.0"}, {10 * 24 * time.Hour, newestBottlerocket}} {
		if err := a.ReleaseImages(config.KubernetesVersion, now.Add(-r.age), r.bottlerocket); err != nil {
			return nil, err
		}
	}
	a.clock, a.config.Record = config.Clock, record
	a.record(now, uint64(config.Seed)<<32, created, config.birth())
	return a, nil
}

// newestBottlerocket is the version of Bottlerocket in a new account.
const newestBottlerocket = "1.46.0"

// Services returns the account's services.
func (a *AWS) Services() *client.Services {
	return &client.Services{
		Region: a.config.Region, EC2: ec2API{a}, EKS: eksAPI{a}, IAM: iamAPI{a}, Pricing: pricingAPI{a}, SQS: sqsAPI{a}, SSM: ssmAPI{a},
		ZonalShift: zonalShiftAPI{a},
	}
}

// Config returns what the account was made of, with the defaults filled in.
func (a *AWS) Config() Config { return a.config }

// next returns a number that was not returned before.
func (a *AWS) next() uint64 {
	a.ids++
	return mixed(a.ids)
}

// id returns a new identifier with the prefix, as in i-0123456789abcdef0.
func (a *AWS) id(prefix string) string {
	return fmt.Sprintf("%s-0%016x", prefix, a.next())
}

// mixed spreads a small number over 64 bits, one to one.
func mixed(n uint64) uint64 {
	n *= 0x9e3779b97f4a7c15
	n = (n ^ n>>30) * 0xbf58476d1ce4e5b9
	n = (n ^ n>>27) * 0x94d049bb133111eb
	return n ^ n>>31
}

// arn returns the name of a resource of the account; global services have no
// region.
func (a *AWS) arn(service, region, resource string) string {
	return fmt.Sprintf("arn:aws:%s:%s:%s:%s", service, region, a.config.Account, resource)
}

// event is something that happens at a time. Do runs with the lock held.
type event struct {
	at    time.Time
	order uint64
	do    func(at time.Time)
}

// events are ordered by time, then by when they were announced.
type events struct {
	list []event
	next uint64
}

func (e *events) Len() int { return len(e.list) }
func (e *events) Less(i, j int) bool {
	if !e.list[i].at.Equal(e.list[j].at) {
		return e.list[i].at.Before(e.list[j].at)
	}
	return e.list[i].order < e.list[j].order
}
func (e *events) Swap(i, j int) { e.list[i], e.list[j] = e.list[j], e.list[i] }
func (e *events) Push(x any)    { e.list = append(e.list, x.(event)) }
func (e *events) Pop() any {
	last := e.list[len(e.list)-1]
	e.list = e.list[:len(e.list)-1]
	return last
}

// later makes something happen at a time, which may have come.
func (a *AWS) later(at time.Time, do func(at time.Time)) {
	a.pending.next++
	heap.Push(&a.pending, event{at, a.pending.next, do})
}

// settle makes happen what is due and returns the time.
func (a *AWS) settle() time.Time {
	now := a.clock.Now()
	for a.pending.Len() > 0 && !a.pending.list[0].at.After(now) {
		e := heap.Pop(&a.pending).(event)
		e.do(e.at)
	}
	return now
}

// locked runs f with the lock held and the account as it is now.
func (a *AWS) locked(f func(now time.Time)) {
	a.mu.Lock()
	defer a.mu.Unlock()
	f(a.settle())
	a.settle()
}
