// SPDX-License-Identifier: Apache-2.0

package status

import (
	"errors"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	awsv1 "karpenter/api/aws/v1"
	azurev1beta1 "karpenter/api/azure/v1beta1"
	"karpenter/api/crds"
	v1 "karpenter/api/v1"
	"karpenter/cmd/karpenter/situation"
	"karpenter/scenario"
	"karpenter/solve"
)

var now = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

func quantity(text string) resource.Quantity { return resource.MustParse(text) }

func condition(name string, status metav1.ConditionStatus, message string) metav1.Condition {
	return metav1.Condition{Type: name, Status: status, Message: message, Reason: "R"}
}

func claimed(name string, status metav1.ConditionStatus, message string) v1.Condition {
	return v1.Condition{Type: name, Status: status, Message: message, Reason: "R"}
}

// healthy is an installation that lacks nothing.
func healthy(t *testing.T) *Facts {
	t.Helper()
	f := &Facts{Now: now, Kubernetes: "v1.36.4", CRDs: map[string]read[*apiextensionsv1.CustomResourceDefinition]{}}
	manifests, err := crds.Manifests()
	if err != nil {
		t.Fatal(err)
	}
	for _, content := range manifests {
		crd := &apiextensionsv1.CustomResourceDefinition{}
		if err := yaml.Unmarshal(content, crd); err != nil {
			t.Fatal(err)
		}
		f.CRDs[crd.Name] = read[*apiextensionsv1.CustomResourceDefinition]{value: crd}
	}
	renewed := metav1.NewMicroTime(now.Add(-5 * time.Second))
	f.Leases.value = []coordinationv1.Lease{{
		ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system"},
		Spec:       coordinationv1.LeaseSpec{HolderIdentity: ptr.To("karpenter-1_x"), RenewTime: &renewed},
	}}
	f.Deployments.value = []*appsv1.Deployment{{
		ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "karpenter", Labels: map[string]string{"app.kubernetes.io/name": "karpenter"}},
		Spec:       appsv1.DeploymentSpec{Replicas: ptr.To(int32(2))}, Status: appsv1.DeploymentStatus{ReadyReplicas: 2},
	}}
	pool := &v1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: "general"}}
	pool.Spec.Limits = v1.Limits{"cpu": quantity("100")}
	pool.Status.Conditions = []metav1.Condition{condition("Ready", metav1.ConditionTrue, "")}
	f.Pools.value = []*v1.NodePool{pool}
	class := &awsv1.EC2NodeClass{ObjectMeta: metav1.ObjectMeta{Name: "default"}}
	class.Spec.AMISelectorTerms = []awsv1.AMISelectorTerm{{Alias: "al2023@latest"}}
	class.Status.Conditions = pool.Status.Conditions
	f.AWSClasses.value = []*awsv1.EC2NodeClass{class}
	claim := &v1.NodeClaim{ObjectMeta: metav1.ObjectMeta{Name: "general-1", CreationTimestamp: metav1.NewTime(now.Add(-time.Hour))}}
	claim.Status.Conditions = []v1.Condition{claimed("Initialized", metav1.ConditionTrue, "")}
	f.Claims.value = []*v1.NodeClaim{claim}
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1", Labels: map[string]string{v1.NodePoolLabelKey: "general"}}}
	node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	f.Nodes.value = []*corev1.Node{node}
	f.Offerings.value = now.Add(-time.Minute)
	f.Health = &situation.Health{Cloud: "aws", Queue: "spots", SpotPrices: now.Add(-time.Hour)}
	situate(t, f, "type small cpu=2 mem=8Gi zones=a spot=0.03\npool general\n")
	return f
}

func situate(t *testing.T, f *Facts, text string) {
	t.Helper()
	s, err := scenario.Read(strings.NewReader(text), nil)
	if err != nil {
		t.Fatal(err)
	}
	f.Situation.value, f.Plan = s, new(solve.Planner).Place(s.Snapshot, s.Policy)
}

func TestStatusOfHealthyInstallation(t *testing.T) {
	r := Report{Checks: Checks(healthy(t))}
	if n := r.Count(OK); n != len(r.Checks) || n < 12 {
		t.Errorf("%d of %d ok: %+v", n, len(r.Checks), r.Checks)
	}
}

