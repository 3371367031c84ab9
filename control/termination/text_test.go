// SPDX-License-Identifier: Apache-2.0

package termination

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
	dto "github.com/prometheus/client_model/go"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	lifecyclev1alpha1 "k8s.io/api/lifecycle/v1alpha1"
	policyv1 "k8s.io/api/policy/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "karpenter/api/v1"
	"karpenter/cloud"
)

// TestTerminationTexts runs the cases in testdata. Every file starts with an empty stage,
// and the command "stage" starts another.
func TestTerminationTexts(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		s := newStage(t)
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			if d.Cmd == "stage" {
				s = newStage(t)
				s.requests = d.HasArg("requests")
				for _, line := range strings.Split(d.Input, "\n") {
					s.declare(line)
				}
				return ""
			}
			s.t = t
			return s.command(d)
		})
	})
}

func (s *stage) command(d *datadriven.TestData) string {
	switch d.Cmd {
	case "pass":
		return s.pass()
	case "work":
		return s.work()
	case "wait":
		s.clock.Step(duration(s.t, d.CmdArgs[0].Key))
	case "add":
		s.declare(d.Input)
	case "answer": // to evictions of a pod
		var code int
		d.ScanArgs(s.t, d.CmdArgs[0].Key, &code)
		s.answers[d.CmdArgs[0].Key] = code
	case "machine": // answers of the provider
		s.answer(d)
	case "late": // a pod, for the cache
		s.late.Insert(d.CmdArgs[0].Key)
	case "gone":
		s.open()
		return s.gone(d.CmdArgs[0].Key)
	case "calloff": // the Node stays
		s.open()
		s.must(s.queue.CallOff(s.t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: d.CmdArgs[0].Key}}))
		return s.queued() + s.news()
	case "until": // node [time]: evict until then
		s.open()
		var until *time.Time
		if len(d.CmdArgs) > 1 {
			until = &s.at(duration(s.t, d.CmdArgs[1].Key)).Time
		}
		left, err := s.queue.EvictUntil(s.t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: d.CmdArgs[0].Key}}, until)
		s.must(err)
		return fmt.Sprintf("%d left\n", left) + s.queued()
	case "failed": // the EvictionRequest of a pod
		r := RequestFor(s.podNamed(d.CmdArgs[0].Key))
		s.must(s.client.Get(s.t.Context(), client.ObjectKeyFromObject(r), r))
		r.Status.Conditions = []metav1.Condition{{Type: "Failed", Status: metav1.ConditionTrue, Reason: "NoFurtherResponder"}}
		s.must(s.client.Update(s.t.Context(), r))
	case "ends": // a pod, as its responder does it
		s.must(s.client.Delete(s.t.Context(), s.podNamed(d.CmdArgs[0].Key), client.PropagationPolicy("ends")))
	case "requests":
		return s.listRequests()
	case "detached":
		s.must(s.client.Delete(s.t.Context(), &storagev1.VolumeAttachment{ObjectMeta: metav1.ObjectMeta{Name: d.CmdArgs[0].Key}}))
	case "queue": // name [deadline]
		s.open()
		var deadline *time.Time
		if len(d.CmdArgs) > 1 {
			deadline = &s.at(duration(s.t, d.CmdArgs[1].Key)).Time
		}
		s.queue.Add(deadline, s.podNamed(d.CmdArgs[0].Key))
		return s.queued()
	case "has":
		return fmt.Sprintln(s.queue.Has(s.podNamed(d.CmdArgs[0].Key)))
	case "show":
		return s.show()
	case "metrics":
		return s.counts()
	default:
		s.t.Fatalf("unknown command %s", d.Cmd)
	}
	return ""
}

