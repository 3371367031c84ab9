// SPDX-License-Identifier: Apache-2.0

package shortage_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"karpenter/cloud/azure/shortage"
	"karpenter/cloud/azurevm"
)

func d(vCPUs int64) *azurevm.SKU {
	return &azurevm.SKU{Name: "Standard_D_v3", Family: "standardDSv3Family", VCPUs: vCPUs}
}

// TestFamilyShortage covers spec 71/42: a shortage counts for larger sizes of the
// family, in the zone, until it is over.
func TestFamilyShortage(t *testing.T) {
	start := time.Unix(1_700_000_000, 0)
	var log shortage.Log
	short := func(vCPUs int64, zone, capacityType string, after time.Duration) bool {
		return log.Short(d(vCPUs), zone, capacityType, start.Add(after))
	}
	log.Size(d(16), "eastus-1", "on-demand", start.Add(time.Hour), start)
	for _, c := range []struct {
		vCPUs              int64
		zone, capacityType string
		want               bool
	}{
		{16, "eastus-1", "on-demand", true}, {32, "eastus-1", "on-demand", true}, {8, "eastus-1", "on-demand", false},
		{32, "eastus-2", "on-demand", false}, {32, "eastus-1", "spot", false}, {32, "0", "on-demand", false},
	} {
		if got := short(c.vCPUs, c.zone, c.capacityType, 0); got != c.want {
			t.Errorf("%d vCPUs in %s, %s: short %t", c.vCPUs, c.zone, c.capacityType, got)
		}
	}
	if log.Short(&azurevm.SKU{Name: "Standard_E32s_v3", Family: "standardESv3Family", VCPUs: 32}, "eastus-1", "on-demand", start) {
		t.Error("another family is short")
	}
	if !log.Short(&azurevm.SKU{Name: "Standard_D32_v3", Family: "STANDARDDSv3Family", VCPUs: 32}, "eastus-1", "on-demand", start) {
		t.Error("the case of the family counts")
	}
	log.Size(d(8), "eastus-1", "on-demand", start.Add(30*time.Minute), start)
	if !short(8, "eastus-1", "on-demand", time.Minute) || short(4, "eastus-1", "on-demand", time.Minute) {
		t.Error("a shortage of a smaller size does not lower the threshold")
	}
	if short(8, "eastus-1", "on-demand", 30*time.Minute) || !short(16, "eastus-1", "on-demand", 30*time.Minute) {
		t.Error("after the shortage of 8 vCPUs, that of 16 is not what is left")
	}
	if short(64, "eastus-1", "on-demand", time.Hour) {
		t.Error("a shortage lasts longer than it should")
	}
	log.Size(d(16), "eastus-1", "on-demand", start.Add(time.Minute), start)
	if !short(16, "eastus-1", "on-demand", 59*time.Minute) {
		t.Error("a later note cuts a shortage short")
	}
	unknown := &azurevm.SKU{Name: "Standard_Z4", VCPUs: 4}
	log.Size(unknown, "0", "spot", start.Add(time.Hour), start)
	if !log.Short(unknown, "0", "spot", start) || log.Short(&azurevm.SKU{Name: "Standard_Z8", VCPUs: 8}, "0", "spot", start) {
		t.Error("a size without a family is not short alone")
	}
}

// TestSpotShortage: the quota of all spot capacity.
func TestSpotShortage(t *testing.T) {
	start := time.Unix(1_700_000_000, 0)
	var log shortage.Log
	log.Spot(start.Add(time.Hour), start)
	if !log.Short(d(2), "0", "spot", start) || log.Short(d(2), "0", "on-demand", start) {
		t.Error("spot alone is not short")
	}
	if log.Short(d(2), "0", "spot", start.Add(time.Hour)) {
		t.Error("spot is short for longer than it should")
	}
}

// TestSequence draws shortages and looks at random times: whenever an answer
// differs from the one before, the sequence has grown.
func TestSequence(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	for range 200 {
		var log shortage.Log
		now := time.Unix(1_700_000_000, 0)
		answers := func() (out [6]bool) {
			for i, vCPUs := range []int64{2, 8, 32} {
				out[i] = log.Short(d(vCPUs), "eastus-1", "on-demand", now)
				out[3+i] = log.Short(d(vCPUs), "eastus-1", "spot", now)
			}
			return out
		}
		last, sequence := answers(), log.Sequence(now)
		for range 50 {
			until := now.Add(time.Duration(random.IntN(100)) * time.Second)
			switch random.IntN(4) {
			case 0:
				log.Size(d([]int64{2, 8, 32}[random.IntN(3)]), "eastus-1", "on-demand", until, now)
			case 1:
				log.Spot(until, now)
			default:
				now = now.Add(time.Duration(random.IntN(60)) * time.Second)
			}
			next, grown := answers(), log.Sequence(now)
			if next != last && grown == sequence {
				t.Fatalf("answers change from %v to %v at sequence %d", last, next, grown)
			}
			last, sequence = next, grown
		}
		if now = now.Add(time.Hour); answers() != [6]bool{} {
			t.Fatal("something is short for ever")
		}
	}
}
