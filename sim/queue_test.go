// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/client-go/util/workqueue"
)

func TestQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue("c", workqueue.NewTypedItemExponentialFailureRateLimiter[string](time.Second, time.Minute))
		got := make(chan string, 1)
		work := func() {
			go func() {
				item, shut := q.Get()
				if shut {
					item = "shut"
				}
				got <- item
			}()
			synctest.Wait()
		}
		q.Add("a")
		if q.ready() != 0 || q.begun() {
			t.Error("an item is ready though none is asked for")
		}
		work()
		q.Add("a")
		q.AddAfter("b", 10*time.Second)
		q.AddAfter("b", 5*time.Second)
		q.AddAfter("a", time.Second)
		if q.ready() != 1 || q.Len() != 2 || q.due() != time.Now().Add(5*time.Second) {
			t.Errorf("%d ready of %d, next %s; want 1 of 2, 5 s", q.ready(), q.Len(), time.Until(q.due()))
		}
		q.hand(0)
		if item := <-got; item != "a" {
			t.Errorf("handed out %s, want a", item)
		}
		work()
		q.Add("a")
		if q.ready() != 0 {
			t.Error("an item is ready while it is worked on")
		}
		q.Done("a")
		if q.ready() != 1 {
			t.Error("an item that came while it was worked on is not ready afterwards")
		}
		time.Sleep(5 * time.Second)
		if q.ready() != 2 {
			t.Error("an item is not ready when its time has come")
		}
		q.hand(0)
		if item := <-got; item != "b" {
			t.Errorf("handed out %s, want b", item)
		}
		q.AddRateLimited("b")
		q.Done("b")
		if q.NumRequeues("b") != 1 || q.due() != time.Now().Add(time.Second) {
			t.Errorf("the first retry is due in %s", time.Until(q.due()))
		}
		work()
		q.ShutDown()
		if item := <-got; item != "shut" || !q.ShuttingDown() {
			t.Errorf("handed out %s at the end", item)
		}
	})
}