// TestStatusFinds: each fault is found by its check, which says what to do, and by
// no other.
func TestStatusFinds(t *testing.T) {
	denied := apierrors.NewForbidden(schema.GroupResource{Resource: "things"}, "", nil)
	for _, c := range []struct {
		check   string
		verdict Verdict
		says    string
		edit    func(f *Facts)
	}{
		{"CRDs", Failure, "nodepools.karpenter.sh", func(f *Facts) { delete(f.CRDs, "nodepools.karpenter.sh") }},
		{"CRDs", Failure, "ec2nodeclasses.karpenter.k8s.aws or", func(f *Facts) {
			for _, name := range classCRDs() {
				delete(f.CRDs, name)
			}
		}},
		{"CRDs", Warning, "not the version", func(f *Facts) {
			crd := f.CRDs["nodeclaims.karpenter.sh"].value.DeepCopy()
			delete(crd.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties, "status")
			f.CRDs["nodeclaims.karpenter.sh"] = read[*apiextensionsv1.CustomResourceDefinition]{value: crd}
		}},
		{"CRDs", Skipped, "forbidden", func(f *Facts) {
			f.CRDs["nodepools.karpenter.sh"] = read[*apiextensionsv1.CustomResourceDefinition]{err: denied}
		}},
		{"Leader", Failure, "no replica holds", func(f *Facts) { f.Leases.value = nil }},
		{"Leader", Failure, "2m0s ago", func(f *Facts) {
			f.Leases.value[0].Spec.RenewTime = ptr.To(metav1.NewMicroTime(now.Add(-2 * time.Minute)))
		}},
		{"Replicas", Failure, "1 of 2 ready", func(f *Facts) { f.Deployments.value[0].Status.ReadyReplicas = 1 }},
		{"Replicas", Warning, "0 of 0", func(f *Facts) {
			f.Deployments.value[0].Spec.Replicas, f.Deployments.value[0].Status.ReadyReplicas = ptr.To(int32(0)), 0
		}},
		{"Replicas", Skipped, "runs elsewhere", func(f *Facts) { f.Deployments.value = nil }},
		{"Offerings", Failure, "found no ConfigMap", func(f *Facts) { f.Offerings.err = errors.New("found no ConfigMap") }},
		{"Watches", Failure, "Node for 5m", func(f *Facts) {
			f.Health.Watches = []situation.Failing{{What: "Node", Since: now.Add(-5 * time.Minute)}}
		}},
		{"Watches", Warning, "PodGroup for 5m", func(f *Facts) {
			f.Health.Watches = []situation.Failing{{What: "PodGroup", Since: now.Add(-5 * time.Minute), Refused: true, Optional: true}}
		}},
		{"Permissions", Warning, "ec2:CreateFleet for 3h: UnauthorizedOperation", func(f *Facts) {
			f.Health.Calls = []situation.Failing{{What: "ec2:CreateFleet", Since: now.Add(-3 * time.Hour), Code: "UnauthorizedOperation", Refused: true}}
		}},
		{"Queue", Warning, "no interruption queue is set", func(f *Facts) { f.Health.Queue = "" }},
		{"Queue", Failure, "sqs:ReceiveMessage for 90s: no answer", func(f *Facts) {
			f.Health.Calls = []situation.Failing{{What: situation.QueueAction, Since: now.Add(-90 * time.Second)}}
		}},
		{"Prices", Warning, "last read 2d ago", func(f *Facts) { f.Health.SpotPrices = now.Add(-50 * time.Hour) }},
		{"Prices", Warning, "pricing:GetProducts for 2h: Throttling", func(f *Facts) {
			f.Health.Calls = []situation.Failing{{What: situation.OnDemandPricesAction, Since: now.Add(-2 * time.Hour), Code: "Throttling"}}
		}},
		{"Spot role", Failure, "no service-linked role", func(f *Facts) {
			f.Events.value = []*corev1.Event{{Source: corev1.EventSource{Component: "karpenter"}, Type: "Warning", Reason: noSpotRole, LastTimestamp: metav1.NewTime(now)}}
		}},
		{"NodePools", Failure, "general: NodeClassReady: no class", func(f *Facts) {
			f.Pools.value[0].Status.Conditions = []metav1.Condition{condition("Ready", metav1.ConditionFalse, "NodeClassReady"), condition("NodeClassReady", metav1.ConditionFalse, "no class")}
		}},
		{"NodePools", Warning, "there is none", func(f *Facts) { f.Pools.value = nil }},
		{"Limits", Warning, "general: 96 of 100 cpu in use", func(f *Facts) { f.Pools.value[0].Status.Resources = corev1.ResourceList{"cpu": quantity("96")} }},
		{"Limits", Warning, "1 of 1 NodePools have no limits", func(f *Facts) { f.Pools.value[0].Spec.Limits = nil }},
		{"Node classes", Failure, "AKSNodeClass default: ", func(f *Facts) {
			f.AzureClasses.value = []*azurev1beta1.AKSNodeClass{{ObjectMeta: metav1.ObjectMeta{Name: "default"}}}
		}},
		{"Node classes", Failure, "EC2NodeClass default: waiting for first reconcile", func(f *Facts) { f.AWSClasses.value[0].Status.Conditions = nil }},
		{"Launches", Warning, "general-1, 1h0m0s old: not Registered: no node yet", func(f *Facts) {
			f.Claims.value[0].Status.Conditions = []v1.Condition{claimed("Launched", metav1.ConditionTrue, ""), claimed("Registered", metav1.ConditionFalse, "no node yet")}
		}},
		{"Nodes", Warning, "1 of 1", func(f *Facts) { f.Nodes.value[0].Status.Conditions = nil }},
		{"Drift", Warning, "general: it fails", func(f *Facts) {
			p := f.Pools.value[0]
			p.Status.Conditions = append([]metav1.Condition{condition("RolloutHalted", metav1.ConditionTrue, "it fails")}, p.Status.Conditions...)
		}},
		{"Drains", Warning, "general-1: pod shop/db", func(f *Facts) {
			c := f.Claims.value[0]
			c.Status.Conditions = append(c.Status.Conditions, claimed("DrainBlocked", metav1.ConditionTrue, "pod shop/db"))
		}},
		{"Pending pods", Warning, "2 pods: NodePool general has no offering after", func(f *Facts) {
			situate(t, f, "type small cpu=2 mem=8Gi zones=a spot=0.03\npool general\npods web-1..2 cpu=1 select=zone=b\n")
		}},
		{"Warnings", Warning, "Broken (1), such as NodePool general: it is", func(f *Facts) {
			f.Events.value = []*corev1.Event{
				{Source: corev1.EventSource{Component: "karpenter"}, Type: "Warning", Reason: "Broken", Message: "it is", LastTimestamp: metav1.NewTime(now), InvolvedObject: corev1.ObjectReference{Kind: "NodePool", Name: "general"}},
				{Source: corev1.EventSource{Component: "karpenter"}, Type: "Warning", Reason: "Old", LastTimestamp: metav1.NewTime(now.Add(-2 * time.Hour))},
				{Source: corev1.EventSource{Component: "other"}, Type: "Warning", Reason: "Other", LastTimestamp: metav1.NewTime(now)},
			}
		}},
		{"Upgrade notes", Warning, "Amazon Linux 2", func(f *Facts) { f.AWSClasses.value[0].Spec.AMISelectorTerms[0].Alias = "al2@latest" }},
	} {
		f := healthy(t)
		c.edit(f)
		for _, got := range Checks(f) {
			text := got.Summary + "\n" + strings.Join(got.Details, "\n")
			if got.Name != c.check {
				if got.Verdict != OK && !(c.check == "Offerings" && got.Verdict == Skipped) {
					t.Errorf("%s (%s): %s says %s: %s", c.check, c.says, got.Name, got.Verdict, text)
				}
				continue
			}
			if got.Verdict != c.verdict || !strings.Contains(text, c.says) || got.Remedy == "" && c.says != "runs elsewhere" {
				t.Errorf("%s: %s, %s, remedy %q; want %s, %s", c.check, got.Verdict, text, got.Remedy, c.verdict, c.says)
			}
		}
	}
}

