// SPDX-License-Identifier: Apache-2.0

package pods_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	v1 "karpenter/api/v1"
	"karpenter/kube/pods"
)

func now() time.Time { return time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC) }

func pod(change ...func(*corev1.Pod)) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web", UID: "u", Labels: map[string]string{"app": "web"}}}
	for _, c := range change {
		c(p)
	}
	return p
}

func phase(ph corev1.PodPhase) func(*corev1.Pod) { return func(p *corev1.Pod) { p.Status.Phase = ph } }

func owned(apiVersion, kind string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.OwnerReferences = []metav1.OwnerReference{{APIVersion: apiVersion, Kind: kind}}
	}
}

// gone sets the deletion timestamp to that long before now.
func gone(ago time.Duration) func(*corev1.Pod) {
	return func(p *corev1.Pod) { t := metav1.NewTime(now().Add(-ago)); p.DeletionTimestamp = &t }
}

func tolerates(t corev1.Toleration) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Spec.Tolerations = []corev1.Toleration{t} }
}

func guarded(text string) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Annotations = map[string]string{v1.DoNotDisruptAnnotationKey: text} }
}

func started(ago time.Duration) func(*corev1.Pod) {
	return func(p *corev1.Pod) { t := metav1.NewTime(now().Add(-ago)); p.Status.StartTime = &t }
}

func TestClasses(t *testing.T) {
	const exists = corev1.TolerationOpExists
	type classes struct{ drainable, waiting, evictable, reschedulable bool }
	tests := []struct {
		name string
		pod  *corev1.Pod
		want classes
	}{
		{"spec 40/66 plain, without an owner", pod(), classes{true, true, true, true}},
		{"terminal", pod(phase(corev1.PodSucceeded)), classes{true, false, false, false}},
		{"terminating", pod(gone(0)), classes{true, true, false, false}},
		{"terminating for exactly a minute", pod(gone(time.Minute)), classes{true, true, false, false}},
		{"stuck", pod(gone(time.Minute + time.Second)), classes{}},
		{"terminating of a StatefulSet", pod(gone(0), owned("apps/v1", "StatefulSet")), classes{true, true, false, true}},
		{"static", pod(owned("v1", "Node")), classes{}},
		{"of a DaemonSet", pod(owned("apps/v1", "DaemonSet")), classes{true, true, true, false}},
		{"protected", pod(guarded("true")), classes{true, true, false, true}},
		{"tolerates with Exists", pod(tolerates(corev1.Toleration{Key: v1.DisruptedTaintKey, Operator: exists})), classes{reschedulable: true}},
		{"tolerates everything", pod(tolerates(corev1.Toleration{Operator: exists})), classes{reschedulable: true}},
		{"tolerates with Equal", pod(tolerates(corev1.Toleration{Key: v1.DisruptedTaintKey, Operator: corev1.TolerationOpEqual, Effect: corev1.TaintEffectNoSchedule})), classes{reschedulable: true}},
		{"tolerates another value", pod(tolerates(corev1.Toleration{Key: v1.DisruptedTaintKey, Value: "x"})), classes{true, true, true, true}},
		{"tolerates another effect", pod(tolerates(corev1.Toleration{Operator: exists, Effect: corev1.TaintEffectNoExecute})), classes{true, true, true, true}},
		{"tolerates unschedulable", pod(tolerates(corev1.Toleration{Key: corev1.TaintNodeUnschedulable, Operator: exists})), classes{true, true, true, true}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := classes{pods.Drainable(tt.pod, now()), pods.Waiting(tt.pod, now()), pods.Evictable(tt.pod, now()), pods.Reschedulable(tt.pod)}
			if got != tt.want {
				t.Errorf("got %+v, want %+v", got, tt.want)
			}
		})
	}
}

