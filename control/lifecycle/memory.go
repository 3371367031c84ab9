// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"

	v1 "karpenter/api/v1"
	"karpenter/cloud"
)

// memory is what the reconciler knows of claims beyond the last read: the
// version it wrote last, whether it deleted the claim and which Node it let pods
// on, so that a cache lagging behind is not mistaken for news, and the instance it
// started but could not yet record. The zero memory is ready for use; it is safe
// for concurrent use.
//
// It is a help, not the truth: after a restart the provider answers for the
// instances and the API server's conflicts for the versions.
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

// gaveUp notes that the claim has been deleted.
func (m *memory) gaveUp(claim *v1.NodeClaim) {
	m.change(claim, func(e *remembered) { e.deleted = true })
}

// launched notes the instance of a claim until it is recorded; nil says that
// it is.
func (m *memory) launched(claim *v1.NodeClaim, machine *cloud.Machine) {
	m.change(claim, func(e *remembered) { e.machine = machine })
}

// released notes that the claim's Node has been let take pods.
func (m *memory) released(claim *v1.NodeClaim, node types.UID) {
	m.change(claim, func(e *remembered) { e.node = node })
}

// hasReleased reports whether the Node of the claim was let take pods, although
// the cache may not show it yet.
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
	// Versions that cannot be compared say nothing; a conflict will.
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
