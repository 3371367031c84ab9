// SPDX-License-Identifier: Apache-2.0

package catalogue_test

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sync/errgroup"

	awsv1 "karpenter/api/aws/v1"
	"karpenter/cloud"
	"karpenter/cloud/aws/shortage"
	"karpenter/model"
)

// mess changes something that types depend on, or nothing.
func mess(t testing.TB, r *rand.Rand, w *world, class *awsv1.EC2NodeClass) {
	name := []string{"m5.large", "c5.large", "m6g.large", "g4dn.xlarge", "m5.metal"}[r.IntN(5)]
	zone := zones()[r.IntN(3)]
	now := w.clock.Now()
	switch r.IntN(16) {
	case 0:
		w.later(time.Duration(r.IntN(200)) * time.Second)
	case 1:
		group := ""
		if r.IntN(2) == 0 {
			group = "pg-1"
		}
		w.shortages.Offering(shortage.Offering{CapacityType: model.Spot, InstanceType: name, Zone: zone, Group: group}, now)
	case 2:
		w.shortages.CapacityType(model.OnDemand, now)
	case 3:
		w.shortages.Subnet("subnet-"+strconv.Itoa(1+r.IntN(3)), now)
	case 4:
		w.memory.Saw(name, "ami-"+strconv.Itoa(r.IntN(3)), int64(1+r.IntN(3))<<31, now)
	case 5:
		class.Status.AMIs = []awsv1.AMI{{ID: "ami-" + strconv.Itoa(r.IntN(3))}}
	case 6:
		w.left["cr-1"] = int64(r.IntN(3))
	case 7:
		class.Status.CapacityReservations = nil
		if r.IntN(3) > 0 {
			class.Status.CapacityReservations = []awsv1.CapacityReservation{{ID: "cr-1", InstanceType: name, AvailabilityZone: zone}}
		}
	case 8:
		w.shifted["use1-az"+strconv.Itoa(1+r.IntN(2))] = r.IntN(2) == 0
	case 9:
		w.region.prices[name] = fmt.Sprint(1 + r.IntN(3))
		_ = w.RefreshPrices(t.Context()) // without metal there is no answer
	case 10:
		w.region.spot[name] = map[string]string{zone: fmt.Sprint(0.5 + float64(r.IntN(3)))}
		_ = w.RefreshPrices(t.Context())
	case 11:
		w.region.sold[name] = zones()[:1+r.IntN(3)]
		_ = w.Refresh(t.Context())
	case 12:
		r.Shuffle(len(class.Status.Subnets), func(i, j int) {
			s := class.Status.Subnets
			s[i], s[j] = s[j], s[i]
		})
	case 13:
		family := []awsv1.AMIFamily{awsv1.AMIFamilyAL2023, awsv1.AMIFamilyBottlerocket, awsv1.AMIFamilyWindows2022}[r.IntN(3)]
		class.Spec.AMIFamily = &family
	case 14:
		w.group = nil
		if r.IntN(2) == 0 {
			w.group = placement(r.IntN(3))
		}
	case 15:
		class.Annotations = map[string]string{awsv1.ConsumableCapacityAnnotationKey: []string{"", "memory", "unlimited", "4"}[r.IntN(4)]}
	}
}

// Whatever has happened before, types are what they would be if they were made
// now, and those that are equal to what they were are the very same.
func TestTypesDoNotDependOnHistory(t *testing.T) {
	for seed := range uint64(6) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 1))
			w := newWorld(t, newRegion(t, "m5.large", "c5.large", "m6g.large", "g4dn.xlarge", "m5.metal"))
			class := plain()
			before, err := w.Types(t.Context(), class)
			if err != nil {
				t.Fatal(err)
			}
			for step := range 150 {
				mess(t, r, w, class)
				got, err := w.Types(t.Context(), class.DeepCopy())
				if err != nil {
					t.Fatal(err)
				}
				fresh := class.DeepCopy()
				fresh.Name = fmt.Sprint("fresh", step)
				want, err := w.Types(t.Context(), fresh)
				if err != nil {
					t.Fatal(err)
				}
				if !reflect.DeepEqual(want, got) {
					t.Fatalf("step %d: %s", step, cmp.Diff(want, got))
				}
				for i, it := range got {
					if was := before[i]; was != it && reflect.DeepEqual(was, it) {
						t.Fatalf("step %d: %s was made anew and is the same", step, it.Name)
					}
				}
				if slices.Equal(before, got) && &before[0] != &got[0] {
					t.Fatalf("step %d: another slice of the same types", step)
				}
				before = got
			}
		})
	}
}

// Many ask while everything changes; in the end all agree.
func TestConcurrently(t *testing.T) {
	w := newWorld(t, newRegion(t, "m5.large", "c5.large", "m6g.large", "g4dn.xlarge", "m5.metal"))
	w.region.prices = map[string]string{"m5.large": "1", "m5.metal": "2"}
	w.region.spot["m5.large"] = map[string]string{zones()[0]: "1"}
	var all errgroup.Group
	for i := range 4 {
		all.Go(func() error {
			for j := range 50 {
				w.shortages.Offering(shortage.Offering{CapacityType: model.Spot, InstanceType: "c5.large", Zone: zones()[j%3]}, w.clock.Now())
				w.memory.Saw("m5.large", "ami-1", int64(1000-j)<<20, w.clock.Now())
				if i == 0 && j%10 == 0 {
					if err := w.RefreshPrices(t.Context()); err != nil {
						return err
					}
					if err := w.Refresh(t.Context()); err != nil {
						return err
					}
				}
				if _, err := w.Types(t.Context(), plain()); err != nil {
					return err
				}
			}
			return nil
		})
	}
	if err := all.Wait(); err != nil {
		t.Fatal(err)
	}
	fresh := plain()
	fresh.Name = "fresh"
	var got [2][]*cloud.InstanceType
	for i, class := range []*awsv1.EC2NodeClass{plain(), fresh} {
		var err error
		if got[i], err = w.Types(t.Context(), class); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff(got[1], got[0]); diff != "" {
		t.Error(diff)
	}
}
