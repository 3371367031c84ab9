// SPDX-License-Identifier: Apache-2.0

package kubelets

import (
	"maps"
	"testing"
)

// TestDeclaredFeaturesOfNewKubelets: the version of the kubelet and the gates that are set say
// what a new node declares. spec 46/130.
func TestDeclaredFeaturesOfNewKubelets(t *testing.T) {
	const restart, users = "RestartAllContainersOnContainerExits", "UserNamespacesHostNetworkSupport"
	for _, c := range []struct {
		kubelet Kubelet
		restart string // on, off or unknown
		users   string
	}{
		{Kubelet{}, "unknown", "unknown"},
		{Kubelet{Versions: []string{"1.35"}}, "off", "off"},
		{Kubelet{Versions: []string{"1.36"}}, "on", "off"},
		{Kubelet{Versions: []string{"v1.36.4-eks-1"}}, "on", "off"},
		{Kubelet{Versions: []string{"1.38"}}, "on", "unknown"}, // its defaults are not known
		{Kubelet{Versions: []string{"1.37.12"}}, "on", "off"},
		{Kubelet{Versions: []string{"my image"}}, "unknown", "unknown"},
		{Kubelet{Versions: []string{"1.36", "1.37"}}, "on", "off"},
		{Kubelet{Versions: []string{"1.35", "1.36"}}, "unknown", "off"},
		{Kubelet{Versions: []string{"1.36", ""}}, "unknown", "unknown"},
		{Kubelet{Versions: []string{"1.36"}, Gates: map[string]bool{restart: false}}, "off", "off"},
		{Kubelet{Versions: []string{"1.35"}, Gates: map[string]bool{restart: true}}, "on", "off"},
		{Kubelet{Gates: map[string]bool{restart: false}}, "off", "unknown"},
		{Kubelet{Versions: []string{"1.36"}, Gates: map[string]bool{users: true}}, "on", "unknown"}, // the runtime may not have it
	} {
		got := c.kubelet.Features()
		for name, want := range map[string]string{restart: c.restart, users: c.users} {
			on, known := got[name]
			is := map[bool]string{true: "on", false: "off"}[on]
			if !known {
				is = "unknown"
			}
			if is != want {
				t.Errorf("%+v: %s is %s, want %s", c.kubelet, name, is, want)
			}
		}
	}
}

func TestParseGates(t *testing.T) {
	got, err := ParseGates(" A=true, B=false,,C=1")
	if want := map[string]bool{"A": true, "B": false, "C": true}; err != nil || !maps.Equal(got, want) {
		t.Errorf("%v, %v", got, err)
	}
	for _, text := range []string{"A", "A=", "A=maybe", "A=true;B=false"} {
		if _, err := ParseGates(text); err == nil {
			t.Errorf("%q is read", text)
		}
	}
}
