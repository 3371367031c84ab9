// SPDX-License-Identifier: Apache-2.0

package model

import (
	"slices"
	"strings"
)

// Label is one label of an object.
type Label struct{ Key, Value string }

// Peer is a pod as the selectors of other pods see it: where it is and its
// labels. Of the labels, a Snapshot holds those that some selector in it
// mentions, so that pods which no selector tells apart are equal.
type Peer struct {
	Namespace       string
	NamespaceLabels []Label // sorted by key
	Labels          []Label // sorted by key
}

// PodSelector picks pods.
type PodSelector struct {
	// The pod is in one of these namespaces or, with ByNamespace, in one whose
	// labels meet NamespaceLabels; empty NamespaceLabels match all, so
	// ByNamespace alone means every namespace.
	Namespaces      []string // sorted
	ByNamespace     bool
	NamespaceLabels Requirements

	Labels  Requirements // its labels meet these
	Nothing bool         // picks no pod, regardless of the other fields, as a missing selector does
}

// Selects reports whether the selector picks p.
func (s *PodSelector) Selects(p *Peer) bool {
	if s.Nothing {
		return false
	}
	_, named := slices.BinarySearch(s.Namespaces, p.Namespace)
	return (named || s.ByNamespace && meets(p.NamespaceLabels, s.NamespaceLabels)) && meets(p.Labels, s.Labels)
}

// Label returns a label that every pod has which the selector picks, if it asks for one with
// a single value: other pods need not be asked about.
func (s *PodSelector) Label() (Label, bool) {
	for _, r := range s.Labels {
		if !r.Complement && len(r.Values) == 1 {
			return Label{r.Key, r.Values[0]}, true
		}
	}
	return Label{}, false
}

func meets(labels []Label, demands Requirements) bool {
	for _, r := range demands {
		i, ok := slices.BinarySearchFunc(labels, r.Key, func(l Label, key string) int { return strings.Compare(l.Key, key) })
		if ok && !r.Has(labels[i].Value) || !ok && !r.AllowsAbsence() {
			return false
		}
	}
	return true
}

// Spread is a topology spread constraint: in no domain of Key may there be
// more than MaxSkew selected pods above the domain that has fewest.
type Spread struct {
	Key        string
	MaxSkew    int
	MinDomains int // with fewer domains than this the fewest counts as 0; 0 = 1
	Select     PodSelector
	Soft       bool // ScheduleAnyway: a preference

	// Which nodes count: those the pod's own selector and required affinity
	// allow, unless AnyNode; with HonorTaints, those whose taints it tolerates.
	AnyNode     bool
	HonorTaints bool
}

// PodTerm is a term of pod affinity: the pod wants a domain of Key in which a
// selected pod runs or, with Anti, in which none does.
type PodTerm struct {
	Key    string
	Select PodSelector
	Anti   bool
	Weight int32 // of a preference; 0 = required
}

// Preference is a term of node affinity that the pod would like to be met.
type Preference struct {
	Weight int32 // 1 to 100
	Term   Requirements
}

// HostPort is a port a pod takes on its node.
type HostPort struct {
	IP       string // "0.0.0.0" = every address
	Protocol string // TCP, UDP or SCTP
	Port     int32
}

// Conflicts reports whether two pods with these ports cannot share a node.
func (p HostPort) Conflicts(q HostPort) bool {
	every := func(ip string) bool { return ip == "0.0.0.0" || ip == "::" }
	return p.Port == q.Port && p.Protocol == q.Protocol && (p.IP == q.IP || every(p.IP) || every(q.IP))
}

// Volumes is how many volumes of one driver a pod attaches to its node.
type Volumes struct {
	Driver string
	Own    int      // that no other pod uses
	Shared []string // namespace/name of claims that other pods may use too; sorted
}

// VolumeLimit is how many volumes of one driver a node may attach.
type VolumeLimit struct {
	Driver string
	Most   int
}

// Attached is how many volumes of one driver a node may attach, and does.
type Attached struct {
	Driver string
	Limit  int
	Own    int      // used by one pod
	Shared []string // claims that may be used by more pods than one; sorted
}

// Resident is a number of equal pods on a node, with what matters to the
// affinity of other pods.
type Resident struct {
	Peer
	Anti        []PodTerm // their required anti-affinity
	Terminating bool
	Count       int
}
