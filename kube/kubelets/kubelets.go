// SPDX-License-Identifier: Apache-2.0

// Package kubelets predicts which features kubelets of new nodes declare in
// Node.status.declaredFeatures.
package kubelets

import (
	"fmt"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/component-helpers/nodedeclaredfeatures/features"
)

// Kubelet is what is known before launch about the kubelets of the nodes of a NodePool.
type Kubelet struct {
	// Versions are those of the images that the nodes can have, such as 1.36; "" is
	// one that is not known.
	Versions []string
	// Gates are feature gates that the kubelets are known to set.
	Gates map[string]bool
}

// newest is the latest version whose defaults are in gates.
var newest = version.MajorMinor(1, 37)

// gates are the feature gates of features that pods can need: the first version
// that turns the gate on by default, or nil if none up to newest does.
var gates = map[string]*version.Version{
	"RestartAllContainersOnContainerExits": version.MajorMinor(1, 36),
	"UserNamespacesHostNetworkSupport":     nil,
	"VolumeBindMountOptions":               nil,
}

// Features returns which features the kubelets will declare and which not, by
// name. A feature that is not in the answer may be declared.
func (k Kubelet) Features() map[string]bool {
	out := map[string]bool{}
	for _, f := range features.AllFeatures {
		will, known := false, false
		for i, text := range k.versions() {
			on, ok := k.declares(text, f.Requirements().EnabledFeatureGates, f.Requirements().RequiredRuntimeFeatures != nil)
			if i == 0 {
				will, known = on, ok
			}
			known = known && ok && on == will
		}
		if known {
			out[f.Name()] = will
		}
	}
	return out
}

func (k Kubelet) versions() []string {
	if len(k.Versions) == 0 {
		return []string{""}
	}
	return k.Versions
}

// declares reports whether a kubelet of the version declares a feature with these
// gates, and whether that is known. If the feature also needs the container
// runtime, only its absence can be known.
func (k Kubelet) declares(text string, needs []string, runtime bool) (on, known bool) {
	on, known = true, true
	for _, gate := range needs {
		switch is, ok := k.enabled(text, gate); {
		case !ok:
			known = false
		case !is:
			return false, true
		}
	}
	return on, known && !runtime
}

// enabled returns the value of the gate, and whether it is known.
func (k Kubelet) enabled(text, gate string) (on, known bool) {
	if on, known = k.Gates[gate]; known {
		return on, true
	}
	since, listed := gates[gate]
	v, err := version.ParseGeneric(text)
	switch {
	case !listed || err != nil:
		return false, false
	case since != nil:
		return v.AtLeast(since), true
	}
	return false, !v.GreaterThan(newest.WithPatch(1 << 20))
}

// ParseGates returns the feature gates in a text such as "A=true,B=false".
func ParseGates(text string) (map[string]bool, error) {
	out := map[string]bool{}
	for _, part := range strings.Split(text, ",") {
		if part = strings.TrimSpace(part); part == "" {
			continue
		}
		name, value, ok := strings.Cut(part, "=")
		on, err := strconv.ParseBool(strings.TrimSpace(value))
		if !ok || err != nil {
			return nil, fmt.Errorf("%q is not a feature gate with a value, such as RestartAllContainersOnContainerExits=false", part)
		}
		out[strings.TrimSpace(name)] = on
	}
	return out, nil
}
