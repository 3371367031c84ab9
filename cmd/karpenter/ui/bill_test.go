// SPDX-License-Identifier: Apache-2.0

package ui

import (
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

var (
	seeds = flag.Int("seeds", 30, "how many random bills are checked")
	first = flag.Uint64("first", 0, "seed of the first; 0 = a fresh one")
)

// biller adds up what a bill must have, one pod after the other and in floating-point
// numbers, with nothing of the code under test.
type biller struct {
	total, idle                             float64
	namespaces, teams, pools, capacityTypes map[string]float64
}

// random returns a Moment and what its bill must be.
func random(t *testing.T, r *rand.Rand) (Moment, biller) {
	t.Helper()
	b := biller{namespaces: map[string]float64{}, teams: map[string]float64{}, pools: map[string]float64{}, capacityTypes: map[string]float64{}}
	var text strings.Builder
	text.WriteString("type t cpu=4 mem=16Gi pods=58 gpu=2 zones=a spot=0.1 on-demand=0.2\npool p0\npool p1\npool p2\n")
	var pods []*corev1.Pod
	for n := range 1 + r.IntN(12) {
		cpu, memory, gpus := 1+r.IntN(64), 1+r.IntN(256), r.IntN(2)*r.IntN(9)
		price := float64(r.IntN(9_999_999_999)) / 1e9
		pool, capacityType := fmt.Sprintf("p%d", r.IntN(3)), []string{"spot", "on-demand"}[r.IntN(2)]
		fmt.Fprintf(&text, "node n%d pool=%s type=t zone=a ct=%s cpu=%d mem=%dGi gpu=%d pods=110 price=%.9f\n", n, pool, capacityType, cpu, memory, gpus, price)
		if price == 0 {
			continue
		}
		b.total += price
		b.pools[pool] += price
		b.capacityTypes[capacityType] += price
		worth := [3]float64{float64(cpu) * 0.031611, float64(memory) * 0.004237, float64(gpus) * 0.95}
		all := worth[0] + worth[1] + worth[2]
		has := [3]float64{float64(cpu), float64(memory), float64(gpus)}
		type asked struct {
			namespace, team string
			of              [3]float64
		}
		var here []asked
		var sum [3]float64
		for range r.IntN(12) {
			a := asked{fmt.Sprintf("ns%d", r.IntN(4)), []string{"", "red", "blue"}[r.IntN(3)], [3]float64{float64(r.IntN(4000)) / 1000, float64(r.IntN(8)), float64(r.IntN(gpus + 1))}}
			p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: a.namespace, Name: fmt.Sprintf("pod-%d", len(pods)), Labels: map[string]string{}}}
			if a.team != "" {
				p.Labels["team"] = a.team
			}
			p.Spec.NodeName = fmt.Sprintf("n%d", n)
			p.Spec.Containers = []corev1.Container{{Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{
				"cpu": resource.MustParse(fmt.Sprintf("%dm", int(math.Round(1000*a.of[0])))), "memory": resource.MustParse(fmt.Sprintf("%dGi", int(a.of[1]))), "nvidia.com/gpu": resource.MustParse(fmt.Sprint(a.of[2])),
			}}}}
			pods = append(pods, p)
			if r.IntN(8) == 0 { // it has ended, and pays nothing
				p.Status.Phase = corev1.PodSucceeded
				continue
			}
			here = append(here, a)
			for i := range sum {
				sum[i] += a.of[i]
			}
		}
		used := 0.0
		for _, a := range here {
			pays := 0.0
			for i := range a.of {
				if of := math.Max(sum[i], has[i]); of > 0 {
					pays += price * worth[i] / all * a.of[i] / of
				}
			}
			used += pays
			b.namespaces[a.namespace] += pays
			if a.team == "" {
				a.team = "(no label)"
			}
			b.teams[a.team] += pays
		}
		b.idle += price - used
	}
	text.WriteString("decide now=2026-01-01T12:00:00Z\n")
	m := moment(t, text.String())
	m.Pods = append([]*corev1.Pod{}, pods...)
	return m, b
}

// TestBillAgreesWithAnIndependentBiller: on random situations, every table of the bill
// adds up to the total to the cent, and every row is what another program finds, to the
// cent.
func TestBillAgreesWithAnIndependentBiller(t *testing.T) {
	from := *first
	if from == 0 {
		from = rand.Uint64()
	}
	for i := range uint64(*seeds) {
		seed := from + i
		m, want := random(t, rand.New(rand.NewPCG(seed, 1)))
		got := (&state{Moment: m}).bill("team")
		bad := func(format string, args ...any) {
			t.Errorf("seed %d (-args -seeds=1 -first=%d): %s", seed, seed, fmt.Sprintf(format, args...))
		}
		cents := func(dollars float64) int64 { return int64(math.Round(100 * dollars)) }
		if math.Abs(got.CostPerHour-want.total) > 1e-6 || math.Abs(got.IdlePerHour-want.idle) > 1e-6 || cents(got.CostPerMonth) != cents(want.total*730) {
			bad("total %v and idle %v, want %v and %v", got.CostPerHour, got.IdlePerHour, want.total, want.idle)
		}
		for name, c := range map[string]struct {
			rows []Charge
			want map[string]float64
			idle bool
		}{
			"namespace": {got.ByNamespace, want.namespaces, true}, "label": {got.ByLabel, want.teams, true},
			"NodePool": {got.ByNodePool, want.pools, false}, "capacity type": {got.ByCapacityType, want.capacityTypes, false},
		} {
			sum, perHour := int64(0), 0.0
			for _, row := range c.rows {
				sum += cents(row.CostPerMonth)
				perHour += row.CostPerHour
				expect := c.want[row.Name]
				if row.Name == "" {
					expect = want.idle
				}
				if math.Abs(row.CostPerMonth-expect*730) > 0.0101 || math.Abs(row.UsedPerHour+row.IdlePerHour-row.CostPerHour) > 1e-9 {
					bad("%s %q costs %v a month, want %v", name, row.Name, row.CostPerMonth, expect*730)
				}
			}
			if sum != cents(got.CostPerMonth) || math.Abs(perHour-got.CostPerHour) > 1e-6 {
				bad("the rows by %s add up to %d cents, want %v dollars", name, sum, got.CostPerMonth)
			}
		}
	}
	t.Logf("%d bills from seed %d", *seeds, from)
}
