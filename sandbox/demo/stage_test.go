// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"karpenter/sandbox/fleet"
)

// film is a source that shows its views one after the other, a second each.
type film struct {
	views []fleet.View
	began time.Time
}

func (f *film) View() fleet.View {
	return f.views[min(int(time.Since(f.began)/time.Second), len(f.views)-1)]
}

func (f *film) Changed() <-chan struct{} {
	changed := make(chan struct{})
	next := time.Second - time.Since(f.began)%time.Second
	time.AfterFunc(next, func() { close(changed) })
	return changed
}

func waiting(n int, refused string) fleet.View {
	w := fleet.Workload{Name: "web", Waiting: n, Refused: map[string]int{}}
	if refused != "" {
		w.Refused[refused] = n
	}
	return fleet.View{Workloads: []fleet.Workload{w}}
}

func runs(n int) fleet.View {
	return fleet.View{
		Price: 0.1, Workloads: []fleet.Workload{{Name: "web", Running: n}},
		Machines: []fleet.Machine{{Name: "c1", Type: "m5.large", State: fleet.Ready, Price: 0.1}},
		Bought:   []fleet.Purchase{{Type: "m5.large", Price: 0.1, Count: 1}},
	}
}

func overLimit() fleet.View {
	v := runs(3)
	v.Pools = []fleet.Pool{{
		Name: "general", Ready: true, Limits: corev1.ResourceList{"cpu": resource.MustParse("4")},
		Peak: corev1.ResourceList{"cpu": resource.MustParse("4100m")},
	}}
	return v
}

// TestRun plays one step on a film, in simulated time.
func TestRun(t *testing.T) {
	for _, c := range []struct {
		name   string
		views  []fleet.View
		within time.Duration
		err    string // "" = none
		out    string
		// crashes of the controller
		crashes int
	}{
		{
			"comes about", []fleet.View{{}, waiting(3, ""), runs(3)}, time.Minute, "",
			"+0.0s  == scale up\n" +
				"    +0.0s  now  0 of 0 nodes ready, $0.000/h; pods: none\n" +
				"    +1.0s  now  0 of 0 nodes ready, $0.000/h; pods: 3 waiting\n" +
				"    +2.0s  now  1 of 1 nodes ready, $0.100/h; pods: 3 running\n" +
				"    +2.0s  done all 3 pods running, after 2.0s\n", 1,
		},
		{
			"too late", []fleet.View{waiting(3, "no pool")}, 5 * time.Second,
			"scale up: not within 5s: all 3 pods running: 0 of 3 pods of web run, 0 start, 3 wait; the autoscaler says: no pool",
			"+0.0s  == scale up\n    +0.0s  now  0 of 0 nodes ready, $0.000/h; pods: 3 waiting\n", 0,
		},
		{
			"over a limit", []fleet.View{{}, overLimit()}, time.Minute,
			"scale up: all 3 pods running: pool general went over its limit: 4100m cpu, allowed are 4", "", 0,
		},
		{
			"controller keeps dying", []fleet.View{waiting(3, "")}, time.Minute,
			"scale up: all 3 pods running: the controller has died 4 times; 0 of 3 pods of web run, 0 start, 3 wait", "", 4,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var out bytes.Buffer
				st := &stage{out: &out, settle: 200 * time.Millisecond, source: &film{c.views, time.Now()}, began: time.Now(), crashes: func() int { return c.crashes }}
				err := st.run(t.Context(), 0, &step{"scale up", nil, []want{{"all 3 pods running", c.within, running("web", 3)}}})
				if got := fmt.Sprint(err); c.err != "" && got != c.err || c.err == "" && err != nil {
					t.Errorf("error %q, want %q", got, c.err)
				}
				if got := strings.TrimLeft(out.String(), " "); c.out != "" && got != c.out {
					t.Errorf("told\n%s\nwant\n%s", got, c.out)
				}
			})
		})
	}
}

func TestInterruptedDemoReportsIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(3*time.Second, cancel)
		st := &stage{out: &bytes.Buffer{}, settle: time.Second, source: &film{[]fleet.View{{}}, time.Now()}, began: time.Now(), crashes: func() int { return 0 }}
		err := st.run(ctx, 0, &step{"scale up", nil, []want{{"pods", time.Minute, running("web", 3)}}})
		if err == nil || !strings.Contains(err.Error(), "interrupted while waiting: 0 of 3") {
			t.Errorf("error %v", err)
		}
	})
}