func TestProtection(t *testing.T) {
	tests := []struct {
		name        string
		pod         *corev1.Pod
		disruptable bool
		event       string
	}{
		{"spec 35/49 no annotation", pod(), true, ""},
		{"spec 35/49 true", pod(guarded("true")), false, ""},
		{"spec 35/49 text", pod(guarded("soon")), true, "InvalidDoNotDisruptAnnotation"},
		{"spec 35/49 false", pod(guarded("false")), true, "InvalidDoNotDisruptAnnotation"},
		{"spec 35/49 zero", pod(guarded("0s")), true, "InvalidDoNotDisruptAnnotation"},
		{"spec 35/49 negative", pod(guarded("-5m")), true, "InvalidDoNotDisruptAnnotation"},
		{"spec 35/50 running", pod(guarded("10m"), started(5*time.Minute)), false, "DoNotDisruptUntil"},
		{"spec 35/50 elapsed", pod(guarded("10m"), started(11*time.Minute)), true, "DoNotDisruptGracePeriodElapsed"},
		{"spec 35/50 not started", pod(guarded("10m")), false, ""},
		{"spec 35/51 terminal", pod(guarded("true"), phase(corev1.PodFailed)), true, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := pods.Disruptable(tt.pod, now()); got != tt.disruptable {
				t.Errorf("disruptable = %v, want %v", got, tt.disruptable)
			}
			event := ""
			for _, e := range pods.ProtectionOf(tt.pod, now()).Events(tt.pod) {
				event += e.Reason
			}
			if event != tt.event {
				t.Errorf("event %q, want %q", event, tt.event)
			}
		})
	}
}

func TestBudgets(t *testing.T) {
	budget := func(namespace, app string) policyv1.PodDisruptionBudget {
		return policyv1.PodDisruptionBudget{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: app},
			Spec:       policyv1.PodDisruptionBudgetSpec{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": app}}},
		}
	}
	got, err := pods.BudgetsOf(pod(), []policyv1.PodDisruptionBudget{budget("default", "db"), budget("default", "web"), budget("other", "web")})
	if err != nil || len(got) != 1 || got[0].Namespace != "default" || got[0].Name != "web" {
		t.Errorf("got %v, %v; want the budget default/web", got, err)
	}
	broken := budget("default", "web")
	broken.Spec.Selector.MatchExpressions = []metav1.LabelSelectorRequirement{{Key: "app", Operator: "Maybe"}}
	if _, err := pods.BudgetsOf(pod(), []policyv1.PodDisruptionBudget{broken}); err == nil {
		t.Error("a budget with an invalid selector is no error")
	}
}

func TestNeverAndExempt(t *testing.T) {
	of := func(maxUnavailable, minAvailable *intstr.IntOrString) *policyv1.PodDisruptionBudget {
		return &policyv1.PodDisruptionBudget{Spec: policyv1.PodDisruptionBudgetSpec{MaxUnavailable: maxUnavailable, MinAvailable: minAvailable}}
	}
	v := func(text string) *intstr.IntOrString { p := intstr.Parse(text); return &p }
	for _, tt := range []struct {
		budget *policyv1.PodDisruptionBudget
		want   string
	}{
		{of(v("0"), nil), "maxUnavailable: 0"},
		{of(v("0%"), nil), "maxUnavailable: 0%"},
		{of(nil, v("100%")), "minAvailable: 100%"},
		{of(v("1"), nil), ""},
		{of(nil, v("100")), ""},
		{of(nil, nil), ""},
	} {
		if got := pods.Never(tt.budget); got != tt.want {
			t.Errorf("Never(%v) = %q, want %q", tt.budget.Spec, got, tt.want)
		}
	}

	allow := of(v("0"), nil)
	policy := policyv1.AlwaysAllow
	allow.Spec.UnhealthyPodEvictionPolicy = &policy
	ready := func(s corev1.ConditionStatus) *corev1.Pod {
		return pod(func(p *corev1.Pod) {
			p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: s}}
		})
	}
	if !pods.Exempt(ready(corev1.ConditionFalse), allow) {
		t.Error("unready pod is not exempt under AlwaysAllow")
	}
	if pods.Exempt(ready(corev1.ConditionTrue), allow) || pods.Exempt(pod(), allow) || pods.Exempt(ready(corev1.ConditionFalse), of(v("0"), nil)) {
		t.Error("a ready pod, one without the condition, or one without the policy is exempt")
	}
}

