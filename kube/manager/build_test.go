// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"runtime/debug"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
)

// spec 50/10: build_info has all four labels and the value 1.
func TestBuildInfo(t *testing.T) {
	reg := prometheus.NewRegistry()
	Build{Version: "v1.2.3", Commit: "abcdef1", GoVersion: "go1.26", GoArch: "arm64"}.Publish(reg)
	want := `
# HELP karpenter_build_info Which program this is; always 1.
# TYPE karpenter_build_info gauge
karpenter_build_info{commit="abcdef1",goarch="arm64",goversion="go1.26",version="v1.2.3"} 1
`
	if err := testutil.GatherAndCompare(reg, strings.NewReader(want)); err != nil {
		t.Error(err)
	}
}

func TestBuildOf(t *testing.T) {
	settings := func(pairs ...string) []debug.BuildSetting {
		var out []debug.BuildSetting
		for i := 0; i < len(pairs); i += 2 {
			out = append(out, debug.BuildSetting{Key: pairs[i], Value: pairs[i+1]})
		}
		return out
	}
	for _, tc := range []struct {
		name   string
		info   debug.BuildInfo
		commit string
	}{
		{"nothing known", debug.BuildInfo{}, ""},
		{"clean", debug.BuildInfo{Main: debug.Module{Version: "v1.0.0"}, Settings: settings("vcs.revision", "0123456789", "vcs.modified", "false")}, "0123456"},
		{"dirty", debug.BuildInfo{Settings: settings("vcs.modified", "true", "vcs.revision", "0123456789")}, "0123456-dirty"},
		{"dirty without a commit", debug.BuildInfo{Settings: settings("vcs.modified", "true")}, ""},
	} {
		got := buildOf(&tc.info)
		if diff := cmp.Diff([]string{Version, tc.commit}, []string{got.Version, got.Commit}); diff != "" {
			t.Errorf("%s: -want +got:\n%s", tc.name, diff)
		}
	}
}
