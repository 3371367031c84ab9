// SPDX-License-Identifier: Apache-2.0

package instancetype_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	awsv1 "karpenter/api/aws/v1"
	"karpenter/cloud"
	"karpenter/cloud/aws/expression"
	"karpenter/cloud/aws/instancetype"
)

func formulas(t *testing.T, fields map[string]string) (*instancetype.Formulas, *instancetype.Class, error) {
	t.Helper()
	l, err := expression.NewLanguage()
	if err != nil {
		t.Fatal(err)
	}
	config := awsv1.KubeletConfiguration{}
	for field, text := range fields {
		config[field] = apiextensionsv1.JSON{Raw: []byte(text)}
	}
	class := plain(awsv1.AMIFamilyBottlerocket)
	kubelet(fields)(class, nil)
	f, err := instancetype.NewFormulas(l, config)
	return f, class, err
}

func TestFormulas(t *testing.T) {
	w := newWorld(t)
	for _, c := range []struct {
		name    string
		fields  map[string]string
		figure  func(*cloud.InstanceType) int64
		want    int64
		dropped string // part of the message
	}{
		{"spec 65/28 cpu", map[string]string{"kubeReserved": `{"cpu":"vcpus * 30"}`}, kubeCPU, 60, ""},
		{"spec 65/28 rounded up", map[string]string{"kubeReserved": `{"cpu":"70 + vcpus"}`}, kubeCPU, 80, ""},
		{"spec 65/28 memory", map[string]string{"kubeReserved": `{"memory":"memory_mib / 100"}`}, kubeMem, 96 * mi, ""},
		{"spec 65/28 zero stays", map[string]string{"kubeReserved": `{"cpu":"vcpus - 2"}`}, kubeCPU, 0, ""},
		{"spec 65/28 negative", map[string]string{"kubeReserved": `{"cpu":"vcpus - 1000"}`}, kubeCPU, 70, "kubeReserved: cpu: gives -998, which is negative, for m5.large"},
		{"no result", map[string]string{"systemReserved": `{"cpu":"1 / (vcpus - vcpus)"}`}, systemSize, 0, "cpu"},
		{"spec 65/28 system", map[string]string{"systemReserved": `{"pid":"vcpus * 1000","cpu":"1"}`}, systemSize, 2, ""},
		{"spec 65/29 pods", map[string]string{"maxPods": `"((default_enis - 1) * (ips_per_eni - 1)) + 2"`}, pods, 20, ""},
		{"max_pods is the default", map[string]string{"maxPods": `"max_pods + 1"`}, pods, 30, ""},
		{"spec 65/30", map[string]string{
			"maxPods": `"vcpus * 10"`, "kubeReserved": `{"memory":"11 * max_pods + 255"}`,
		}, kubeMem, 480 * mi, ""}, // 475, in steps of 16
		{"a number of pods", map[string]string{"maxPods": `10`, "kubeReserved": `{"memory":"16 * max_pods"}`}, kubeMem, 160 * mi, ""},
		{"none", map[string]string{"maxPods": `10`, "kubeReserved": `{"cpu":"1"}`}, kubeCPU, 1000, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			f, class, err := formulas(t, c.fields)
			if err != nil {
				t.Fatal(err)
			}
			facts := w.facts(t, "m5.large")
			applied, dropped, err := f.Apply(class, facts, defaults())
			if err != nil {
				t.Fatal(err)
			}
			if got := c.figure(instancetype.New(facts, applied, defaults())); got != c.want {
				t.Errorf("%d, want %d", got, c.want)
			}
			if (dropped != nil) != (c.dropped != "") || dropped != nil && !strings.Contains(dropped.Error(), c.dropped) {
				t.Errorf("dropped: %v, want %q", dropped, c.dropped)
			}
		})
	}
}

// spec 65/25: texts that are no expressions, and numbers of pods that are none.
func TestFormulaErrors(t *testing.T) {
	w := newWorld(t)
	_, _, err := formulas(t, map[string]string{"maxPods": `""`, "kubeReserved": `{"cpu":"vcpus +","memory":"1Gi"}`, "systemReserved": `{"pid":"cores"}`})
	for _, part := range []string{"maxPods: ", "kubeReserved[cpu]: ", "systemReserved[pid]: "} {
		if err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("%v does not say %q", err, part)
		}
	}
	for _, text := range []string{`"vcpus - 1000"`, `"100 / (vcpus - vcpus)"`, `"vcpus * 2000000000"`} {
		f, class, err := formulas(t, map[string]string{"maxPods": text})
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := f.Apply(class, w.facts(t, "m5.large"), defaults()); err == nil {
			t.Errorf("%s has a result", text)
		}
	}
}

// Formulas leave the class they are applied to as it was.
func TestFormulasShareNothing(t *testing.T) {
	w := newWorld(t)
	f, class, err := formulas(t, map[string]string{"maxPods": `"vcpus"`, "kubeReserved": `{"cpu":"vcpus * 100","memory":"1Gi"}`})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name string
		cpus int64
	}{{"m5.large", 2}, {"m5.4xlarge", 16}} {
		facts := w.facts(t, c.name)
		applied, _, err := f.Apply(class, facts, defaults())
		if err != nil {
			t.Fatal(err)
		}
		it := instancetype.New(facts, applied, defaults())
		if pods(it) != c.cpus || kubeCPU(it) != 100*c.cpus || kubeMem(it) != 1024*mi {
			t.Errorf("%s: %d pods, %v reserved", c.name, pods(it), it.Overhead.KubeReserved)
		}
	}
	if _, ok := class.Kubelet.KubeReserved[corev1.ResourceCPU]; ok || class.Kubelet.MaxPods != nil {
		t.Errorf("%+v", class.Kubelet)
	}
	var nothing *instancetype.Formulas
	if same, dropped, err := nothing.Apply(class, w.facts(t, "m5.large"), defaults()); same != class || dropped != nil || err != nil {
		t.Errorf("%v, %v", dropped, err)
	}
}
