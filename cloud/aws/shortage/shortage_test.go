// SPDX-License-Identifier: Apache-2.0

package shortage_test

import (
	"testing"
	"time"

	"karpenter/cloud/aws/shortage"
	"karpenter/model"
)

func TestSoldOut(t *testing.T) {
	start := time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)
	spotA := shortage.Offering{CapacityType: model.Spot, InstanceType: "m5.large", Zone: "a"}
	with := func(change func(*shortage.Offering)) shortage.Offering {
		o := spotA
		change(&o)
		return o
	}
	inGroup := with(func(o *shortage.Offering) { o.Group = "pg-1" })
	inPartition := with(func(o *shortage.Offering) { o.Group, o.Partition = "pg-1", "2" })
	for _, c := range []struct {
		name    string
		note    func(*shortage.Log)
		ask     shortage.Offering
		subnets []string
		after   time.Duration
		want    bool
	}{
		{name: "spec 65/61 it", note: func(l *shortage.Log) { l.Offering(spotA, start) }, ask: spotA, want: true},
		{
			name: "spec 65/61 another zone", note: func(l *shortage.Log) { l.Offering(spotA, start) },
			ask: with(func(o *shortage.Offering) { o.Zone = "b" }),
		},
		{
			name: "spec 65/61 on demand", note: func(l *shortage.Log) { l.Offering(spotA, start) },
			ask: with(func(o *shortage.Offering) { o.CapacityType = model.OnDemand }),
		},
		{
			name: "spec 65/62 another type", note: func(l *shortage.Log) { l.Offering(spotA, start) },
			ask: with(func(o *shortage.Offering) { o.InstanceType = "c5.large" }),
		},
		{name: "spec 65/62 nearly over", note: func(l *shortage.Log) { l.Offering(spotA, start) }, ask: spotA, after: 3*time.Minute - 1, want: true},
		{name: "spec 65/62 over", note: func(l *shortage.Log) { l.Offering(spotA, start) }, ask: spotA, after: 3 * time.Minute},
		{name: "spec 65/62 flushed", note: func(l *shortage.Log) { l.Offering(spotA, start); l.Clear() }, ask: spotA},
		{
			name: "short once more", note: func(l *shortage.Log) { l.Offering(spotA, start); l.Offering(spotA, start.Add(2*time.Minute)) },
			ask: spotA, after: 4 * time.Minute, want: true,
		},
		{
			name: "spec 65/63 one of two subnets", note: func(l *shortage.Log) { l.Subnet("subnet-1", start) },
			ask: spotA, subnets: []string{"subnet-1", "subnet-2"},
		},
		{
			name: "spec 65/63 both", note: func(l *shortage.Log) { l.Subnet("subnet-1", start); l.Subnet("subnet-2", start) },
			ask: spotA, subnets: []string{"subnet-1", "subnet-2"}, want: true,
		},
		{
			name: "spec 65/63 the only one", note: func(l *shortage.Log) { l.Subnet("subnet-1", start) },
			ask: spotA, subnets: []string{"subnet-1"}, want: true,
		},
		{name: "spec 65/64 all spot", note: func(l *shortage.Log) { l.CapacityType(model.Spot, start) }, ask: spotA, want: true},
		{
			name: "spec 65/64 not on demand", note: func(l *shortage.Log) { l.CapacityType(model.Spot, start) },
			ask: with(func(o *shortage.Offering) { o.CapacityType = model.OnDemand }),
		},
		{name: "spec 65/66 outside of the group", note: func(l *shortage.Log) { l.Offering(inGroup, start) }, ask: spotA},
		{name: "spec 65/66 in the group", note: func(l *shortage.Log) { l.Offering(inGroup, start) }, ask: inGroup, want: true},
		{name: "spec 65/66 everywhere means in the group", note: func(l *shortage.Log) { l.Offering(spotA, start) }, ask: inGroup, want: true},
		{name: "spec 65/66 the group means its partitions", note: func(l *shortage.Log) { l.Offering(inGroup, start) }, ask: inPartition, want: true},
		{name: "spec 65/66 a partition", note: func(l *shortage.Log) { l.Offering(inPartition, start) }, ask: inPartition, want: true},
		{
			name: "spec 65/66 another partition", note: func(l *shortage.Log) { l.Offering(inPartition, start) },
			ask: with(func(o *shortage.Offering) { o.Group, o.Partition = "pg-1", "3" }),
		},
		{name: "spec 65/66 a partition does not block the group", note: func(l *shortage.Log) { l.Offering(inPartition, start) }, ask: inGroup},
	} {
		t.Run(c.name, func(t *testing.T) {
			var log shortage.Log
			c.note(&log)
			if got := log.SoldOut(c.ask, c.subnets, start.Add(c.after)); got != c.want {
				t.Errorf("sold out %v, want %v", got, c.want)
			}
		})
	}
}

