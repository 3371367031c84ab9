// SPDX-License-Identifier: Apache-2.0

package wiring

import (
	"context"
	"testing"

	v1 "karpenter/api/v1"
	"karpenter/cloud"
	"karpenter/kube/events/eventstest"
)

// TestFeaturesOfKubelets: gates of the NodePool count more than those of its node class, and
// those more than the version. spec 46/130.
func TestFeaturesOfKubelets(t *testing.T) {
	const restart = "RestartAllContainersOnContainerExits"
	for _, c := range []struct {
		version, class, pool string
		on, known            bool
		events               int
	}{
		{"1.36", "", "", true, true, 0},
		{"1.36", restart + "=false", "", false, true, 0},
		{"1.36", restart + "=false", restart + "=true", true, true, 0},
		{"", "", "", false, false, 0},
		{"1.35", "", "nonsense", false, true, 1},
	} {
		recorder := &eventstest.Recorder{}
		w := &wiring{recorder: recorder, provider: Provider{Kubelet: func(context.Context, *v1.NodePool) (cloud.Kubelet, error) {
			return cloud.Kubelet{Versions: []string{c.version}, Gates: c.class}, nil
		}}}
		pool := &v1.NodePool{}
		pool.Annotations = map[string]string{v1.KubeletFeatureGatesAnnotationKey: c.pool}
		features, err := w.features(t.Context(), pool)
		if err != nil {
			t.Fatal(err)
		}
		if on, known := features[restart]; on != c.on || known != c.known || len(recorder.Events()) != c.events {
			t.Errorf("%+v: %t, known %t; events %v", c, on, known, recorder.Events())
		}
	}
}
