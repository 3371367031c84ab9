// SPDX-License-Identifier: Apache-2.0

package azurevm

import (
	"regexp"
	"strings"
)

// Name is the parts of the name of a size.
type Name struct {
	Family      string // the first letter
	Series      string // letters, features and version: NCads_v4
	Version     string // "1" without one
	Accelerator string // model of the GPUs, if the name tells it
	Constrained bool   // fewer vCPUs are usable than the host has
}

// Confidential reports whether sizes of the name are confidential virtual
// machines.
func (n Name) Confidential() bool {
	return strings.HasPrefix(n.Series, "DC") || strings.HasPrefix(n.Series, "EC")
}

// exception is a name that does not follow the naming scheme.
const exception = "Standard_M416s_8_v2"

// ParseName reads the name of a size. It is not ok if the name does not follow
// Azure's naming scheme.
func ParseName(size string) (name Name, ok bool) {
	if size == exception {
		return Name{Family: "M", Series: "Ms_v2", Version: "2"}, true
	}
	m := scheme().FindStringSubmatch(size)
	if m == nil {
		return Name{}, false
	}
	family, more, constrained, features, accelerator, version := m[1], m[2], m[3], m[4], m[5], m[6]
	name = Name{
		Family:      family,
		Series:      family + more + features,
		Version:     "1",
		Accelerator: accelerator,
		Constrained: constrained != "",
	}
	if version != "" {
		name.Series += "_v" + version
		name.Version = version
	}
	return name, true
}

// scheme returns Azure's naming scheme, such as NC 24 ads _A100 _v4.
func scheme() *regexp.Regexp {
	return regexp.MustCompile(`^(?:Standard|Basic)_` +
		`([A-Z])([A-Z]{0,2})\d+(-\d+)?` + // family, sub-family, vCPUs, usable vCPUs
		`((?:[abcdefilmnoprst]|Cs|NP)*)` + // features
		`(?:_MI300X)?(?:_(?:xl_)?([A-Z][A-Z0-9]*))?` + // accelerator
		`(?:_cc)?(?:_\d+)?` +
		`(?:_v([1-9]))?(?:_Promo)?$`)
}
