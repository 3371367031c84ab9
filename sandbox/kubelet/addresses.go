// SPDX-License-Identifier: Apache-2.0

package kubelet

import (
	"net/netip"
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

// Simulated instances and pods live in these ranges, apart from the services' 10.96.0.0/16.
const (
	nodeRange = "172.16.0.0/12"
	podRange  = "10.128.0.0/9"
)

// addresses hands out IP addresses of one range, each to one owner. Safe for concurrent use.
type addresses struct {
	mu      sync.Mutex
	first   netip.Addr
	prefix  netip.Prefix
	next    netip.Addr
	byOwner map[types.UID]netip.Addr
	owners  map[netip.Addr]types.UID
}

func newAddresses(cidr string) *addresses {
	prefix := netip.MustParsePrefix(cidr)
	first := prefix.Addr().Next()
	return &addresses{first: first, prefix: prefix, next: first, byOwner: map[types.UID]netip.Addr{}, owners: map[netip.Addr]types.UID{}}
}

// assign returns the owner's address, choosing a free one if it has none. The ranges hold far more addresses than any
// cluster has owners, so one is always free.
func (a *addresses) assign(owner types.UID) string {
	a.mu.Lock()
	defer a.mu.Unlock()
	if ip, ok := a.byOwner[owner]; ok {
		return ip.String()
	}
	for {
		ip := a.next
		if a.next = ip.Next(); !a.prefix.Contains(a.next) {
			a.next = a.first
		}
		if _, taken := a.owners[ip]; !taken {
			a.owners[ip], a.byOwner[owner] = owner, ip
			return ip.String()
		}
	}
}

// claim notes that the owner already has the address.
func (a *addresses) claim(owner types.UID, address string) {
	ip, err := netip.ParseAddr(address)
	if err != nil {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if _, taken := a.owners[ip]; !taken && a.byOwner[owner] != ip {
		a.owners[ip], a.byOwner[owner] = owner, ip
	}
}

// release frees the owner's address, if any.
func (a *addresses) release(owner types.UID) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if ip, ok := a.byOwner[owner]; ok {
		delete(a.byOwner, owner)
		delete(a.owners, ip)
	}
}
