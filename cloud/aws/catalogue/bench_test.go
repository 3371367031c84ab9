// SPDX-License-Identifier: Apache-2.0

package catalogue_test

import (
	"fmt"
	"testing"
	"time"

	awsv1 "karpenter/api/aws/v1"
	"karpenter/cloud/aws/shortage"
	"karpenter/model"
)

// BenchmarkTypes is how long an answer takes of all types in six zones, by what
// has changed since the last.
func BenchmarkTypes(b *testing.B) {
	r := newRegion(b)
	class := plain()
	class.Status.Subnets = nil
	var zones []string
	for i := range 6 {
		zone := fmt.Sprintf("us-east-1%c", 'a'+i)
		zones = append(zones, zone)
		class.Status.Subnets = append(class.Status.Subnets, awsv1.Subnet{ID: "subnet-" + zone, Zone: zone, ZoneID: fmt.Sprintf("use1-az%d", i)})
	}
	for name := range r.sold {
		r.sold[name] = zones
	}
	w := newWorld(b, r)
	types := func(b *testing.B) {
		if got, err := w.Types(b.Context(), class); err != nil || len(got) != len(r.types) {
			b.Fatal(len(got), err)
		}
	}
	for _, c := range []struct {
		name   string
		change func(i int)
	}{
		{"nothing", func(int) {}},
		{"order of subnets", func(int) { s := class.Status.Subnets; s[0], s[1] = s[1], s[0] }},
		{"one type sold out", func(i int) {
			w.later(time.Second)
			w.shortages.Offering(shortage.Offering{CapacityType: model.Spot, InstanceType: "m5.large", Zone: "us-east-1a"}, w.clock.Now().Add(time.Duration(i)*time.Hour))
		}},
		{"a zone shifted", func(i int) { w.shifted["use1-az0"] = i%2 == 0 }},
		{"everything", func(i int) { class.UID += "x" }},
	} {
		b.Run(c.name, func(b *testing.B) {
			types(b)
			b.ReportAllocs()
			i := 0
			for b.Loop() {
				c.change(i)
				i++
				types(b)
			}
		})
	}
}