func TestDeadlock(t *testing.T) {
	v := func(text string) *intstr.IntOrString { p := intstr.Parse(text); return &p }
	for _, tt := range []struct {
		name string
		spec policyv1.PodDisruptionBudgetSpec
		is   policyv1.PodDisruptionBudgetStatus
		want string
	}{
		{"in its spec", policyv1.PodDisruptionBudgetSpec{MaxUnavailable: v("0")}, policyv1.PodDisruptionBudgetStatus{}, "maxUnavailable: 0"},
		{"the only replica", policyv1.PodDisruptionBudgetSpec{MinAvailable: v("1")},
			policyv1.PodDisruptionBudgetStatus{ObservedGeneration: 2, ExpectedPods: 1, DesiredHealthy: 1}, "minAvailable: 1, of 1 pods"},
		{"rounded up to all", policyv1.PodDisruptionBudgetSpec{MinAvailable: v("90%")},
			policyv1.PodDisruptionBudgetStatus{ObservedGeneration: 2, ExpectedPods: 5, DesiredHealthy: 5}, "minAvailable: 90%, of 5 pods"},
		{"only for a while", policyv1.PodDisruptionBudgetSpec{MinAvailable: v("1")},
			policyv1.PodDisruptionBudgetStatus{ObservedGeneration: 2, ExpectedPods: 2, DesiredHealthy: 1, CurrentHealthy: 1}, ""},
		{"of no pods", policyv1.PodDisruptionBudgetSpec{MinAvailable: v("1")},
			policyv1.PodDisruptionBudgetStatus{ObservedGeneration: 2, DesiredHealthy: 1}, ""},
		{"status of an earlier spec", policyv1.PodDisruptionBudgetSpec{MinAvailable: v("1")},
			policyv1.PodDisruptionBudgetStatus{ObservedGeneration: 1, ExpectedPods: 1, DesiredHealthy: 1}, ""},
		{"not to be counted", policyv1.PodDisruptionBudgetSpec{MaxUnavailable: v("1")},
			policyv1.PodDisruptionBudgetStatus{ObservedGeneration: 2, Conditions: []metav1.Condition{{
				Type: policyv1.DisruptionAllowedCondition, Status: metav1.ConditionFalse, Reason: policyv1.SyncFailedReason, Message: "no scale",
			}}}, "its pods cannot be counted: no scale"},
		{"not enough healthy ones", policyv1.PodDisruptionBudgetSpec{MaxUnavailable: v("1")},
			policyv1.PodDisruptionBudgetStatus{ObservedGeneration: 2, ExpectedPods: 2, DesiredHealthy: 1, Conditions: []metav1.Condition{{
				Type: policyv1.DisruptionAllowedCondition, Status: metav1.ConditionFalse, Reason: policyv1.InsufficientPodsReason,
			}}}, ""},
	} {
		b := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Generation: 2}, Spec: tt.spec, Status: tt.is}
		if got := pods.Deadlock(b); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
}

func TestObstacle(t *testing.T) {
	zero, always := intstr.FromInt32(0), policyv1.AlwaysAllow
	never := policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "never"},
		Spec: policyv1.PodDisruptionBudgetSpec{
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}, MaxUnavailable: &zero,
		},
	}
	lenient := never
	lenient.Spec.UnhealthyPodEvictionPolicy = &always
	running := phase(corev1.PodRunning)
	unready := func(p *corev1.Pod) {
		p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionFalse}}
	}
	for _, tt := range []struct {
		name    string
		pod     *corev1.Pod
		budgets []policyv1.PodDisruptionBudget
		want    string
	}{
		{"none", pod(running), nil, ""},
		{"never allowed", pod(running), []policyv1.PodDisruptionBudget{never}, pods.NeverAllowed},
		{"two budgets", pod(running), []policyv1.PodDisruptionBudget{never, never}, pods.SeveralBudgets},
		{"not started", pod(phase(corev1.PodPending)), []policyv1.PodDisruptionBudget{never}, ""},
		{"unready and exempt", pod(running, unready), []policyv1.PodDisruptionBudget{lenient}, ""},
		{"unready", pod(running, unready), []policyv1.PodDisruptionBudget{never}, pods.NeverAllowed},
		{"protected", pod(guarded("true")), nil, pods.DoNotDisrupt},
		{"protected for a time", pod(guarded("1h"), started(0)), nil, ""},
		{"terminating", pod(running, gone(0)), []policyv1.PodDisruptionBudget{never}, ""},
		{"terminal", pod(phase(corev1.PodFailed), guarded("true")), nil, ""},
		{"stays to the end", pod(guarded("true"), tolerates(corev1.Toleration{Operator: corev1.TolerationOpExists})), nil, ""},
		{"static", pod(guarded("true"), owned("v1", "Node")), nil, ""},
	} {
		got, err := pods.ObstacleOf(tt.pod, tt.budgets, now())
		reason := ""
		if got != nil {
			reason = got.Reason
		}
		if err != nil || reason != tt.want {
			t.Errorf("%s: %q, %v; want %q", tt.name, reason, err, tt.want)
		}
	}
}
