// SPDX-License-Identifier: Apache-2.0

package script_test

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"karpenter/sim/script"
)

// small is a script with a line of every kind.
const small = `
seed 17  # a comment
run 30m rest 20m
gates NodeRepair
type m2 cpu=2 mem=8Gi price=0.1 spot=0.03 zones=a,b
pool general limits=nodes:20,cpu:100,mem:400Gi budgets=10%,2:Drifted,0@hourly/10m after=Never policy=WhenEmpty expire=24h grace=90s weight=10 types=m2 zones=a capacity=spot,on-demand label=v1 taint=dedicated
pool fixed static=3
pods web count=12 cpu=0.5 mem=1Gi apart=node pdb=1 protect=10m grace=30s life=2h pool=general tolerates=dedicated
pods agent daemon=true cpu=100m
at 0s scale web 4
at step:500 delete pod web 2
at 12m delete node general
at 15m edit general label=v2 after=1m
at 20m price m2 x3 zone=a capacity=spot
at 22m interrupt 2
at 24m sicken general 1 10m
at 26m poison general 10m
at 26m unready general 10m
at 26m unbound web 10m
at 26m unstarted web 10m
fault conflict from=5m for=10m every=10 call=patch object=NodeClaim
fault crash at=120
fault stale every=2 lag=20s
fault few-types keep=30
`

func parse(t *testing.T, text string) *script.Script {
	t.Helper()
	s, err := script.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestRoundTrip(t *testing.T) {
	texts := []string{small}
	for seed := range uint64(500) {
		texts = append(texts, script.Draw(seed).String())
	}
	for _, text := range texts {
		once := parse(t, text).String()
		if twice := parse(t, once).String(); twice != once {
			t.Fatalf("printed\n%s\nread and printed again\n%s", once, twice)
		}
	}
}

func TestValuesAreCanonical(t *testing.T) {
	got := parse(t, small).String()
	for _, want := range []string{
		"pods web count=12 cpu=500m mem=1Gi apart=node pool=general tolerates=dedicated pdb=1 protect=10m grace=30s life=2h\n",
		"pool general limits=nodes:20,cpu:100,mem:400Gi budgets=10%,2:Drifted,0@hourly/10m policy=WhenEmpty after=Never expire=24h grace=1m30s",
		"at 12m delete node general 1\n",
		"at step:500 delete pod web 2\n",
		"run 30m rest 20m\n",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is not in\n%s", want, got)
		}
	}
}

func TestErrorsSayWhatToDo(t *testing.T) {
	tests := []struct{ line, want string }{
		{"sede 17", `"sede" begins no line; lines begin with seed, run, gates, type, pool, pods, at or fault`},
		{"seed x", "write seed and a number"},
		{"run 30m", "write two durations"},
		{"run 1.5s rest 1m", "write two durations"},
		{"gates A=true", `unknown feature gate "A=true"`},
		{"type m4 cpu=2", "a type needs cpu, mem, price and zones"},
		{"type m2 cpu=1 mem=1Gi price=1 zones=a", "there is a type m2 already"},
		{"type m4 cpu=-2 mem=1Gi price=1 zones=a", "cpu=-2 cannot be read; write a quantity"},
		{"type m4 cpu=2 mem=1Gi price=NaN zones=a", "price=NaN cannot be read; write dollars per hour"},
		{"pool general", "there is a pool general already"},
		{"pool p limit=5", `unknown key "limit=5" in this line; keys are limits, budgets`},
		{"pool p limits=nodes:0", "limits=nodes:0 cannot be read; write nodes:20"},
		{"pool p budgets=200%", "budgets=200% cannot be read"},
		{"pool p types=m9", "pool p names type m9, which no line describes"},
		{"pool p static=2 weight=3", "has neither weight nor limits"},
		{"pods p count=3", "pods need cpu or mem"},
		{"pods p daemon=true count=3 cpu=1", "pods of a daemon have no count"},
		{"pods p cpu=1 pool=nowhere", "pods p name pool nowhere, which no line describes"},
		{"at 10m", "write when and what"},
		{"at soon scale web 4", `invalid moment "soon"; write a duration such as 10m, or step:500`},
		{"at 10m explode", `"explode" is nothing that happens`},
		{"at 10m scale web", "such as scale web 4"},
		{"at 10m scale nobody 3", "scale names pods nobody, which no line describes"},
		{"at 10m delete cluster web", `"cluster" cannot be deleted`},
		{"at 10m delete pool general 2", "leave the number out"},
		{"at 10m edit general label", `unknown key "label" in this line`},
		{"at 10m price m2 3", "such as price m2 x3"},
		{"at 10m sicken general 1", "such as sicken general 1 10m"},
		{"at 10m sicken general 1 0s", "such as sicken general 1 10m"},
		{"at 10m sicken nobody 1 10m", "sicken names pool nobody, which no line describes"},
		{"at 10m poison general", "such as poison general 10m"},
		{"at 10m poison nobody 10m", "poison names pool nobody, which no line describes"},
		{"at 10m interrupt none", `"none" is not a number of at least 1`},
		{"fault flood", "the kind of fault comes first: one of conflict, "},
		{"fault stale", "lag belongs to stale, cloud-lag and freeze, which need it"},
		{"fault crash keep=3", "keep belongs to partial-list and few-types"},
	}
	for _, tt := range tests {
		_, err := script.Parse(strings.TrimSpace(small) + "\n" + tt.line)
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s:\ngot  %v\nwant %s", tt.line, err, tt.want)
		}
	}
	if _, err := script.Parse("sede 1\n\nfault x"); err == nil ||
		!strings.Contains(err.Error(), "line 1: ") || !strings.Contains(err.Error(), "line 3: ") {
		t.Errorf("the lines that are wrong are not both named: %v", err)
	}
	if _, err := script.Parse(""); err == nil || !strings.Contains(err.Error(), "how long to run") || !strings.Contains(err.Error(), "offers nothing") {
		t.Errorf("nothing was taken for a script: %v", err)
	}
}