// spec 65/63: the next launch prefers the other subnet at once.
func TestSubnetShort(t *testing.T) {
	var log shortage.Log
	now := time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)
	log.Subnet("subnet-1", now)
	if !log.SubnetShort("subnet-1", now) || log.SubnetShort("subnet-2", now) || log.SubnetShort("subnet-1", now.Add(shortage.Lasting)) {
		t.Error("not subnet-1 for three minutes")
	}
}

// spec 65/65: a shortage of one type concerns answers about that type only, one
// of a capacity type or subnet those about all; both when it begins and when it
// is over, and not when it is found again.
func TestSequence(t *testing.T) {
	start := time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)
	spotA := shortage.Offering{CapacityType: model.Spot, InstanceType: "m5.large", Zone: "a"}
	var log shortage.Log
	m5, c5, all := log.SequenceOf("m5.large", start), log.SequenceOf("c5.large", start), log.Sequence(start)
	for _, step := range []struct {
		name           string
		note           func(*shortage.Log, time.Time)
		after          time.Duration
		m5, c5, change bool
	}{
		{"nothing", func(*shortage.Log, time.Time) {}, 0, false, false, false},
		{"one type", func(l *shortage.Log, now time.Time) { l.Offering(spotA, now) }, time.Minute, true, false, true},
		{"again", func(l *shortage.Log, now time.Time) { l.Offering(spotA, now) }, 2 * time.Minute, false, false, false},
		{"still", func(*shortage.Log, time.Time) {}, 5*time.Minute - 1, false, false, false},
		{"over", func(*shortage.Log, time.Time) {}, 5 * time.Minute, true, false, true},
		{"a capacity type", func(l *shortage.Log, now time.Time) { l.CapacityType(model.Spot, now) }, 6 * time.Minute, true, true, true},
		{"a subnet", func(l *shortage.Log, now time.Time) { l.Subnet("subnet-1", now) }, 7 * time.Minute, true, true, true},
		{"the capacity type is over", func(*shortage.Log, time.Time) {}, 9 * time.Minute, true, true, true},
		{"the subnet is over", func(*shortage.Log, time.Time) {}, 10 * time.Minute, true, true, true},
		{"and nothing after", func(*shortage.Log, time.Time) {}, time.Hour, false, false, false},
		{"flushed", func(l *shortage.Log, _ time.Time) { l.Clear() }, time.Hour, true, true, true},
	} {
		now := start.Add(step.after)
		step.note(&log, now)
		m, c, s := log.SequenceOf("m5.large", now), log.SequenceOf("c5.large", now), log.Sequence(now)
		if (m != m5) != step.m5 || (c != c5) != step.c5 || (s != all) != step.change || s < all {
			t.Errorf("%s: m5.large %d→%d, c5.large %d→%d, all %d→%d", step.name, m5, m, c5, c, all, s)
		}
		m5, c5, all = m, c, s
	}
}
