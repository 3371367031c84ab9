// SPDX-License-Identifier: Apache-2.0

package instance

import (
	"cmp"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	apitypes "k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	awsv1 "karpenter/api/aws/v1"
)

// Claim is a NodeClaim, as far as launches are concerned.
type Claim struct {
	UID        apitypes.UID
	Name       string
	InstanceID string // "" = none is recorded
}

// launches remembers for which claim each instance was started; see the
// package's description.
type launches struct {
	clock clock.PassiveClock

	mu       sync.Mutex
	started  bool
	held     map[string]*holding          // by instance
	of       map[apitypes.UID]string      // instance by claim: held turned round
	open     map[apitypes.UID]opened      // claims that may have an instance no one knows of
	flying   map[apitypes.UID]Claim       // claims that EC2 is being asked for instances for
	attempts map[apitypes.UID]attemptNote // launches that are known to have failed
}

type holding struct {
	claim Claim
	since time.Time
	seen  bool // EC2 has shown the instance
}

type opened struct {
	claim Claim
	since time.Time
}

type attemptNote struct {
	count int
	last  time.Time
}

// begin takes over the launches of an earlier process: claims with an instance
// hold it, and claims without one are open.
func (l *launches) begin(claims []Claim) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.started {
		return
	}
	l.started = true
	l.held, l.of = map[string]*holding{}, map[apitypes.UID]string{}
	l.open, l.flying, l.attempts = map[apitypes.UID]opened{}, map[apitypes.UID]Claim{}, map[apitypes.UID]attemptNote{}
	now := l.clock.Now()
	for _, c := range claims {
		if c.InstanceID == "" {
			l.open[c.UID] = opened{c, now}
			continue
		}
		l.holdLocked(c.InstanceID, c)
	}
}

func (l *launches) begun() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.started
}

func (l *launches) holdLocked(id string, claim Claim) {
	l.held[id] = &holding{claim: claim, since: l.clock.Now()}
	l.of[claim.UID] = id
	delete(l.open, claim.UID)
	delete(l.attempts, claim.UID)
}

// instanceOf returns the instance of the claim, or "".
func (l *launches) instanceOf(uid apitypes.UID) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.of[uid]
}

// openFor reports whether the claim is open, and for how long it stays so.
func (l *launches) openFor(uid apitypes.UID) (time.Duration, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	o, ok := l.open[uid]
	return o.since.Add(Settling).Sub(l.clock.Now()), ok
}

// take records that EC2 is being asked for instances for the claims.
func (l *launches) take(claims []Claim) (attempts []int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, c := range claims {
		l.flying[c.UID] = c
		attempts = append(attempts, l.attempts[c.UID].count)
	}
	return attempts
}

// landed notes EC2's answer: an instance for each of the first claims, nothing
// for the others.
func (l *launches) landed(claims []Claim, instances []*Instance) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i, c := range claims {
		delete(l.flying, c.UID)
		if i < len(instances) {
			l.holdLocked(instances[i].ID, c)
			continue
		}
		l.attempts[c.UID] = attemptNote{l.attempts[c.UID].count + 1, l.clock.Now()}
	}
}

// lost notes that no answer has come.
func (l *launches) lost(claims []Claim) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, c := range claims {
		delete(l.flying, c.UID)
		l.open[c.UID] = opened{c, l.clock.Now()}
	}
}

// unseen reports whether EC2 may not show the instance yet, as it was started a
// moment ago, or before this process began.
func (l *launches) unseen(id string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	h, ok := l.held[id]
	return ok && l.unseenLocked(h)
}

func (l *launches) unseenLocked(h *holding) bool { return !h.seen && l.clock.Since(h.since) < Settling }

// startedSince reports whether the instance was started at t or later.
func (l *launches) startedSince(id string, t time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	h, ok := l.held[id]
	return ok && !h.since.Before(t)
}

func (l *launches) saw(id string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if h, ok := l.held[id]; ok {
		h.seen = true
	}
}

func (l *launches) gone(id string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.goneLocked(id)
}

func (l *launches) goneLocked(id string) {
	if h, ok := l.held[id]; ok {
		delete(l.held, id)
		if l.of[h.claim.UID] == id {
			delete(l.of, h.claim.UID)
		}
	}
}

