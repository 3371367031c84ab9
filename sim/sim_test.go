// SPDX-License-Identifier: Apache-2.0

package sim_test

import (
	"flag"
	"fmt"
	"os"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	kubescheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kwokv1alpha1 "karpenter/api/kwok/v1alpha1"
	"karpenter/api/scheme"
	v1 "karpenter/api/v1"
	"karpenter/cmd/karpenter/config"
	"karpenter/sim"
	"karpenter/sim/store"
)

var verbose = flag.Bool("transcript", false, "print what happens")

func server(t *testing.T) *store.Server {
	t.Helper()
	s := runtime.NewScheme()
	if err := kubescheme.AddToScheme(s); err != nil {
		t.Fatal(err)
	}
	if err := scheme.AddToScheme(s); err != nil {
		t.Fatal(err)
	}
	out, err := store.NewServer(s)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func objects() []client.Object {
	pool := &v1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: "default"}}
	pool.Spec.Template.Spec.NodeClassRef = &v1.NodeClassReference{Group: kwokv1alpha1.Group, Kind: kwokv1alpha1.Kind, Name: "default"}
	pool.Spec.Template.Spec.Requirements = []v1.NodeSelectorRequirementWithMinValues{}
	return []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "default"}},
		&kwokv1alpha1.KWOKNodeClass{ObjectMeta: metav1.ObjectMeta{Name: "default"}},
		pool,
	}
}

// setup is a cluster without pods.
func setup(t *testing.T, seed uint64) sim.Setup {
	t.Helper()
	s := sim.Setup{
		Seed: seed, Server: server(t), Config: config.Default(), Objects: objects(),
		Lasts: 10 * time.Minute, MostSteps: 10000,
	}
	if *verbose {
		s.Transcript = os.Stdout
	}
	return s
}

// quiet is the law that nothing is written after a while.
type quiet struct{ sim.Law }

func (quiet) Name() string            { return "quiet" }
func (quiet) Check(s *sim.Seen) error { return nil }

func (quiet) End(s *sim.Seen) error {
	if after := s.Quiet.Sub(s.Started); after == 0 || after > time.Minute {
		return fmt.Errorf("the last write was after %s", after)
	}
	return nil
}

func TestNothingToDoComesToRest(t *testing.T) {
	for seed := range uint64(5) {
		s := setup(t, seed)
		s.Laws = func(*sim.Run) []sim.Law { return []sim.Law{quiet{}} }
		r := sim.Play(t, s)
		if r.Err != nil || r.Lasted != s.Lasts {
			t.Errorf("seed %d: %+v", seed, r)
		}
	}
}

func TestSameSeedSameRun(t *testing.T) {
	seen := map[uint64]uint64{}
	for seed := range uint64(5) {
		first, second := sim.Play(t, setup(t, seed)), sim.Play(t, setup(t, seed))
		if first != second {
			t.Errorf("seed %d: %+v, then %+v", seed, first, second)
		}
		seen[first.Hash] = seed
	}
	if len(seen) < 5 {
		t.Errorf("%d different runs of 5 seeds", len(seen))
	}
}
