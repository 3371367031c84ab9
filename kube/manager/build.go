// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"runtime"
	"runtime/debug"

	"github.com/prometheus/client_golang/prometheus"
)

const commitLength = 7

// Build is which program this is.
type Build struct {
	Version   string // Version
	Commit    string // first characters, "-dirty" appended when changes were not committed; "" = unknown
	GoVersion string
	GoArch    string
}

// ReadBuild returns what the linker has recorded about this program.
func ReadBuild() Build {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		info = &debug.BuildInfo{}
	}
	return buildOf(info)
}

func buildOf(info *debug.BuildInfo) Build {
	b := Build{Version: Version, GoVersion: runtime.Version(), GoArch: runtime.GOARCH}
	dirty := false
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			b.Commit = s.Value[:min(len(s.Value), commitLength)]
		case "vcs.modified":
			dirty = s.Value == "true"
		}
	}
	if dirty && b.Commit != "" {
		b.Commit += "-dirty"
	}
	return b
}

// Publish registers karpenter_build_info, which is always 1.
func (b Build) Publish(reg prometheus.Registerer) {
	info := prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Namespace: "karpenter", Name: "build_info", Help: "Which program this is; always 1.",
	}, []string{"version", "goversion", "goarch", "commit"})
	info.WithLabelValues(b.Version, b.GoVersion, b.GoArch, b.Commit).Set(1)
	reg.MustRegister(info)
}
