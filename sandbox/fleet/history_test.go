// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"fmt"
	"reflect"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// diary writes a History by hand, a second between two entries unless told otherwise.
type diary struct {
	History
	at      time.Time
	version uint64
}

func (d *diary) note(key string, c change) {
	d.at = d.at.Add(time.Second)
	d.version++
	c.key, c.seen = key, d.at
	if c.version == 0 {
		c.version = d.version
	}
	d.add(c)
}

func (d *diary) pool(budgets ...string) {
	d.note("/general", change{pool: &Pool{Name: "general", Budgets: budgets}})
}

// machine writes a claim and its node; n<i> belongs to c<i>.
func (d *diary) machine(i int) {
	d.note(fmt.Sprint("/c", i), change{claim: &claim{offer: offer{pool: "general"}, nodeName: fmt.Sprint("n", i)}})
	d.note(fmt.Sprint("/n", i), change{node: &node{offer: offer{pool: "general"}, counts: true}})
}

func (d *diary) disrupt(i int) {
	d.note(fmt.Sprint("/n", i), change{node: &node{offer: offer{pool: "general"}, counts: true, removing: d.at}})
}

func (d *diary) terminate(i int) {
	d.note(fmt.Sprint("/c", i), change{claim: &claim{offer: offer{pool: "general"}, nodeName: fmt.Sprint("n", i), removing: d.at, terminating: true}})
}

func (d *diary) remove(i int) {
	d.note(fmt.Sprint("/n", i), change{gone: true, node: &node{offer: offer{pool: "general"}, counts: true, removing: d.at}})
	d.note(fmt.Sprint("/c", i), change{gone: true, claim: &claim{offer: offer{pool: "general"}, nodeName: fmt.Sprint("n", i), removing: d.at, terminating: true}})
}

func (d *diary) pod(name string, p pod) { d.note("default/"+name, change{pod: &p}) }

func newDiary() *diary { return &diary{at: time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)} }

// TestBudgetsHold: ten percent of 12 nodes are two; one whose machine is being
// terminated no longer counts.
func TestBudgetsHold(t *testing.T) {
	for _, c := range []struct {
		name string
		run  func(*diary)
		most int
		want []string
	}{
		{"within", func(d *diary) { d.disrupt(1); d.disrupt(2) }, 2, nil},
		{"beyond", func(d *diary) { d.disrupt(1); d.disrupt(2); d.disrupt(3); d.disrupt(4) }, 4, []string{
			"12:00:28.000: 3 of the 12 nodes of pool general were disrupted at once, its budgets allow 2",
		}},
		{"one terminates", func(d *diary) { d.disrupt(1); d.disrupt(2); d.terminate(1); d.disrupt(3) }, 2, nil},
		{"one is gone", func(d *diary) { d.disrupt(1); d.disrupt(2); d.terminate(2); d.remove(2); d.disrupt(3) }, 2, nil},
		{"the watch of claims is behind", func(d *diary) {
			d.disrupt(1)
			d.disrupt(2)
			d.version += 1 // what terminates here is seen after the next
			early := d.version
			d.disrupt(3)
			d.note("/c1", change{version: early, claim: &claim{offer: offer{pool: "general"}, nodeName: "n1", removing: d.at, terminating: true}})
		}, 2, nil},
		{"the budget is taken away", func(d *diary) { d.pool(); d.disrupt(1); d.disrupt(2); d.disrupt(3) }, 3, nil},
		{"two budgets", func(d *diary) { d.pool("50%", "1"); d.disrupt(1); d.disrupt(2) }, 2, []string{
			"12:00:28.000: 2 of the 12 nodes of pool general were disrupted at once, its budgets allow 1",
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := newDiary()
			d.pool("10%")
			for i := range 12 {
				d.machine(i)
			}
			c.run(d)
			a := d.Between(time.Time{}, d.at)
			if !reflect.DeepEqual(a.Broken, c.want) || a.MostDisrupted != c.most {
				t.Errorf("%d at once; %q, want %d; %q", a.MostDisrupted, a.Broken, c.most, c.want)
			}
		})
	}
}

// TestAccount counts what comes and goes from one moment to another.
func TestAccount(t *testing.T) {
	d := newDiary()
	d.pool("100%")
	d.machine(1)
	d.pod("a", pod{uid: "a", node: "n1"})
	d.pod("b", pod{uid: "b", node: "n1"})
	d.pod("early", pod{uid: "early", target: evictedReason})
	from := d.at.Add(time.Millisecond)
	d.machine(2)
	d.disrupt(1)
	d.pod("a", pod{uid: "a", node: "n1", target: evictedReason})
	d.pod("a", pod{uid: "a", node: "n1", target: evictedReason, stopping: true})
	d.pod("a2", pod{uid: "a2"})
	d.pod("b", pod{uid: "b", node: "n1", target: "DeletionByPodGC"})
	d.pod("b2", pod{uid: "b2"})
	d.pod("a2", pod{uid: "a2", node: "n2"})
	d.pod("b2", pod{uid: "b2", node: "n2"})
	d.pod("early", pod{uid: "early", node: "n2", target: evictedReason})
	d.terminate(1)
	d.remove(1)
	last := d.at
	d.pod("late", pod{uid: types.UID("late")})
	d.at = d.at.Add(time.Minute)
	want := Account{
		Launched: 1, Removed: 1, Evicted: 1, Lost: 1, MostWaiting: 3, LongestWait: time.Minute, MostDisrupted: 1, Allowed: 2, LastChange: last,
	}
	if got := d.Between(from, d.at); !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	if got := d.Between(from, last); got.LongestWait != 11*time.Second-time.Millisecond {
		t.Errorf("longest wait %v", got.LongestWait)
	}
}

func TestAllowed(t *testing.T) {
	for _, c := range []struct {
		budgets []string
		nodes   int
		want    int
	}{
		{nil, 10, NoBudget}, {[]string{"10%"}, 3, 1}, {[]string{"10%"}, 0, 0}, {[]string{"10%"}, 200, 20}, {[]string{"10%"}, 201, 21},
		{[]string{"0%"}, 50, 0}, {[]string{"100%"}, 7, 7}, {[]string{"5", "10%"}, 100, 5}, {[]string{"x"}, 100, 0},
	} {
		if got := allowed(c.budgets, c.nodes); got != c.want {
			t.Errorf("%v of %d: %d, want %d", c.budgets, c.nodes, got, c.want)
		}
	}
}
