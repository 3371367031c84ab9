// SPDX-License-Identifier: Apache-2.0

package network_test

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"karpenter/cloud/aws/network"
)

// TestFreeAddressesHoldUnderRandomLaunches: whatever launches do, a subnet never has more than EC2 said less what
// launches under way have taken; and when all are over and EC2 was asked after
// that, it has what EC2 says.
func TestFreeAddressesHoldUnderRandomLaunches(t *testing.T) {
	ids := []string{"subnet-a1", "subnet-a2", "subnet-b1"}
	for seed := range uint64(200) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 0))
			f := newFixture(t)
			counted := map[string]int64{"subnet-a1": 100, "subnet-a2": 90, "subnet-b1": 50}
			type launch struct {
				pick *network.Pick
				need map[string]int64
			}
			var under []launch
			end := func(i int) {
				var landed []string
				for _, id := range under[i].pick.Subnets {
					if random.IntN(2) == 0 {
						landed = append(landed, id)
					}
				}
				f.subnets.Settle(under[i].pick, landed...)
				under = append(under[:i], under[i+1:]...)
			}
			for range 30 {
				f.after(time.Duration(random.IntN(20)) * time.Second / 4)
				switch random.IntN(4) {
				case 0, 1:
					need := map[string]int64{"a": random.Int64N(40), "b": random.Int64N(40)}
					under = append(under, launch{f.take(need["a"], need["b"]), need})
				case 2:
					if len(under) > 0 {
						end(random.IntN(len(under)))
					}
				case 3:
					f.refresh(t)
				}
				taken := map[string]int64{}
				for _, l := range under {
					for zone, id := range l.pick.Subnets {
						taken[id] += l.need[zone]
					}
				}
				for _, id := range ids {
					if got, most := f.subnets.Free(id), counted[id]-taken[id]; got > most {
						t.Fatalf("%s has %d free, but at most %d are", id, got, most)
					}
				}
			}
			for len(under) > 0 {
				end(0)
			}
			f.after(2 * time.Minute)
			f.refresh(t)
			for _, id := range ids {
				if got := f.subnets.Free(id); got != counted[id] {
					t.Errorf("in the end %s has %d free, want %d", id, got, counted[id])
				}
			}
		})
	}
}

// TestLaunchesAtOnceSpread: launches at the same time do not all see the same
// subnet as the emptiest.
func TestLaunchesAtOnceSpread(t *testing.T) {
	f := newFixture(t)
	var mu sync.Mutex
	in := map[string]int{}
	var all sync.WaitGroup
	for range 110 {
		all.Go(func() {
			pick := f.take(1, 0)
			mu.Lock()
			defer mu.Unlock()
			in[pick.Subnets["a"]]++
		})
	}
	all.Wait()
	if in["subnet-a1"] != 60 || in["subnet-a2"] != 50 {
		t.Errorf("of 110 launches with 100 and 90 addresses free: %v, want 60 and 50", in)
	}
}
