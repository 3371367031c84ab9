// SPDX-License-Identifier: Apache-2.0

package convert_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"

	v1 "karpenter/api/v1"
	"karpenter/kube/convert"
	"karpenter/model"
)

// spec 46/137: tolerations that compare numbers tolerate what they do for Kubernetes' own
// library.
func TestComparingTolerations(t *testing.T) {
	c := convert.Converter{Axis: model.NewAxis(), Labels: v1.DefaultLabels()}
	tolerates := func(o corev1.Toleration, taint corev1.Taint) bool {
		t.Helper()
		p := &corev1.Pod{Spec: corev1.PodSpec{Tolerations: []corev1.Toleration{o}}}
		shape := c.Pod(p).Shape
		if len(shape.Refused) > 0 {
			t.Fatalf("the pod is refused: %v", shape.Refused)
		}
		_, bad := model.Untolerated([]model.Taint{{Key: taint.Key, Value: taint.Value, Effect: model.Effect(taint.Effect)}}, shape.Tolerations)
		return !bad
	}
	sla := func(value string) corev1.Taint {
		return corev1.Taint{Key: "sla", Value: value, Effect: corev1.TaintEffectNoSchedule}
	}
	for _, x := range []struct {
		operator     corev1.TolerationOperator
		value, taint string
		want         bool
	}{
		{corev1.TolerationOpGt, "950", "960", true},
		{corev1.TolerationOpGt, "960", "960", false},
		{corev1.TolerationOpGt, "950", "0960", false},
		{corev1.TolerationOpGt, "0950", "960", false},
		{corev1.TolerationOpLt, "970", "960", true},
		{corev1.TolerationOpLt, "960", "960", false},
	} {
		if got := tolerates(corev1.Toleration{Key: "sla", Operator: x.operator, Value: x.value}, sla(x.taint)); got != x.want {
			t.Errorf("%s %s tolerates %s: %t, want %t", x.operator, x.value, x.taint, got, x.want)
		}
	}
	seed := rand.Uint64()
	g := rand.New(rand.NewPCG(seed, 0))
	text := func() string {
		odd := []string{"", "x", "-", "+3", "-0", "00", "007", "1.5", "9223372036854775807", "9223372036854775808", "-9223372036854775808", " 4", "0x10"}
		if g.IntN(3) == 0 {
			return odd[g.IntN(len(odd))]
		}
		return fmt.Sprint(g.IntN(20) - 10)
	}
	yes := 0
	for range 20_000 {
		o := corev1.Toleration{Key: []string{"sla", "other"}[g.IntN(2)], Value: text(), Operator: []corev1.TolerationOperator{corev1.TolerationOpGt, corev1.TolerationOpLt, corev1.TolerationOpEqual}[g.IntN(3)]}
		if g.IntN(3) == 0 {
			o.Effect = []corev1.TaintEffect{corev1.TaintEffectNoSchedule, corev1.TaintEffectNoExecute}[g.IntN(2)]
		}
		taint := sla(text())
		want := o.ToleratesTaint(klog.Logger{}, &taint, true)
		if got := tolerates(o, taint); got != want {
			t.Fatalf("seed %d: %+v tolerates %+v: %t, the library says %t", seed, o, taint, got, want)
		}
		if want {
			yes++
		}
	}
	if yes < 1000 {
		t.Errorf("only %d were tolerated", yes)
	}
}