func (s *stage) must(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

func (s *stage) answer(d *datadriven.TestData) {
	answers := map[string]error{
		"ok": nil, "gone": &cloud.NotFoundError{Err: fmt.Errorf("test")}, "error": fmt.Errorf("cloud is down"),
	}
	for _, a := range d.CmdArgs {
		err, ok := answers[a.Vals[0]]
		if !ok {
			s.t.Fatalf("unknown answer %s", a)
		}
		switch a.Key {
		case "get":
			s.machines.getErr = err
		case "delete":
			s.machines.deleteErr = err
		}
	}
}

func (s *stage) podNamed(name string) *corev1.Pod {
	p := &corev1.Pod{}
	err := s.client.Get(s.t.Context(), types.NamespacedName{Namespace: "default", Name: name}, p)
	if apierrors.IsNotFound(err) { // a pod that is no more still has a key
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: types.UID(name)}}
	}
	s.must(err)
	return p
}

// gone ends a pod permanently.
func (s *stage) gone(name string) string {
	p := s.podNamed(name)
	p.Finalizers = nil
	s.must(s.client.Update(s.t.Context(), p))
	if p.DeletionTimestamp == nil {
		s.must(s.client.Delete(s.t.Context(), p, client.PropagationPolicy("gone")))
	}
	return ""
}

// show prints the Nodes and NodeClaims that are left.
func (s *stage) show() string {
	var out strings.Builder
	nodes, claims := &corev1.NodeList{}, &v1.NodeClaimList{}
	s.must(s.client.List(s.t.Context(), nodes))
	s.must(s.client.List(s.t.Context(), claims))
	for _, n := range nodes.Items {
		fmt.Fprintf(&out, "node %s", n.Name)
		for _, taint := range n.Spec.Taints {
			fmt.Fprintf(&out, " %s", taint.ToString())
		}
		if v, ok := n.Labels[corev1.LabelNodeExcludeBalancers]; ok {
			fmt.Fprintf(&out, " %s=%s", corev1.LabelNodeExcludeBalancers, v)
		}
		if n.Spec.Unschedulable {
			fmt.Fprint(&out, " unschedulable")
		}
		fmt.Fprintln(&out)
	}
	for _, c := range claims.Items {
		fmt.Fprintf(&out, "claim %s", c.Name)
		if c.DeletionTimestamp != nil {
			fmt.Fprint(&out, " deleting")
		}
		for _, t := range []string{v1.DrainedCondition, v1.VolumesDetachedCondition, v1.InstanceTerminatingCondition} {
			for _, x := range c.Status.Conditions {
				if x.Type == t {
					fmt.Fprintf(&out, " %s=%s/%s", t, x.Status, x.Reason)
				}
			}
		}
		fmt.Fprintln(&out)
	}
	return out.String()
}

// listRequests prints the EvictionRequests.
func (s *stage) listRequests() string {
	var out strings.Builder
	list := &lifecyclev1alpha1.EvictionRequestList{}
	s.must(s.client.List(s.t.Context(), list))
	for _, r := range list.Items {
		fmt.Fprintf(&out, "%s of pod %s: %s, owned by %s %s\n", r.Name, r.Spec.Target.Pod.Name, r.Spec.Intent, r.OwnerReferences[0].Kind, r.OwnerReferences[0].UID)
	}
	return out.String()
}