func TestFailedActionEndsTheStep(t *testing.T) {
	st := &stage{out: &bytes.Buffer{}, source: &film{[]fleet.View{{}}, time.Now()}}
	broken := errors.New("broken")
	err := st.run(t.Context(), 0, &step{name: "scale up", do: all(func(context.Context, *stage) error { return broken })})
	if !errors.Is(err, broken) || !strings.HasPrefix(err.Error(), "scale up: ") {
		t.Errorf("error %v", err)
	}
}

// TestDemoPoolAtLimit: the limit holds only if pods run, pods wait, and the event of each
// pod that waits names this limit.
func TestDemoPoolAtLimit(t *testing.T) {
	const limits = "nodepool general: 9 offerings → 0 after limits cpu=80 (80 used); nodepool runners: 9 offerings → 0 after taint"
	web := func(w fleet.Workload) *fleet.View {
		w.Name = "web"
		return &fleet.View{Workloads: []fleet.Workload{w}}
	}
	for _, c := range []struct {
		view *fleet.View
		pool string
		want string
	}{
		{web(fleet.Workload{Running: 4, Waiting: 2, Refused: map[string]int{limits: 2}}), "general", ""},
		{web(fleet.Workload{Running: 4, Waiting: 2, Refused: map[string]int{limits: 2}}), "runners", "0 of the 2 waiting pods"},
		{web(fleet.Workload{Running: 4, Waiting: 2, Refused: map[string]int{limits: 1}}), "general", "1 of the 2 waiting pods"},
		{web(fleet.Workload{Running: 6}), "general", "did not hold"},
		{web(fleet.Workload{Waiting: 6, Refused: map[string]int{limits: 6}}), "general", "0 of 6 pods of web run"},
		{web(fleet.Workload{Running: 1, Starting: 1, Waiting: 4}), "general", "1 of 6 pods of web run"},
		{web(fleet.Workload{Running: 1}), "general", "has 1 of 6 pods"},
	} {
		got := full("web", 6, c.pool)(c.view)
		if c.want == "" && got != "" || !strings.Contains(got, c.want) {
			t.Errorf("%+v, pool %s: %q, want %q", c.view.Workloads[0], c.pool, got, c.want)
		}
	}
}

func TestSummary(t *testing.T) {
	view := overLimit()
	view.PeakPrice, view.Spent = 0.2, 0.01
	var out bytes.Buffer
	writeSummary(&out, []result{
		{0, "scale up", "all running", 4 * time.Second}, {0, "scale up", "last node launched", 2 * time.Second}, {1, "scale down", "all gone", time.Second},
	}, &view)
	want := `
summary
  scale up
        2.0s  last node launched
        4.0s  all running
  scale down
        1.0s  all gone
  nodes launched
           1  m5.large  at $0.1000/h
    at most $0.200/h at a time, $0.0100 spent
  pool general never had more than
       4100m  cpu, its limit is 4
`
	if out.String() != want {
		t.Errorf("got\n%s\nwant\n%s", out.String(), want)
	}
}

func TestFreshFolder(t *testing.T) {
	used := t.TempDir()
	if err := os.Mkdir(filepath.Join(used, "etcd"), 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := freshFolder(&used); err == nil || !strings.Contains(err.Error(), "holds a cluster already") {
		t.Errorf("a used folder: %v", err)
	}
	made := ""
	remove, err := freshFolder(&made)
	if err != nil {
		t.Fatal(err)
	}
	if err := remove(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(made); !os.IsNotExist(err) {
		t.Errorf("%s is still there: %v", made, err)
	}
}

// TestStressTable: twenty deployments, whose pods each fit an instance.
func TestStressTable(t *testing.T) {
	all := sizes()
	if len(all) != 20 {
		t.Errorf("%d deployments, want 20", len(all))
	}
	pods := 0
	for i, size := range all {
		d := deployment(deploymentName(i), size, 1)
		pods += int(*d.Spec.Replicas)
		if cpu := d.Spec.Template.Spec.Containers[0].Resources.Requests.Cpu(); cpu.MilliValue() < 50 || cpu.Value() > 4 {
			t.Errorf("deployment %s asks for %s CPU", d.Name, cpu)
		}
	}
	if pods != 20 {
		t.Errorf("%d pods", pods)
	}
}
