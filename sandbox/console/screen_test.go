package console

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"karpenter/sandbox/fleet"
	"karpenter/sandbox/timeline"
)

// rewrite returns whether pictures in testdata are to be replaced by what is drawn now: go test ./console -rewrite
var rewrite = flag.Bool("rewrite", false, "replace the pictures in testdata")

func noon() time.Time { return time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC) }

// busy is a screen with n machines in all states.
func busy(n int) *Screen {
	s := empty()
	states := []fleet.State{fleet.Ready, fleet.Ready, fleet.Ready, fleet.Booting, fleet.Removing, fleet.NotReady}
	kinds := []string{"c7g.large", "m6gd.metal-48xl", "t3.2xlarge"}
	for i := range n {
		m := fleet.Machine{
			Name: fmt.Sprintf("default-%05d", i), Pool: "default", Type: kinds[i%3], Zone: "us-east-1" + string(rune('a'+i%3)),
			CapacityType: []string{"spot", "on-demand"}[i%2], Price: 0.0183 * float64(i+1), State: states[i%len(states)],
			Since: noon().Add(-time.Duration(i*i) * time.Minute), Pods: i,
			Room: fleet.Amount{MilliCPU: 1930, Memory: 3 << 30}, Used: fleet.Amount{MilliCPU: int64(i * 100 % 1900), Memory: 1 << 30},
		}
		if i == 6 {
			m = fleet.Machine{Name: "default-claim", Pool: "default", State: fleet.Launching, Since: noon()}
		}
		s.View.Machines = append(s.View.Machines, m)
		s.View.Price += m.Price
	}
	s.View.Workloads = []fleet.Workload{{Name: "inflate", Running: 30, Waiting: 20, Starting: 3, Stopping: 2, Finished: 1}}
	for i, e := range []timeline.Entry{
		{Kind: timeline.Pods, Text: "inflate: 50 waiting"},
		{Kind: timeline.Launch, Text: "2 nodes (now 2 at $0.037/h): 2 × c7g.large spot us-east-1c $0.0183/h"},
		{Kind: timeline.Up, Text: "2 nodes (2 of 2): 2 × c7g.large spot us-east-1c $0.0183/h"},
		{Kind: timeline.Warning, Text: "FailedScheduling, pod/web-1 and 9 others: nodepool general: 8184 offerings → 9 after the NodePool's requirements → 0 after limits cpu=80 (80 used)"},
		{Kind: timeline.Trouble, Text: "karpenter died (signal: killed), restarting in 250ms; the end of /tmp/karpenter.log"},
		{Kind: timeline.Down, Text: "1 node: 1 × c7g.large spot us-east-1c $0.0183/h"},
	} {
		s.Happened = append(s.Happened, Stamped{e, noon().Add(time.Duration(i) * time.Second)})
	}
	return s
}

func empty() *Screen {
	return &Screen{
		Title: "karpenter on .cluster, Kubernetes v1.36.4",
		Since: noon().Add(-83 * time.Second),
		Now:   noon(),
		View: fleet.View{Spent: 0.01234, Pools: []fleet.Pool{
			{Name: "default", Ready: true, Usage: corev1.ResourceList{"cpu": resource.MustParse("57500m"), "memory": resource.MustParse("100Gi")},
				Limits: corev1.ResourceList{"cpu": resource.MustParse("1000"), "nodes": resource.MustParse("20")}},
			{Name: "general", Reason: "NodeClass general not found"},
		}},
		Hints: []string{"Try this in a second terminal:", "  kubectl scale deployment inflate --replicas 50", "Ctrl-C stops everything"},
	}
}

// TestRender compares pictures with those in testdata.
func TestRender(t *testing.T) {
	text, ascii, colored := Style{Unicode: true}, Style{}, Style{Unicode: true, Color: true}
	for _, c := range []struct {
		name          string
		screen        *Screen
		width, height int
		style         Style
	}{
		{"empty", empty(), 100, 20, text},
		{"wide", busy(8), 160, 36, text},
		{"usual", busy(8), 100, 30, text},
		{"narrow", busy(8), 70, 30, text},
		{"short", busy(8), 100, 12, text},
		{"by-kind", busy(60), 100, 24, text},
		{"ascii", busy(3), 90, 24, ascii},
		{"color", busy(3), 90, 24, colored},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := Render(c.screen, c.width, c.height, c.style)
			path := filepath.Join("testdata", c.name+".txt")
			if *rewrite {
				if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if got != string(want) {
				t.Errorf("got\n%s\nwant\n%s", got, want)
			}
		})
	}
}

// TestPicturesFit: whatever the size of the terminal, a picture is not larger.
func TestPicturesFit(t *testing.T) {
	for _, machines := range []int{0, 1, 8, 60} {
		screen := empty()
		if machines > 0 {
			screen = busy(machines)
		}
		for width := 1; width < 200; width += 7 {
			for height := 1; height < 60; height += 5 {
				picture := Render(screen, width, height, Style{Unicode: true})
				lines := strings.Split(strings.TrimSuffix(picture, "\n"), "\n")
				if len(lines) > height {
					t.Fatalf("%d machines on %dx%d: %d lines", machines, width, height, len(lines))
				}
				for _, l := range lines {
					if utf8.RuneCountInString(l) > width {
						t.Fatalf("%d machines on %dx%d: too wide: %q", machines, width, height, l)
					}
				}
			}
		}
	}
}

func TestStyleOf(t *testing.T) {
	for _, c := range []struct {
		env  map[string]string
		want Style
	}{
		{map[string]string{}, Style{Color: true}},
		{map[string]string{"LANG": "en_US.UTF-8"}, Style{Color: true, Unicode: true}},
		{map[string]string{"LANG": "en_US.UTF-8", "LC_ALL": "C"}, Style{Color: true}},
		{map[string]string{"LC_CTYPE": "C.utf8", "NO_COLOR": "1"}, Style{Unicode: true}},
	} {
		if got := StyleOf(func(name string) string { return c.env[name] }); got != c.want {
			t.Errorf("%v: %+v, want %+v", c.env, got, c.want)
		}
	}
}
