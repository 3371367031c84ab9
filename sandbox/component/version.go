// SPDX-License-Identifier: Apache-2.0

package component

import (
	"strings"
	_ "unsafe" // for go:linkname

	_ "k8s.io/client-go/pkg/version"
	baseversion "k8s.io/component-base/version"
)

// Kubernetes' release script stamps its version with -ldflags -X. Modules carry no stamps, so /version would say
// v0.0.0-master; these are upstream's variables, set once at start instead, so that every way to build is right.
var (
	//go:linkname baseVersion k8s.io/component-base/version.gitVersion
	baseVersion string
	//go:linkname baseMajor k8s.io/component-base/version.gitMajor
	baseMajor string
	//go:linkname baseMinor k8s.io/component-base/version.gitMinor
	baseMinor string
	//go:linkname clientVersion k8s.io/client-go/pkg/version.gitVersion
	clientVersion string
)

// stampVersion makes version (such as v1.37.1) the version that this process reports.
func stampVersion(version string) {
	major, rest, _ := strings.Cut(strings.TrimPrefix(version, "v"), ".")
	minor, _, _ := strings.Cut(rest, ".")
	baseVersion, baseMajor, baseMinor, clientVersion = version, major, minor, version
	// Upstream's own setter rejects anything that differs from baseVersion, which now it does not.
	if err := baseversion.SetDynamicVersion(version); err != nil {
		panic("component: " + err.Error())
	}
}
