// SPDX-License-Identifier: Apache-2.0

package expression_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"karpenter/cloud/aws/expression"
)

func language(t *testing.T) *expression.Language {
	t.Helper()
	l, err := expression.NewLanguage()
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func TestEvaluate(t *testing.T) {
	m5 := expression.Figures{InstanceType: "m5.large", CPUs: 2, MemoryMiB: 8192, ENIs: 3, IPsPerENI: 10, MaxPods: 29}
	large := expression.Figures{InstanceType: "m5.4xlarge", CPUs: 16, MemoryMiB: 65536, ENIs: 8, IPsPerENI: 30, MaxPods: 234}
	l := language(t)
	for _, c := range []struct {
		name, text string
		figures    *expression.Figures
		want       int64
	}{
		{"spec 65/29 pods", "((default_enis - 1) * (ips_per_eni - 1)) + 2", &m5, 20},
		{"spec 65/29 min", "min(250, ((default_enis-1)*(ips_per_eni-1))*16+2)", &large, 250},
		{"spec 65/29 max", "max(60, vcpus * 30)", &large, 480},
		{"spec 65/29 mixed", "max(vcpus, 60.5)", &m5, 60},
		{"mixed the other way", "min(0.5, vcpus)", &m5, 0},
		{"doubles", "min(2.5, 7.9) + max(1.0, 2.0)", &m5, 4},
		{"towards zero", "-2.9", &m5, -2},
		{"equal", "max(2, vcpus)", &m5, 2},
		{"negative", "vcpus - 1000", &m5, -998},
		{"max_pods", "11 * max_pods + 255", &m5, 574},
		{"by name", "instance_type.startsWith('m5') ? 7 : 8", &m5, 7},
	} {
		t.Run(c.name, func(t *testing.T) {
			e, err := l.Compile(c.text)
			if err != nil {
				t.Fatal(err)
			}
			if got, err := e.Evaluate(c.figures); err != nil || got != c.want {
				t.Errorf("%s: %d (%v), want %d", c.text, got, err, c.want)
			}
		})
	}
}

// spec 65/25: what is no expression, and what has no result.
func TestErrors(t *testing.T) {
	l := language(t)
	for _, text := range []string{"vcpus +", "", "cores * 2", "vcpus > 2", "instance_type", "vcpus * 1.5", "max(1)", "max('a', 'b')"} {
		if _, err := l.Compile(text); err == nil {
			t.Errorf("%q compiles", text)
		}
	}
	for _, text := range []string{"100 / (vcpus - vcpus)", "1.0 / 0.0", "0.0 / 0.0", "-1.0 / 0.0", "1e300", "9223372036854775807 + vcpus", "dyn('a')"} {
		e, err := l.Compile(text)
		if err != nil {
			t.Errorf("%q does not compile: %v", text, err)
			continue
		}
		if n, err := e.Evaluate(&expression.Figures{CPUs: 2}); err == nil {
			t.Errorf("%q gives %d", text, n)
		}
	}
}

func TestCostLimit(t *testing.T) {
	nest := "[0,1,2,3,4,5,6,7,8,9]"
	text := nest + ".map(a, " + nest + ".map(b, " + nest + ".map(c, " + nest + ".map(d, " + nest + ".map(e, a+b+c+d+e))))).size()"
	e, err := language(t).Compile(text)
	if err != nil {
		t.Fatal(err)
	}
	if n, err := e.Evaluate(&expression.Figures{}); err == nil {
		t.Errorf("gives %d", n)
	}
}

// spec 65/28.
func TestQuantity(t *testing.T) {
	for _, c := range []struct {
		name corev1.ResourceName
		n    int64
		want string
	}{
		{corev1.ResourceCPU, 60, "60m"},
		{corev1.ResourceCPU, 72, "80m"},
		{corev1.ResourceMemory, 81, "96Mi"},
		{corev1.ResourceMemory, 128, "128Mi"},
		{corev1.ResourceEphemeralStorage, 3, "3Gi"},
		{"pid", 1001, "1001"},
		{corev1.ResourceCPU, 0, "0"},
		{corev1.ResourceMemory, 0, "0"},
	} {
		if q := expression.Quantity(c.name, c.n); q.String() != c.want {
			t.Errorf("%d of %s: %s, want %s", c.n, c.name, &q, c.want)
		}
	}
}