// TestStatusOfOldLeader: what the leader does not report is skipped, and so is what only AWS has.
func TestStatusOfOldLeader(t *testing.T) {
	for says, health := range map[string]*situation.Health{"older than this program": nil, "provider is kwok": {Cloud: "kwok"}} {
		f := healthy(t)
		f.Health = health
		skipped := 0
		for _, c := range Checks(f) {
			if c.Verdict == Skipped && strings.Contains(c.Summary, says) {
				skipped++
			} else if c.Verdict != OK {
				t.Errorf("%s: %s: %s", c.Name, c.Verdict, c.Summary)
			}
		}
		if want := map[bool]int{true: 5, false: 4}[health == nil]; skipped != want {
			t.Errorf("%d checks are skipped since %s, want %d", skipped, says, want)
		}
	}
}

// TestStatusFits: no line is wider than the terminal.
func TestStatusFits(t *testing.T) {
	f := healthy(t)
	f.Pools.value[0].Status.Conditions = []metav1.Condition{condition("Ready", metav1.ConditionFalse, strings.Repeat("a long story ", 20))}
	for _, width := range []int{0, 60, 160} {
		var b strings.Builder
		if err := (Report{Checks: Checks(f)}).Write(&b, Style{Width: width}); err != nil {
			t.Fatal(err)
		}
		for _, line := range strings.Split(b.String(), "\n") {
			if n := len([]rune(line)); n > max(width, 60) && (width > 0 || n > 80) {
				t.Errorf("width %d: %d columns: %s", width, n, line)
			}
		}
		if !strings.Contains(b.String(), "FAIL   NodePools") {
			t.Errorf("it is\n%s", b.String())
		}
	}
}
