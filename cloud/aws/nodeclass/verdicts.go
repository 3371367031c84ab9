// SPDX-License-Identifier: Apache-2.0

package nodeclass

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	awsv1 "karpenter/api/aws/v1"
)

// valid is how long a verdict holds. spread is how much longer or shorter that
// can be, so that the classes of an account are not all checked again at the
// same time.
const (
	valid  = 30 * time.Minute
	spread = 5 * time.Minute
)

// validity is how long verdicts on the class hold: the same for all of them.
func validity(class types.UID) time.Duration {
	h := fnv.New64a()
	_, _ = h.Write([]byte(class)) // never fails
	return valid - spread + time.Duration(h.Sum64()%uint64(2*spread))
}

// verdicts remembers the last verdict on each class. It may be used
// concurrently.
type verdicts struct {
	clock clock.PassiveClock
	mu    sync.Mutex
	known map[types.UID]remembered
}

type remembered struct {
	key     string // what was judged
	verdict verdict
	until   time.Time
}

func (v *verdicts) get(uid types.UID, key string) (verdict, bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	r, ok := v.known[uid]
	return r.verdict, ok && r.key == key && r.until.After(v.clock.Now())
}

func (v *verdicts) put(uid types.UID, key string, of verdict) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.known == nil {
		v.known = map[types.UID]remembered{}
	}
	v.known[uid] = remembered{key, of, v.clock.Now().Add(validity(uid))}
}

func (v *verdicts) forget(uid types.UID) {
	v.mu.Lock()
	defer v.mu.Unlock()
	delete(v.known, uid)
}

// fingerprint returns a hash of everything in the class that a launch depends
// on, and of its annotations, which users can change to trigger a new check.
// The order of subnets, which changes with their free addresses, is not part of
// it.
func fingerprint(class *awsv1.EC2NodeClass) (string, error) {
	subnets := slices.Clone(class.Status.Subnets)
	slices.SortFunc(subnets, func(a, b awsv1.Subnet) int { return strings.Compare(a.ID, b.ID) })
	annotations := maps.Clone(class.Annotations)
	delete(annotations, awsv1.HashAnnotationKey)
	delete(annotations, awsv1.HashVersionAnnotationKey)
	text, err := json.Marshal([]any{
		class.Name, class.Spec, annotations,
		subnets, class.Status.SecurityGroups, class.Status.AMIs, class.Status.InstanceProfile,
	})
	if err != nil {
		return "", fmt.Errorf("fingerprint of node class %s: %w", class.Name, err)
	}
	return fmt.Sprintf("%x", sha256.Sum256(text)), nil
}
