// SPDX-License-Identifier: Apache-2.0

package v1

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
)

// Labels has the rules for label keys of Karpenter and its provider.
// DefaultLabels returns the rules for all providers, and With adds those of one
// provider.
//
// +kubebuilder:object:generate=false
type Labels struct {
	// WellKnown keys are those instance types and offerings define. A pod may
	// ask for one a NodePool does not mention, they are not resolved into the
	// labels of a new NodeClaim, and no domain restriction applies to them.
	WellKnown sets.Set[string]
	// Offering keys are the well-known ones offerings of one instance type
	// differ in.
	Offering sets.Set[string]
	// RestrictedDomains are reserved with their subdomains: users may use only
	// the well-known keys in them.
	RestrictedDomains sets.Set[string]
	// Restricted keys may not be used at all.
	Restricted sets.Set[string]
	// Aliases map old keys to the canonical key of the same meaning.
	Aliases map[string]string
	// ValueAliases map, for a canonical key, values to canonical values.
	ValueAliases map[string]map[string]string
	// KnownValues are, for keys with a closed set of values, all of them.
	KnownValues map[string]sets.Set[string]
}

// DefaultLabels returns the rules for every provider.
func DefaultLabels() Labels {
	return Labels{
		WellKnown: sets.New(
			NodePoolLabelKey,
			CapacityTypeLabelKey,
			corev1.LabelTopologyZone,
			corev1.LabelTopologyRegion,
			corev1.LabelInstanceTypeStable,
			corev1.LabelArchStable,
			corev1.LabelOSStable,
			corev1.LabelWindowsBuild,
		),
		Offering:          sets.New(corev1.LabelTopologyZone, CapacityTypeLabelKey),
		RestrictedDomains: sets.New(Group),
		Restricted:        sets.New(corev1.LabelHostname),
		Aliases: map[string]string{
			corev1.LabelFailureDomainBetaZone:   corev1.LabelTopologyZone,
			corev1.LabelFailureDomainBetaRegion: corev1.LabelTopologyRegion,
			"beta.kubernetes.io/arch":           corev1.LabelArchStable,
			"beta.kubernetes.io/os":             corev1.LabelOSStable,
			corev1.LabelInstanceType:            corev1.LabelInstanceTypeStable,
		},
		KnownValues: map[string]sets.Set[string]{
			CapacityTypeLabelKey: sets.New(CapacityTypeOnDemand, CapacityTypeSpot, CapacityTypeReserved),
		},
	}
}

// With returns the union of l and more. If both map the same key, more wins.
// Neither is modified, and the result shares nothing with them.
func (l Labels) With(more Labels) Labels {
	return Labels{
		WellKnown:         l.WellKnown.Union(more.WellKnown),
		Offering:          l.Offering.Union(more.Offering),
		RestrictedDomains: l.RestrictedDomains.Union(more.RestrictedDomains),
		Restricted:        l.Restricted.Union(more.Restricted),
		Aliases:           merge(l.Aliases, more.Aliases),
		ValueAliases:      merge(l.ValueAliases, more.ValueAliases),
		KnownValues:       merge(l.KnownValues, more.KnownValues),
	}
}

// merge returns a new map with the entries of both; those of b win.
func merge[V any](a, b map[string]V) map[string]V {
	out := make(map[string]V, len(a)+len(b))
	maps.Copy(out, a)
	maps.Copy(out, b)
	return out
}

// Canonical returns the canonical form of a key and one of its values.
func (l Labels) Canonical(key, value string) (canonicalKey, canonicalValue string) {
	key = l.CanonicalKey(key)
	if v, ok := l.ValueAliases[key][value]; ok {
		value = v
	}
	return key, value
}

// CanonicalKey returns the key an alias stands for, or the key itself.
func (l Labels) CanonicalKey(key string) string {
	if canonical, ok := l.Aliases[key]; ok {
		return canonical
	}
	return key
}

// CheckRestricted returns an error if users may not constrain or set the key,
// which must be canonical.
func (l Labels) CheckRestricted(key string) error {
	if l.WellKnown.Has(key) {
		return nil
	}
	if l.Restricted.Has(key) {
		return fmt.Errorf("label key %q is restricted: its value is decided per node; use another key", key)
	}
	domain, _, found := strings.Cut(key, "/")
	if !found {
		return nil
	}
	for _, restricted := range slices.Sorted(maps.Keys(l.RestrictedDomains)) {
		if domain == restricted || strings.HasSuffix(domain, "."+restricted) {
			return fmt.Errorf("label key %q is restricted: domain %s is reserved; use another domain or one of its well-known keys [%s]",
				key, restricted, strings.Join(l.wellKnownIn(restricted), ", "))
		}
	}
	return nil
}

// wellKnownIn returns the sorted well-known keys of the domain a user may set.
func (l Labels) wellKnownIn(domain string) []string {
	var keys []string
	for _, key := range slices.Sorted(maps.Keys(l.WellKnown)) {
		if strings.HasPrefix(key, domain+"/") && key != NodePoolLabelKey {
			keys = append(keys, key)
		}
	}
	return keys
}