// settle assigns instances to the open claims that they were launched for, from
// a full list of instances that was begun at a time, and drops entries that are
// no longer needed.
func (l *launches) settle(list []*Instance, began time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.started {
		return
	}
	byLatest := slices.SortedStableFunc(slices.Values(list), func(a, b *Instance) int { return b.Launched.Compare(a.Launched) })
	for _, uid := range slices.Sorted(maps.Keys(l.open)) {
		claim := l.open[uid].claim
		i := slices.IndexFunc(byLatest, func(i *Instance) bool { return l.freeLocked(i) && isFor(i, claim) })
		switch {
		case i >= 0:
			l.holdLocked(byLatest[i].ID, claim)
			l.held[byLatest[i].ID].seen = true
		case !began.Before(l.open[uid].since.Add(Settling)):
			delete(l.open, uid)
		}
	}
	there := map[string]bool{}
	for _, i := range list {
		there[i.ID] = true
	}
	for id, h := range l.held {
		if !there[id] && h.since.Before(began) && !l.unseenLocked(h) {
			l.goneLocked(id)
		}
	}
	const remembered = time.Hour
	maps.DeleteFunc(l.attempts, func(_ apitypes.UID, n attemptNote) bool { return l.clock.Since(n.last) > remembered })
}

// freeLocked reports whether no claim has the instance.
func (l *launches) freeLocked(i *Instance) bool {
	return l.held[i.ID] == nil && (i.State == types.InstanceStateNamePending || i.State == types.InstanceStateNameRunning)
}

// isFor reports whether the instance was started for the claim, or for one of
// several of which it is one. A tag with the claim's name settles it.
func isFor(i *Instance, claim Claim) bool {
	if name := i.Tags[awsv1.NodeClaimTagKey]; name != "" {
		return name == claim.Name
	}
	return names(i.Tags, claim.UID)
}

// claimOf returns the claim of the instance. For one that no one holds yet it is
// a claim that may still get it; the UID is empty when there is none.
func (l *launches) claimOf(i *Instance) Claim {
	l.mu.Lock()
	defer l.mu.Unlock()
	if h, ok := l.held[i.ID]; ok {
		return h.claim
	}
	var waiting []Claim
	for _, o := range l.open {
		waiting = append(waiting, o.claim)
	}
	waiting = slices.AppendSeq(waiting, maps.Values(l.flying))
	slices.SortFunc(waiting, func(a, b Claim) int { return cmp.Compare(a.UID, b.UID) })
	for _, claim := range waiting {
		if isFor(i, claim) {
			return claim
		}
	}
	return Claim{Name: i.Tags[awsv1.NodeClaimTagKey]}
}

const (
	perTag     = 25 // claims: EC2 takes 256 characters in a tag
	tagsOfEC2  = 50 // on one resource
	tagsToCome = 2  // Name and karpenter.sh/nodeclaim
)

// launchTags returns the tags that name the claims.
func launchTags(claims []Claim) map[string]string {
	out := map[string]string{}
	n := 0
	for chunk := range slices.Chunk(claims, perTag) {
		var short []string
		for _, c := range chunk {
			short = append(short, shortened(c.UID))
		}
		out[fmt.Sprintf("%s%d", awsv1.LaunchTagPrefix, n)] = strings.Join(short, " ")
		n++
	}
	return out
}

// mostClaims is how many claims the tags of an instance can name, beside others.
func mostClaims(others int) int { return max(1, tagsOfEC2-tagsToCome-others) * perTag }

// names reports whether the tags name the claim.
func names(tags map[string]string, uid apitypes.UID) bool {
	short := shortened(uid)
	for key, value := range tags {
		if strings.HasPrefix(key, awsv1.LaunchTagPrefix) && slices.Contains(strings.Fields(value), short) {
			return true
		}
	}
	return false
}

// shortened returns nine characters for a UID, 54 bits of its hash. In a
// cluster with a million claims, the chance that any two are equal is 1 in
// 36,000.
func shortened(uid apitypes.UID) string {
	const characters = 9
	sum := sha256.Sum256([]byte(uid))
	return base64.RawURLEncoding.EncodeToString(sum[:])[:characters]
}
