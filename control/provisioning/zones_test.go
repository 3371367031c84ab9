// SPDX-License-Identifier: Apache-2.0

package provisioning

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"karpenter/scenario"
)

const zoned = `
type small cpu=2 mem=8Gi zones=a,b,c on-demand=0.1
pool general
pods one-1..2 cpu=1 select=zone=a
pods chosen cpu=1 affinity="zone=a | zone=b"
pods anywhere cpu=1
pods driven cpu=1 affinity="arch=amd64 | zone=b"
pods disk cpu=1 affinity="zone=a | zone=b" volumes-in="zone=b | zone=c"
pods torn cpu=1 select=zone=a volumes-in=zone=c
pods left cpu=1 affinity="zone NotIn [a b]"
pods few cpu=1 affinity="zone NotIn [a]"
pods excluded cpu=1 affinity="zone NotIn [a b c]"
pods unknown cpu=1 select=zone=z
pods stand-in cpu=1 select=zone=a buffer=shop/spare
`

// TestEffectiveZones covers the count of pending pods by effective zone of spec 50
// §5, but for rules between pods.
func TestEffectiveZones(t *testing.T) {
	s, err := scenario.Parse(strings.NewReader(zoned))
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]int{
		"a":        2, // one-1, one-2; stand-in does not exist
		"b":        1, // disk
		"c":        1, // left
		"z":        1,
		"flexible": 4, // chosen, anywhere, driven, few
		"none":     2, // torn, excluded
	}
	if diff := cmp.Diff(want, effectiveZones(s)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	reg := prometheus.NewPedanticRegistry()
	m := NewMetrics(reg)
	const name = "karpenter_scheduler_pending_pods_by_effective_zone_count"
	m.zones.set(s)
	if n, err := testutil.GatherAndCount(reg, name); n != len(want) || err != nil {
		t.Errorf("%d series, want %d: %v", n, len(want), err)
	}
	s.Pending = s.Pending[:1]
	m.zones.set(s)
	text := `
# HELP ` + name + ` Number of pending pods by the one zone that they and their volumes ask for, flexible where there are several, none where there is none. Rules between pods are not looked at.
# TYPE ` + name + ` gauge
` + name + `{controller="provisioner",zone="a"} 2
`
	if err := testutil.GatherAndCompare(reg, strings.NewReader(text), name); err != nil {
		t.Error(err)
	}
}
