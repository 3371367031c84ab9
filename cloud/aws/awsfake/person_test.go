// SPDX-License-Identifier: Apache-2.0

package awsfake

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestInstancesStartedByHand(t *testing.T) {
	l := newLab(t, nil)
	block := l.AddReservation(Reservation{Type: "m5.large", Zone: "us-west-2b", Count: 1, CapacityBlock: true, End: l.clock.Now().Add(24 * time.Hour)})
	var got []string
	for _, s := range []Start{
		{Type: "m5.large", Tags: tags("Name", "mine")},
		{Type: "m6g.large", Zone: "us-west-2c", Spot: true},
		{Type: "m5.large", Zone: "us-west-2b", Reservation: block},
	} {
		id, err := l.StartInstance(s)
		l.must(err)
		i := l.instances.byID[id]
		got = append(got, string(i.InstanceType)+" "+i.zone()+" "+string(i.InstanceLifecycle)+" "+string(i.Architecture))
		if len(i.Tags) != len(s.Tags) {
			t.Errorf("tags %v", i.Tags)
		}
	}
	want := []string{"m5.large us-west-2a  x86_64", "m6g.large us-west-2c spot arm64", "m5.large us-west-2b capacity-block x86_64"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	l.Stock(Pool{Type: "m5.large"}, 0)
	for code, s := range map[string]Start{
		"InsufficientInstanceCapacity":          {Type: "m5.large"},
		"InvalidParameterValue":                 {Type: "m9.huge"},
		"InvalidCapacityReservationId.NotFound": {Type: "m5.large", Reservation: "cr-0"},
		"ReservationCapacityExceeded":           {Type: "m5.large", Zone: "us-west-2b", Reservation: block},
	} {
		_, err := l.StartInstance(s)
		l.refused(err, code)
	}
	if n := len(l.Instances()); n != 3 {
		t.Errorf("%d instances", n)
	}
}
