// SPDX-License-Identifier: Apache-2.0

package differential

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/version"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/component-helpers/nodedeclaredfeatures"
	"k8s.io/component-helpers/nodedeclaredfeatures/types"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	_ "k8s.io/kubernetes/pkg/apis/lifecycle/install" // its validation
	_ "k8s.io/kubernetes/pkg/features"               // the gates of kubelets

	"karpenter/control/termination"
	"karpenter/kube/kubelets"
)

// TestKubeletFeatures: what is predicted of a kubelet's declared features is what the library
// of kubelets says with the default gates of the version. spec 46/130.
func TestKubeletFeatures(t *testing.T) {
	for minor := uint(34); minor <= 37; minor++ {
		v := version.MajorMinor(1, minor)
		gates := utilfeature.DefaultMutableFeatureGate.DeepCopyAndReset() // other tests of the package set gates
		if err := gates.SetEmulationVersion(v); err != nil {
			t.Fatal(err)
		}
		enabled := types.FeatureGateMap{}
		for name := range gates.GetAll() {
			enabled[string(name)] = gates.Enabled(name)
		}
		declared := map[string]bool{}
		for _, name := range nodedeclaredfeatures.DefaultFramework.DiscoverNodeFeatures(&types.NodeConfiguration{FeatureGates: enabled, Version: v}) {
			declared[name] = true
		}
		predicted := kubelets.Kubelet{Versions: []string{v.String()}}.Features()
		for name, will := range predicted {
			if declared[name] != will {
				t.Errorf("%s of kubelet %s: predicted %t, declared %t", name, v, will, declared[name])
			}
		}
		if len(predicted) < 3 {
			t.Errorf("only %v is predicted of kubelet %s", predicted, v)
		}
	}
}

// TestEvictionRequests: the API server accepts our EvictionRequests. spec 46/140.
func TestEvictionRequests(t *testing.T) {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web-0", UID: "8f3c2a54-6c1d-4a52-9f29-3c1d2b8c7e11"}}
	request := termination.RequestFor(pod)
	if errs := legacyscheme.Scheme.Validate(t.Context(), nil, request); len(errs) > 0 {
		t.Error(errs)
	}
	request.Spec.Requester = "node.k8s.io/drain"
	if errs := legacyscheme.Scheme.Validate(t.Context(), nil, request); len(errs) == 0 {
		t.Error("a reserved requester is accepted: nothing is validated")
	}
}
