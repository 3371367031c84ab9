// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"

	v1 "karpenter/api/v1"
	"karpenter/cloud"
)

// memory is what the reconciler knows about claims beyond the last read. It has
// the version written last, whether the claim was deleted, and which Node was
// opened for pods, so that a lagging cache is not taken for a change. It also
// has the instance that was launched but could not be recorded yet. The zero
// memory is ready for use; it is safe for concurrent use.
//
// Correctness does not depend on it: after a restart, the provider returns the
// same instances, and old versions cause conflicts at the API server.
type memory struct {
	mu     sync.Mutex
	claims map[string]remembered // by name
}

type remembered struct {
	uid     types.UID
	version string         // resource version written last; "" = none
	deleted bool           // by us, so that a read that does not show it is old
	machine *cloud.Machine // nil = none to be recorded
	node    types.UID      // that was let take pods; "" = none
}

// wrote notes the claim as the API server answered it.
func (m *memory) wrote(claim *v1.NodeClaim) {
	m.change(claim, func(e *remembered) { e.version = claim.ResourceVersion })
}

// gaveUp records that the claim was deleted.
func (m *memory) gaveUp(claim *v1.NodeClaim) {
	m.change(claim, func(e *remembered) { e.deleted = true })
}

// launched notes the instance of a claim until it is recorded; nil says that
// it is.
func (m *memory) launched(claim *v1.NodeClaim, machine *cloud.Machine) {
	m.change(claim, func(e *remembered) { e.machine = machine })
}

// released records that the claim's Node was opened for pods.
func (m *memory) released(claim *v1.NodeClaim, node types.UID) {
	m.change(claim, func(e *remembered) { e.node = node })
}

// hasReleased reports whether the Node of the claim was opened for pods. The
// cache may not show that yet.
func (m *memory) hasReleased(claim *v1.NodeClaim, node types.UID) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	e := m.claims[claim.Name]
	return e.uid == claim.UID && e.node != "" && e.node == node
}

// machineOf returns the instance of a claim that is not recorded yet, or nil.
func (m *memory) machineOf(claim *v1.NodeClaim) *cloud.Machine {
	m.mu.Lock()
	defer m.mu.Unlock()
	if e := m.claims[claim.Name]; e.uid == claim.UID {
		return e.machine
	}
	return nil
}

// isOutdated reports whether the claim is older than what was written last.
func (m *memory) isOutdated(claim *v1.NodeClaim) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	e := m.claims[claim.Name]
	if e.uid != claim.UID {
		return false
	}
	if e.deleted && claim.DeletionTimestamp.IsZero() {
		return true
	}
	if e.version == "" {
		return false
	}
	order, err := resourceversion.CompareResourceVersion(claim.ResourceVersion, e.version)
	// If versions cannot be compared, a conflict will show that the claim is
	// outdated.
	return err == nil && order < 0
}

// forget drops what is known of the claim of that name.
func (m *memory) forget(name string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.claims, name)
}

func (m *memory) change(claim *v1.NodeClaim, f func(*remembered)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.claims == nil {
		m.claims = map[string]remembered{}
	}
	e := m.claims[claim.Name]
	if e.uid != claim.UID {
		e = remembered{uid: claim.UID}
	}
	f(&e)
	m.claims[claim.Name] = e
}