// TestDrawCovers looks whether seeds draw everything there is to draw.
func TestDrawCovers(t *testing.T) {
	var all strings.Builder
	for seed := range uint64(500) {
		all.WriteString(script.Draw(seed).String())
	}
	if script.Draw(7).String() != script.Draw(7).String() {
		t.Error("one seed gave two scripts")
	}
	for _, line := range strings.Split(strings.TrimSpace(script.Fields()), "\n") {
		f := strings.Fields(line)
		switch f[0] + " " + f[1] {
		case "pool static", "pool types", "pool zones", "pool label", "pods pool", "pods capacity", "pods group", "pods whole", "fault zone", "fault capacity", "fault call":
			continue // in scripts written by hand only
		}
		if !strings.Contains(all.String(), " "+f[1]+"=") {
			t.Errorf("no seed draws %s of %s", f[1], f[0])
		}
	}
	for _, do := range []string{"scale", "delete pod", "delete node", "delete claim", "delete pool", "edit", "price", "interrupt"} {
		if !strings.Contains(all.String(), " "+do+" ") {
			t.Errorf("no seed draws %s", do)
		}
	}
	for _, kind := range []script.Kind{
		script.Conflict, script.Throttle, script.Timeout, script.Lost, script.Gap, script.Stale, script.NoCapacity, script.CloudThrottle,
		script.CloudLost, script.CloudLag, script.PartialList, script.FewTypes, script.NoJoin, script.Crash, script.CrashAfter, script.Leader,
	} {
		if !strings.Contains(all.String(), "fault "+string(kind)) {
			t.Errorf("no seed draws fault %s", kind)
		}
	}
}

func TestFaults(t *testing.T) {
	s := parse(t, `
run 10m rest 1m
type m2 cpu=2 mem=8Gi price=0.1 zones=a
fault crash at=3 call=patch
fault conflict from=2m for=1m times=2 object=Node
fault throttle every=4
`)
	f := script.NewFaults(s, rand.New(rand.NewPCG(1, 1)))
	hit := func(c script.Call, kinds ...script.Kind) bool { return f.Hit(c, kinds...) != nil }
	var crashed []int
	for i := range 6 {
		if hit(script.Call{Verb: "get"}, script.Crash) {
			t.Error("a call that is not selected was hit")
		}
		if hit(script.Call{Verb: "patch"}, script.Crash) {
			crashed = append(crashed, i)
		}
	}
	if !slices.Equal(crashed, []int{2}) {
		t.Errorf("crashed at %v, want the third call only", crashed)
	}
	for _, tt := range []struct {
		since time.Duration
		want  bool
	}{{time.Minute, false}, {2 * time.Minute, true}, {3 * time.Minute, false}, {150 * time.Second, true}, {155 * time.Second, false}} {
		if got := hit(script.Call{Since: tt.since, Object: "Node"}, script.Conflict); got != tt.want {
			t.Errorf("conflict at %s: %v, want %v", tt.since, got, tt.want)
		}
	}
	n := 0
	for range 1000 {
		if hit(script.Call{}, script.Throttle, script.Timeout) {
			n++
		}
	}
	if n < 200 || n > 300 {
		t.Errorf("one call in four was to be hit, %d of 1000 were", n)
	}
	if hit(script.Call{Since: 10 * time.Minute}, script.Throttle) {
		t.Error("a fault hit when the run was over")
	}
}

// TestShrink cuts a long script down to the two lines that matter.
func TestShrink(t *testing.T) {
	asked := 0
	fails := func(s *script.Script) bool {
		asked++
		return slices.ContainsFunc(s.Pods, func(w script.Workload) bool { return w.Count >= 3 && w.PDB == "1" }) &&
			slices.ContainsFunc(s.Faults, func(f script.Fault) bool { return f.Kind == script.Crash })
	}
	got := script.Shrink(parse(t, small), fails, 1000).String()
	want := "seed 0\nrun 30m rest 20m\ntype m2 cpu=2 mem=8Gi price=0.1 zones=a,b\npods web count=3 cpu=500m pdb=1\nfault crash\n"
	if got != want {
		t.Errorf("after %d runs\n%s\nwant\n%s", asked, got, want)
	}
	asked = 0
	script.Shrink(parse(t, small), fails, 20)
	if asked > 20 {
		t.Errorf("%d runs, 20 were allowed", asked)
	}
}

func FuzzParse(f *testing.F) {
	f.Add(small)
	f.Add(script.Draw(3).String())
	f.Fuzz(func(t *testing.T, text string) {
		s, err := script.Parse(text)
		if err != nil {
			return
		}
		printed := s.String()
		again, err := script.Parse(printed)
		if err != nil {
			t.Fatalf("%q was read, its print was not: %v\n%s", text, err, printed)
		}
		if again.String() != printed {
			t.Fatalf("printed\n%s\nthen\n%s", printed, again)
		}
	})
}
