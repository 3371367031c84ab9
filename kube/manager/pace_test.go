// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"testing"
	"time"
)

func TestCores(t *testing.T) {
	for _, tc := range []struct{ millicores, want int }{{-1, 1}, {0, 1}, {1, 1}, {1000, 1}, {1001, 2}, {60000, 60}} {
		if got := Cores(tc.millicores); got != tc.want {
			t.Errorf("Cores(%d) = %d, want %d", tc.millicores, got, tc.want)
		}
	}
}

// spec 50/8: parallelism from 10 to 1000 by millicores.
func TestParallel(t *testing.T) {
	for _, tc := range []struct{ millicores, want int }{{500, 10}, {1000, 10}, {1500, 26}, {15000, 244}, {60000, 1000}, {100000, 1000}} {
		if got := Parallel(Cores(tc.millicores), 10, 1000); got != tc.want {
			t.Errorf("Parallel of %dm = %d, want %d", tc.millicores, got, tc.want)
		}
	}
}

// spec 50/8: rate and burst in proportion to the parallelism.
func TestBucket(t *testing.T) {
	for _, tc := range []struct{ leastQPS, least, workers, qps, burst int }{
		{10, 10, 10, 10, 100},
		{10, 10, 20, 20, 200},
		{10, 100, 100, 10, 100},
		{10, 100, 200, 20, 200},
		{25, 100, 150, 38, 380},
	} {
		if qps, burst := Bucket(tc.leastQPS, tc.least, tc.workers); qps != tc.qps || burst != tc.burst {
			t.Errorf("Bucket(%d, %d, %d) = %d, %d, want %d, %d", tc.leastQPS, tc.least, tc.workers, qps, burst, tc.qps, tc.burst)
		}
	}
}

func TestLimiterPacesItemsAndAllTogether(t *testing.T) {
	items := Limiter[string](Backoff{First: time.Second, Most: 3 * time.Second}, 1000, 1000)
	for i, want := range []time.Duration{time.Second, 2 * time.Second, 3 * time.Second, 3 * time.Second} {
		if got := items.When("a"); got != want {
			t.Errorf("retry %d is after %v, want %v", i+1, got, want)
		}
	}
	together := Limiter[int](Backoff{First: time.Nanosecond, Most: time.Nanosecond}, 1, 2)
	together.When(1)
	together.When(2)
	if got := together.When(3); got < 900*time.Millisecond {
		t.Errorf("the third item within a burst of two comes after %v, want about a second", got)
	}
}
