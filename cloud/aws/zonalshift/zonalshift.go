// SPDX-License-Identifier: Apache-2.0

// Package zonalshift reads from Application Recovery Controller which zones the
// cluster's traffic is shifted away from. Until the shift ends, nothing is
// launched in such a zone, and existing nodes there are not disrupted.
//
// Shifts that users start hold until they expire or are cancelled. Shifts that
// AWS starts by itself (zonal autoshift) count too, as long as they are listed. A
// shift that is listed but not applied has lower precedence than others.
package zonalshift

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/arczonalshift"
	"github.com/aws/aws-sdk-go-v2/service/arczonalshift/types"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	awsclient "karpenter/cloud/aws/client"
	"karpenter/cloud/loop"
)

// Period is the time between two looks.
const Period = 30 * time.Second

// Config is what Shifts work with. All fields but Reader and Tell are required.
type Config struct {
	EKS     awsclient.EKS
	Shifts  awsclient.ZonalShift
	Cluster string // name of the EKS cluster
	Clock   clock.PassiveClock

	// Reader reads NodePools and EC2NodeClasses. Tell publishes events and does
	// not block; nil means that nothing is published.
	Reader client.Reader
	Tell   func(Event)
}

// Shifts are the shifts that are known. The nil Shifts are none. They may be
// used concurrently.
type Shifts struct {
	config Config

	mu    sync.Mutex
	arn   string               // of the cluster; "" = not asked for yet
	until map[string]time.Time // by zone ID; zero = as long as it is listed
	told  map[string]bool      // zone IDs that NodePools know to be shifted
}

// New returns Shifts that know of none yet.
func New(config Config) *Shifts { return &Shifts{config: config} }

// Register adds the controller zonalshift to the manager.
func (s *Shifts) Register(mgr manager.Manager) error {
	return loop.Every(mgr, "zonalshift", Period, s.Refresh)
}

// Shifted reports whether traffic is shifted away from the zone with the ID.
func (s *Shifts) Shifted(zoneID string) bool {
	if s == nil || zoneID == "" {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.shiftedLocked(zoneID)
}

func (s *Shifts) shiftedLocked(zoneID string) bool {
	until, ok := s.until[zoneID]
	return ok && (until.IsZero() || until.After(s.config.Clock.Now()))
}

// Load asks which shifts there are. It needs no API server, so a process can call
// it before its caches are filled. After an error the shifts that were known hold
// until they expire.
func (s *Shifts) Load(ctx context.Context) error {
	arn, err := s.resource(ctx)
	if err != nil {
		return err
	}
	return s.look(ctx, arn)
}

// Refresh loads the shifts and reports what has changed on NodePools.
func (s *Shifts) Refresh(ctx context.Context) error {
	err := s.Load(ctx)
	if told := s.tellChanges(ctx); err == nil {
		err = told
	}
	return err
}

func (s *Shifts) look(ctx context.Context, arn string) error {
	out, err := s.config.Shifts.GetManagedResource(ctx, &arczonalshift.GetManagedResourceInput{ResourceIdentifier: &arn})
	if err != nil {
		return fmt.Errorf("zonal shifts of %s: %w", arn, err)
	}
	until := map[string]time.Time{}
	for _, shift := range out.ZonalShifts {
		zone, end := aws.ToString(shift.AwayFrom), aws.ToTime(shift.ExpiryTime)
		if shift.AppliedStatus == types.AppliedStatusApplied && end.After(until[zone]) {
			until[zone] = end
		}
	}
	for _, shift := range out.Autoshifts {
		if shift.AppliedStatus == types.AutoshiftAppliedStatusApplied {
			until[aws.ToString(shift.AwayFrom)] = time.Time{}
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.until = until
	return nil
}

// resource returns the cluster's ARN, which is asked for once.
func (s *Shifts) resource(ctx context.Context) (string, error) {
	s.mu.Lock()
	arn := s.arn
	s.mu.Unlock()
	if arn != "" {
		return arn, nil
	}
	out, err := s.config.EKS.DescribeCluster(ctx, &eks.DescribeClusterInput{Name: &s.config.Cluster})
	if err != nil {
		return "", fmt.Errorf("ARN of cluster %s: %w", s.config.Cluster, err)
	}
	if out.Cluster == nil || aws.ToString(out.Cluster.Arn) == "" {
		return "", fmt.Errorf("EKS says no ARN of cluster %s", s.config.Cluster)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.arn = *out.Cluster.Arn
	return s.arn, nil
}

// changes returns the zones that are shifted now, by ID, and those whose begin
// or end was not published yet (begun, over), sorted.
func (s *Shifts) changes() (now map[string]bool, begun, over []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now = map[string]bool{}
	for zone := range s.until {
		if s.shiftedLocked(zone) {
			now[zone] = true
		}
	}
	for _, zone := range slices.Sorted(maps.Keys(now)) {
		if !s.told[zone] {
			begun = append(begun, zone)
		}
	}
	for _, zone := range slices.Sorted(maps.Keys(s.told)) {
		if !now[zone] {
			over = append(over, zone)
		}
	}
	return now, begun, over
}

// tell records which events were published on NodePools.
func (s *Shifts) tell(shifted map[string]bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.told = shifted
}