// counts prints the metrics: counters by value, others by how often they were
// observed.
func (s *stage) counts() string {
	families, err := s.metrics.Gather()
	s.must(err)
	var lines []string
	for _, f := range families {
		for _, m := range f.Metric {
			var labels []string
			for _, l := range m.Label {
				labels = append(labels, l.GetName()+"="+l.GetValue())
			}
			value := m.GetCounter().GetValue()
			switch f.GetType() {
			case dto.MetricType_SUMMARY:
				value = float64(m.GetSummary().GetSampleCount())
			case dto.MetricType_HISTOGRAM:
				value = float64(m.GetHistogram().GetSampleCount())
			}
			lines = append(lines, fmt.Sprintf("%s{%s} %v", f.GetName(), strings.Join(labels, ","), value))
		}
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n") + "\n"
}

func duration(t *testing.T, text string) time.Duration {
	d, err := time.ParseDuration(text)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// declare adds the object a line describes: kind, name and options.
func (s *stage) declare(line string) {
	words := strings.Fields(line)
	name, options := words[1], map[string]string{}
	for _, w := range words[2:] {
		key, value, _ := strings.Cut(w, "=")
		options[key] = value
	}
	switch words[0] {
	case "node":
		s.declareNode(name, options)
	case "claim":
		s.declareClaim(name, options)
	case "pod":
		s.declarePod(name, options)
	case "budget":
		s.declareBudget(name, options)
	case "attachment":
		s.declareAttachment(name, options)
	case "deployment":
		s.declareDeployment(name, options)
	case "volumeclaim":
		s.add(&corev1.PersistentVolumeClaim{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name},
			Spec:       corev1.PersistentVolumeClaimSpec{VolumeName: options["volume"]},
		})
	default:
		s.t.Fatalf("unknown object %q", line)
	}
}

func (s *stage) declareNode(name string, options map[string]string) {
	n := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, UID: types.UID(name), CreationTimestamp: *s.at(-time.Hour), DeletionTimestamp: s.at(0),
			Finalizers: []string{v1.TerminationFinalizer},
			Labels: map[string]string{
				"karpenter.test.sh/testnodeclass": "default", v1.NodePoolLabelKey: "general", corev1.LabelTopologyZone: "a",
			},
		},
		Spec:   corev1.NodeSpec{ProviderID: "test://" + name},
		Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}},
	}
	for key, value := range options {
		switch key {
		case "foreign":
			delete(n.Labels, "karpenter.test.sh/testnodeclass")
		case "ready":
			n.Status.Conditions[0].Status = corev1.ConditionStatus(value)
		case "taint":
			n.Spec.Taints = []corev1.Taint{{Key: v1.DisruptedTaintKey, Effect: corev1.TaintEffect(value)}}
		default:
			s.t.Fatalf("unknown option %s", key)
		}
	}
	s.add(n)
}

func (s *stage) declareClaim(name string, options map[string]string) {
	c := &v1.NodeClaim{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, UID: types.UID(name), DeletionTimestamp: s.at(0), Finalizers: []string{v1.TerminationFinalizer},
			Annotations: map[string]string{},
		},
	}
	for key, value := range options {
		switch key {
		case "node":
			c.Status.ProviderID = "test://" + value
		case "alive":
			c.DeletionTimestamp = nil
		case "deadline":
			text := value
			if d, err := time.ParseDuration(value); err == nil {
				text = s.at(d).UTC().Format(time.RFC3339)
			}
			c.Annotations[v1.NodeClaimTerminationTimestampAnnotationKey] = text
		case "reason":
			c.StatusConditions(s.start).SetTrueWithReason(v1.DisruptionReasonCondition, value, value)
		default:
			s.t.Fatalf("unknown option %s", key)
		}
	}
	s.add(c)
}

