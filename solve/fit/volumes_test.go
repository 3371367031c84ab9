// SPDX-License-Identifier: Apache-2.0

package fit

import (
	"testing"

	"karpenter/model"
)

// TestAttachable counts how many pods a node's limit on attached volumes lets
// in, and that it lets in no more once they are there (spec 20/74).
func TestAttachable(t *testing.T) {
	for _, c := range []struct {
		name     string
		attached model.Attached
		pod      model.Volumes
		want     int // at most 100 are asked for
	}{
		{"one each", model.Attached{Driver: "ebs", Limit: 10, Own: 4}, model.Volumes{Driver: "ebs", Own: 1}, 6},
		{"three each", model.Attached{Driver: "ebs", Limit: 10}, model.Volumes{Driver: "ebs", Own: 3}, 3},
		{"full", model.Attached{Driver: "ebs", Limit: 4, Own: 4}, model.Volumes{Driver: "ebs", Own: 1}, 0},
		{"another driver", model.Attached{Driver: "ebs", Limit: 4, Own: 4}, model.Volumes{Driver: "efs", Own: 1}, 100},
		{"a claim that is there counts once", model.Attached{Driver: "ebs", Limit: 1, Shared: []string{"d/data"}}, model.Volumes{Driver: "ebs", Shared: []string{"d/data"}}, 100},
		{"a claim that is not there yet", model.Attached{Driver: "ebs", Limit: 1}, model.Volumes{Driver: "ebs", Shared: []string{"d/data"}}, 100},
		{"no room for the claim", model.Attached{Driver: "ebs", Limit: 1, Own: 1}, model.Volumes{Driver: "ebs", Shared: []string{"d/data"}}, 0},
		{"a claim of all and one of its own", model.Attached{Driver: "ebs", Limit: 5}, model.Volumes{Driver: "ebs", Own: 1, Shared: []string{"d/data"}}, 4},
		{"overdrawn, and no more is needed", model.Attached{Driver: "ebs", Limit: 1, Own: 2, Shared: []string{"d/data"}}, model.Volumes{Driver: "ebs", Shared: []string{"d/data"}}, 100},
	} {
		t.Run(c.name, func(t *testing.T) {
			n := NodeRow{Node: &model.Node{Attached: []model.Attached{c.attached}}}
			volumes := []model.Volumes{c.pod}
			if got := min(n.Attachable(volumes), 100); got != c.want {
				t.Errorf("%d pods, want %d", got, c.want)
			}
			one := 0
			for ; one < 100 && n.Attachable(volumes) > 0; one++ {
				n.Attach(volumes)
			}
			if one != c.want {
				t.Errorf("one by one %d pods, want %d", one, c.want)
			}
		})
	}
}

// TestConflict compares what pods take (spec 20/54).
func TestConflict(t *testing.T) {
	port := func(ip, protocol string, n int32) []model.HostPort {
		return []model.HostPort{{IP: ip, Protocol: protocol, Port: n}}
	}
	for _, c := range []struct {
		a, b []model.HostPort
		want bool
	}{
		{port("0.0.0.0", "TCP", 80), port("0.0.0.0", "TCP", 80), true},
		{port("0.0.0.0", "TCP", 80), port("0.0.0.0", "UDP", 80), false},
		{port("0.0.0.0", "TCP", 80), port("0.0.0.0", "TCP", 81), false},
		{port("10.0.0.1", "TCP", 80), port("10.0.0.2", "TCP", 80), false},
		{port("10.0.0.1", "TCP", 80), port("0.0.0.0", "TCP", 80), true},
		{nil, port("0.0.0.0", "TCP", 80), false},
	} {
		if Conflict(c.a, c.b) != c.want || Conflict(c.b, c.a) != c.want {
			t.Errorf("%v and %v: want %t", c.a, c.b, c.want)
		}
	}
}
