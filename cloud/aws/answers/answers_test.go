// SPDX-License-Identifier: Apache-2.0

package answers_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	clocktesting "k8s.io/utils/clock/testing"

	"karpenter/cloud/aws/answers"
)

func TestRemembersForAWhile(t *testing.T) {
	clock := clocktesting.NewFakePassiveClock(time.Unix(0, 0))
	cache := answers.New[string, int](clock, time.Minute)
	calls := 0
	get := func(fail error) (int, error) {
		return cache.Get(t.Context(), "q", func(context.Context) (int, error) {
			calls++
			return calls, fail
		})
	}
	want := func(name string, value, made int) {
		t.Helper()
		if got, err := get(nil); err != nil || got != value || calls != made {
			t.Errorf("%s: answer %d (%v) after %d calls, want %d after %d", name, got, err, calls, value, made)
		}
	}
	want("first", 1, 1)
	clock.SetTime(time.Unix(59, 0))
	want("within the time", 1, 1)
	clock.SetTime(time.Unix(60, 0))
	want("after it", 2, 2)
	cache.Forget("q")
	if _, err := get(errors.New("down")); err == nil {
		t.Error("the failure is not told")
	}
	want("after a failure", 4, 4)
	cache.Put("q", 9)
	want("put", 9, 4)
}

// TestAsksOnce: of many who ask at the same time one does, and those who wait
// are not harmed when that one gives up.
func TestAsksOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cache := answers.New[string, int](clocktesting.NewFakePassiveClock(time.Unix(0, 0)), time.Minute)
		calls, release := 0, make(chan struct{})
		ask := func(ctx context.Context) (int, error) {
			calls++
			select {
			case <-release:
				return 7, nil
			case <-ctx.Done():
				return 0, ctx.Err()
			}
		}
		impatient, giveUp := context.WithCancel(t.Context())
		var all sync.WaitGroup
		all.Go(func() {
			if _, err := cache.Get(impatient, "q", ask); !errors.Is(err, context.Canceled) {
				t.Errorf("gave up, but %v", err)
			}
		})
		synctest.Wait()
		for range 10 {
			all.Go(func() {
				if got, err := cache.Get(t.Context(), "q", ask); got != 7 || err != nil {
					t.Errorf("answer %d, %v", got, err)
				}
			})
		}
		synctest.Wait()
		giveUp()
		synctest.Wait()
		close(release)
		all.Wait()
		if calls != 2 {
			t.Errorf("asked %d times, want once by the one who gave up and once for the ten", calls)
		}
	})
}