func (s *stage) declarePod(name string, options map[string]string) {
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "default", Name: name, UID: types.UID(name), Finalizers: []string{kubelet},
			Labels: map[string]string{"app": name}, Annotations: map[string]string{},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "r", UID: "r"}},
		},
		Spec:   corev1.PodSpec{NodeName: "n1"},
		Status: corev1.PodStatus{Phase: corev1.PodRunning, StartTime: s.at(0)},
	}
	disrupted := v1.DisruptedNoScheduleTaint()
	for key, value := range options {
		switch key {
		case "node":
			p.Spec.NodeName = value
		case "uid":
			p.UID = types.UID(value)
		case "grace":
			seconds, err := strconv.ParseInt(strings.TrimSuffix(value, "s"), 10, 64) // also more than a duration can have
			if err != nil {
				s.t.Fatal(err)
			}
			p.Spec.TerminationGracePeriodSeconds = &seconds
		case "ends":
			p.DeletionTimestamp = s.at(duration(s.t, value))
		case "phase":
			p.Status.Phase = corev1.PodPhase(value)
		case "keep":
			p.Annotations[v1.DoNotDisruptAnnotationKey] = value
		case "class":
			p.Spec.PriorityClassName = value
		case "owner":
			p.OwnerReferences = map[string][]metav1.OwnerReference{
				"none": nil, "node": {{APIVersion: "v1", Kind: "Node", Name: "n1"}}, "daemonset": {{APIVersion: "apps/v1", Kind: "DaemonSet", Name: "d"}},
			}[value]
		case "tolerates":
			p.Spec.Tolerations = map[string][]corev1.Toleration{
				"Equal":         {{Key: disrupted.Key, Operator: corev1.TolerationOpEqual, Effect: disrupted.Effect}},
				"Exists":        {{Key: disrupted.Key, Operator: corev1.TolerationOpExists}},
				"unschedulable": {{Key: corev1.TaintNodeUnschedulable, Operator: corev1.TolerationOpExists}},
			}[value]
		case "of": // a Deployment
			p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: value + "-5d4f", UID: "r", Controller: new(bool)}}
			*p.OwnerReferences[0].Controller = true
			p.Labels[appsv1.DefaultDeploymentUniqueLabelKey] = "5d4f"
			p.CreationTimestamp = *s.at(-time.Hour)
			p.Annotations[v1.SurgeFirstAnnotationKey] = "true"
		case "group": // a PodGroup
			p.Spec.SchedulingGroup = &corev1.PodSchedulingGroup{PodGroupName: &value}
		case "ready":
			p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionStatus(value)}}
		case "volumeclaim":
			p.Spec.Volumes = append(p.Spec.Volumes, corev1.Volume{Name: "v", VolumeSource: corev1.VolumeSource{
				PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: value}}})
		case "ephemeral":
			p.Spec.Volumes = append(p.Spec.Volumes, corev1.Volume{Name: value, VolumeSource: corev1.VolumeSource{
				Ephemeral: &corev1.EphemeralVolumeSource{}}})
		default:
			s.t.Fatalf("unknown option %s", key)
		}
	}
	s.add(p)
}

func (s *stage) declareBudget(name string, options map[string]string) {
	b := &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name},
		Spec:       policyv1.PodDisruptionBudgetSpec{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": options["app"]}}},
	}
	for key, value := range options {
		v := intstr.Parse(value)
		switch key {
		case "maxUnavailable":
			b.Spec.MaxUnavailable = &v
		case "minAvailable":
			b.Spec.MinAvailable = &v
		}
	}
	s.add(b)
}

func (s *stage) declareDeployment(name string, options map[string]string) {
	replicas, more, less := int32(1), intstr.FromString("25%"), intstr.FromString("25%")
	d := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name},
		Spec: appsv1.DeploymentSpec{
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": name}},
			Strategy: appsv1.DeploymentStrategy{Type: appsv1.RollingUpdateDeploymentStrategyType, RollingUpdate: &appsv1.RollingUpdateDeployment{MaxSurge: &more, MaxUnavailable: &less}},
		},
	}
	for key, value := range options {
		switch key {
		case "replicas":
			replicas = int32(intstr.Parse(value).IntVal)
		case "surge":
			more = intstr.Parse(value)
		case "unavailable":
			less = intstr.Parse(value)
		case "recreate":
			d.Spec.Strategy = appsv1.DeploymentStrategy{Type: appsv1.RecreateDeploymentStrategyType}
		case "paused":
			d.Spec.Paused = true
		case "selects":
			d.Spec.Selector.MatchLabels["app"] = value
		case "restarted":
			d.Spec.Template.Annotations = map[string]string{RestartedAtAnnotationKey: s.at(duration(s.t, value)).UTC().Format(time.RFC3339)}
		default:
			s.t.Fatalf("unknown option %s", key)
		}
	}
	d.Spec.Replicas = &replicas
	s.add(d)
}

func (s *stage) declareAttachment(name string, options map[string]string) {
	a := &storagev1.VolumeAttachment{
		ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: storagev1.VolumeAttachmentSpec{NodeName: "n1"},
	}
	if volume, ok := options["volume"]; ok {
		a.Spec.Source.PersistentVolumeName = &volume
	} else {
		a.Spec.Source.InlineVolumeSpec = &corev1.PersistentVolumeSpec{}
	}
	s.add(a)
}
