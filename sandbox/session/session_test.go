// SPDX-License-Identifier: Apache-2.0

package session

import (
	"flag"
	"io"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"karpenter/sandbox/fleet"
)

func script(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "karpenter")
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+text), 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestCatalogueIsWhatTheControllerPrints(t *testing.T) {
	path := filepath.Join(t.TempDir(), "types.json")
	if err := writeCatalogue(t.Context(), script(t, `echo "$@"`), "eu-west-1", path); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(path)
	if want := "instance-types --catalogue ec2 --region eu-west-1\n"; err != nil || string(text) != want {
		t.Errorf("catalogue %q, %v; want %q", text, err, want)
	}
	err = writeCatalogue(t.Context(), script(t, `echo "no such region" >&2; exit 3`), "mars", path)
	if err == nil || !strings.Contains(err.Error(), "no such region") || !strings.Contains(err.Error(), "--region mars") {
		t.Errorf("a refusal: %v", err)
	}
	if again, err := os.ReadFile(path); err != nil || string(again) != string(text) {
		t.Errorf("a refusal changed the file to %q, %v", again, err)
	}
}

// TestMistakesAreFoundEarly: before a cluster is started.
func TestMistakesAreFoundEarly(t *testing.T) {
	controller, empty := script(t, ""), t.TempDir()
	for _, c := range []struct {
		name    string
		options Options
		want    string
	}{
		{"no controller", Options{}, "--controller"},
		{"no such controller", Options{Controller: "nowhere/karpenter"}, "go build -o nowhere/karpenter"},
		{"a folder as controller", Options{Controller: empty}, "no executable"},
		{"no CRDs", Options{Controller: controller, Provider: KWOK, CRDs: empty}, "no manifests"},
		{"no manifests", Options{Controller: controller, Provider: KWOK, CRDs: "../../api/crds", Manifests: []string{"nowhere"}}, "nowhere"},
		{"no such provider", Options{Controller: controller, Provider: "gcp"}, "there are aws, azure and kwok"},
		{"no modes", Options{Controller: controller, Provider: KWOK, ProvisionMode: VMMode}, "only --provider azure"},
		{"no such mode", Options{Controller: controller, Provider: Azure, ProvisionMode: "vm"}, "there are aksmachineapi, aksmachineapiheaderbatch, aksscriptless"},
		{"no simulated AWS", Options{Controller: controller}, "awssim ./cmd/awssim"},
		{"no Helm", Options{Controller: controller, Provider: KWOK, Helm: "nowhere/helm"}, "go build -o nowhere/helm helm.sh/helm"},
		{"no folder", Options{Controller: controller, Provider: KWOK, CRDs: "../../api/crds"}, "--data"},
	} {
		s, err := Start(t.Context(), c.options)
		if err == nil {
			_ = s.Stop()
		}
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
	}
}

func TestFlags(t *testing.T) {
	var o Options
	flags := flag.NewFlagSet("run", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	o.AddFlags(flags)
	err := flags.Parse([]string{"--controller", "c", "--manifests", "a,b", "--manifests", "d", "--region", "r"})
	if err != nil || o.Controller != "c" || o.Region != "r" || strings.Join(o.Manifests, " ") != "a b d" || o.CRDs != "api/crds" || o.Provider != AWS {
		t.Errorf("%+v, %v", o, err)
	}
}

func TestPortsAreFreeAndTwo(t *testing.T) {
	found, err := freePorts()
	if err != nil || found.health == found.metrics || found.health == 0 || found.metrics == 0 {
		t.Errorf("%+v, %v", found, err)
	}
}

func TestPricesAreRead(t *testing.T) {
	prices, err := parsePrices(strings.NewReader("m5.large us-east-1a spot 0.04\nm5.large us-east-1a on-demand 0.096\n"))
	if err != nil || len(prices) != 2 || prices[fleet.Offering{Type: "m5.large", Zone: "us-east-1a", CapacityType: "spot"}] != 0.04 {
		t.Errorf("%v, %v", prices, err)
	}
	if _, err := parsePrices(strings.NewReader("m5.large us-east-1a spot\n")); err == nil || !strings.Contains(err.Error(), "m5.large us-east-1a spot") {
		t.Errorf("half a line: %v", err)
	}
}

func TestRealCloudsAreOutOfReach(t *testing.T) {
	got := strings.Join(withoutClouds([]string{"PATH=/bin", "AWS_PROFILE=production", "ARM_CLOUD=AzureChinaCloud", "AZURE_CLIENT_ID=production", "AWS_FEATURE_GATES=NodeClassCEL=true"}), " ")
	if want := "PATH=/bin AWS_FEATURE_GATES=NodeClassCEL=true"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// TestVariables: the variables of the chart's container are evaluated as by the
// kubelet.
func TestVariables(t *testing.T) {
	container := &corev1.Container{Resources: corev1.ResourceRequirements{
		Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1500m")},
		Limits:   corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("1Gi")},
	}}
	of := func(name, divisor string) *corev1.EnvVarSource {
		return &corev1.EnvVarSource{ResourceFieldRef: &corev1.ResourceFieldSelector{Resource: name, Divisor: resource.MustParse(divisor)}}
	}
	field := func(path string) *corev1.EnvVarSource {
		return &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: path}}
	}
	for _, c := range []struct {
		v    corev1.EnvVar
		want string // "": rejected
	}{
		{corev1.EnvVar{Name: "A", Value: "b"}, "b"},
		{corev1.EnvVar{Name: "A", ValueFrom: field("metadata.namespace")}, "kube-system"},
		{corev1.EnvVar{Name: "A", ValueFrom: field("status.podIP")}, ""},
		{corev1.EnvVar{Name: "A", ValueFrom: of("requests.cpu", "1m")}, "1500"},
		{corev1.EnvVar{Name: "A", ValueFrom: of("requests.cpu", "0")}, "2"},
		{corev1.EnvVar{Name: "A", ValueFrom: of("limits.memory", "0")}, "1073741824"},
		{corev1.EnvVar{Name: "A", ValueFrom: of("limits.memory", "1Mi")}, "1024"},
		{corev1.EnvVar{Name: "A", ValueFrom: of("limits.cpu", "0")}, ""},
	} {
		got, err := variable(container, &c.v)
		if got != c.want || (err == nil) != (c.want != "") {
			t.Errorf("%v: %q, %v; want %q", c.v.ValueFrom, got, err, c.want)
		}
	}
}

func TestRequests(t *testing.T) {
	m, err := parseMetrics([]byte(`# TYPE rest_client_requests_total counter
rest_client_requests_total{code="200",host="127.0.0.1:6443",method="GET"} 12
rest_client_requests_total{code="403",host="127.0.0.1:6443",method="GET"} 1
rest_client_requests_total{code="200",host="127.0.0.1:6443",method="POST"} 3e+02
rest_client_requests_totally{method="PUT"} 9
`))
	if err != nil {
		t.Fatal(err)
	}
	for label, want := range map[string]map[string]float64{
		"method": {"GET": 13, "POST": 300},
		"code":   {"200": 312, "403": 1},
	} {
		if got := m.Requests(label); !maps.Equal(got, want) {
			t.Errorf("by %s: %v, want %v", label, got, want)
		}
	}
}
