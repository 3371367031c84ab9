// SPDX-License-Identifier: Apache-2.0

package convert_test

import (
	"math/rand"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/apitesting/fuzzer"
	"k8s.io/apimachinery/pkg/api/resource"
	metafuzzer "k8s.io/apimachinery/pkg/apis/meta/fuzzer"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"sigs.k8s.io/randfill"
)

// part is a struct within a pod spec, with the fields that matter: those that
// are used and those whose presence is rejected. All others must be listed as
// irrelevant.
type part struct {
	in         func(*corev1.Pod) any // pointer to the struct
	used       string
	refused    string
	irrelevant string
}

func parts() []part {
	return []part{{
		in:         func(p *corev1.Pod) any { return &p.Spec },
		used:       "InitContainers Containers NodeSelector NodeName Affinity Tolerations Priority Overhead Resources TopologySpreadConstraints Volumes SchedulingGroup",
		refused:    "ResourceClaims",
		irrelevant: "EphemeralContainers RestartPolicy TerminationGracePeriodSeconds ActiveDeadlineSeconds DNSPolicy ServiceAccountName DeprecatedServiceAccount AutomountServiceAccountToken HostNetwork HostPID HostIPC ShareProcessNamespace SecurityContext ImagePullSecrets Hostname Subdomain SchedulerName HostAliases PriorityClassName DNSConfig ReadinessGates RuntimeClassName EnableServiceLinks PreemptionPolicy SetHostnameAsFQDN OS HostUsers SchedulingGates HostnameOverride EvictionResponders", // hostUsers and hostNetwork together need a feature
	}, {
		in:         func(p *corev1.Pod) any { return &p.Spec.Containers[0] },
		used:       "Resources Ports RestartPolicyRules VolumeMounts",
		irrelevant: "RestartPolicy " + irrelevantOfContainers,
	}, {
		in:         func(p *corev1.Pod) any { return &p.Spec.InitContainers[0] },
		used:       "Resources RestartPolicy RestartPolicyRules VolumeMounts",
		irrelevant: "Ports " + irrelevantOfContainers, // of sidecars, ports are looked at
	}, {
		in:         func(p *corev1.Pod) any { return &p.Spec.Containers[0].Resources },
		used:       "Requests",
		irrelevant: "Limits Claims", // the API server has made requests of limits; claims are listed by the spec
	}, {
		in:         func(p *corev1.Pod) any { return &p.Spec.Containers[0].Ports[0] },
		used:       "HostPort Protocol HostIP",
		irrelevant: "Name ContainerPort",
	}, {
		in:         func(p *corev1.Pod) any { return &p.Spec.Volumes[0].VolumeSource },
		used:       "PersistentVolumeClaim Ephemeral",
		irrelevant: "HostPath EmptyDir GCEPersistentDisk AWSElasticBlockStore GitRepo Secret NFS ISCSI Glusterfs RBD FlexVolume Cinder CephFS Flocker DownwardAPI FC AzureFile ConfigMap VsphereVolume Quobyte AzureDisk PhotonPersistentDisk Projected PortworxVolume ScaleIO StorageOS CSI Image",
	}, {
		in:   func(p *corev1.Pod) any { return p.Spec.Affinity },
		used: "NodeAffinity PodAffinity PodAntiAffinity",
	}, {
		in:   func(p *corev1.Pod) any { return p.Spec.Affinity.PodAffinity },
		used: "RequiredDuringSchedulingIgnoredDuringExecution PreferredDuringSchedulingIgnoredDuringExecution",
	}, {
		in:   func(p *corev1.Pod) any { return p.Spec.Affinity.PodAntiAffinity },
		used: "RequiredDuringSchedulingIgnoredDuringExecution PreferredDuringSchedulingIgnoredDuringExecution",
	}, {
		in: func(p *corev1.Pod) any {
			return &p.Spec.Affinity.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution[0]
		},
		used: "LabelSelector Namespaces TopologyKey NamespaceSelector MatchLabelKeys MismatchLabelKeys",
	}, {
		in: func(p *corev1.Pod) any {
			return &p.Spec.Affinity.PodAntiAffinity.PreferredDuringSchedulingIgnoredDuringExecution[0]
		},
		used: "Weight PodAffinityTerm",
	}, {
		in:   func(p *corev1.Pod) any { return &p.Spec.TopologySpreadConstraints[0] },
		used: "MaxSkew TopologyKey WhenUnsatisfiable LabelSelector MinDomains NodeAffinityPolicy NodeTaintsPolicy MatchLabelKeys",
	}, {
		in:   func(p *corev1.Pod) any { return p.Spec.TopologySpreadConstraints[0].LabelSelector },
		used: "MatchLabels MatchExpressions",
	}, {
		in:   func(p *corev1.Pod) any { return &p.Spec.TopologySpreadConstraints[0].LabelSelector.MatchExpressions[0] },
		used: "Key Operator Values",
	}, {
		in:   func(p *corev1.Pod) any { return p.Spec.Affinity.NodeAffinity },
		used: "RequiredDuringSchedulingIgnoredDuringExecution PreferredDuringSchedulingIgnoredDuringExecution",
	}, {
		in:   func(p *corev1.Pod) any { return &preferred(p)[0] },
		used: "Weight Preference",
	}, {
		in:   func(p *corev1.Pod) any { return required(p) },
		used: "NodeSelectorTerms",
	}, {
		in:      func(p *corev1.Pod) any { return &required(p).NodeSelectorTerms[0] },
		used:    "MatchExpressions",
		refused: "MatchFields",
	}, {
		in:   func(p *corev1.Pod) any { return &required(p).NodeSelectorTerms[0].MatchExpressions[0] },
		used: "Key Operator Values",
	}, {
		in:         func(p *corev1.Pod) any { return &p.Spec.Tolerations[0] },
		used:       "Key Operator Value Effect",
		irrelevant: "TolerationSeconds",
	}}
}

const irrelevantOfContainers = "Name Image Command Args WorkingDir EnvFrom Env ResizePolicy VolumeDevices LivenessProbe ReadinessProbe StartupProbe Lifecycle TerminationMessagePath TerminationMessagePolicy ImagePullPolicy SecurityContext Stdin StdinOnce TTY"

func required(p *corev1.Pod) *corev1.NodeSelector {
	return p.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution
}

func preferred(p *corev1.Pod) []corev1.PreferredSchedulingTerm {
	return p.Spec.Affinity.NodeAffinity.PreferredDuringSchedulingIgnoredDuringExecution
}

// plainPod has one of everything, and nothing of it is rejected.
func plainPod() *corev1.Pod {
	requests := corev1.ResourceRequirements{Requests: corev1.ResourceList{"cpu": resource.MustParse("1")}}
	demand := corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{
		{Key: "a", Operator: corev1.NodeSelectorOpIn, Values: []string{"b"}},
	}}
	selector := &metav1.LabelSelector{
		MatchLabels:      map[string]string{"app": "a"},
		MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "tier", Operator: metav1.LabelSelectorOpIn, Values: []string{"web"}}},
	}
	term := corev1.PodAffinityTerm{TopologyKey: "zone", LabelSelector: selector}
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"revision": "7"}}, Spec: corev1.PodSpec{
		Containers: []corev1.Container{{
			Name: "main", Resources: requests,
			Ports: []corev1.ContainerPort{{ContainerPort: 80, HostPort: 8080}},
		}},
		InitContainers: []corev1.Container{{Name: "first", Resources: requests, Ports: []corev1.ContainerPort{{HostPort: 1}}}},
		Volumes:        []corev1.Volume{{Name: "v"}},
		Tolerations:    []corev1.Toleration{{Key: "k", Operator: corev1.TolerationOpEqual, Value: "v", Effect: corev1.TaintEffectNoSchedule}},
		TopologySpreadConstraints: []corev1.TopologySpreadConstraint{{
			MaxSkew: 1, TopologyKey: "zone", WhenUnsatisfiable: corev1.DoNotSchedule, LabelSelector: selector,
		}},
		Affinity: &corev1.Affinity{
			PodAffinity: &corev1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{term}},
			PodAntiAffinity: &corev1.PodAntiAffinity{
				PreferredDuringSchedulingIgnoredDuringExecution: []corev1.WeightedPodAffinityTerm{{Weight: 1, PodAffinityTerm: term}},
			},
			NodeAffinity: &corev1.NodeAffinity{
				RequiredDuringSchedulingIgnoredDuringExecution:  &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{demand}},
				PreferredDuringSchedulingIgnoredDuringExecution: []corev1.PreferredSchedulingTerm{{Weight: 1, Preference: demand}},
			},
		},
	}}
}

// Every field is classified. A new one must be thought about and added above.
func TestEveryFieldIsClassified(t *testing.T) {
	for _, part := range parts() {
		kind := reflect.TypeOf(part.in(plainPod())).Elem()
		classified := strings.Fields(part.used + " " + part.refused + " " + part.irrelevant)
		for i := range kind.NumField() {
			if name := kind.Field(i).Name; !slices.Contains(classified, name) {
				t.Errorf("%s.%s: decide whether it is used, refused or irrelevant", kind.Name(), name)
			}
		}
		slices.Sort(classified)
		if len(slices.Compact(classified)) != kind.NumField() {
			t.Errorf("%s has %d fields, %d are classified", kind.Name(), kind.NumField(), len(classified))
		}
	}
}

// The classes are true: whatever an irrelevant field holds, the pod converts
// to the same; some contents of the others make a difference; and a rejected
// field makes the pod rejected.
func TestClassesAreTrue(t *testing.T) {
	plain := converter().Pod(plainPod())
	if len(plain.Shape.Refused) > 0 {
		t.Fatalf("the plain pod is refused for %v", plain.Shape.Refused)
	}
	fill := fuzzer.FuzzerFor(metafuzzer.Funcs, rand.NewSource(1), serializer.NewCodecFactory(runtime.NewScheme()))
	// differs reports whether some content of the field makes a difference,
	// and whether some makes the pod rejected.
	differs := func(part part, field string) (different, refused bool) {
		for range 40 {
			p := plainPod()
			fillField(fill, reflect.ValueOf(part.in(p)).Elem().FieldByName(field))
			got := converter().Pod(p)
			different = different || cmp.Diff(plain, got) != ""
			refused = refused || len(got.Shape.Refused) > 0
		}
		return different, refused
	}
	for _, part := range parts() {
		kind := reflect.TypeOf(part.in(plainPod())).Elem().Name()
		for _, field := range strings.Fields(part.irrelevant) {
			if different, _ := differs(part, field); different {
				t.Errorf("%s.%s makes a difference, but is called irrelevant", kind, field)
			}
		}
		for _, field := range strings.Fields(part.used) {
			different := false
			for i := 0; i < 10 && !different; i++ { // most contents are nothing that counts
				different, _ = differs(part, field)
			}
			if !different {
				t.Errorf("%s.%s makes no difference, but is called used", kind, field)
			}
		}
		for _, field := range strings.Fields(part.refused) {
			if _, refused := differs(part, field); !refused {
				t.Errorf("%s.%s is called refused, but the pod is not", kind, field)
			}
		}
	}
}

// fillField gives the field random content. Fields of enumerated strings get
// the values that matter.
func fillField(fill *randfill.Filler, field reflect.Value) {
	choices := map[string][]string{
		"ContainerRestartPolicy": {"Always"}, "NodeSelectorOperator": {"NotIn", "Gt"}, "TolerationOperator": {"Exists", "Lt"},
		"UnsatisfiableConstraintAction": {"ScheduleAnyway"}, "NodeInclusionPolicy": {"Honor", "Ignore"},
		"LabelSelectorOperator": {"NotIn", "Exists"},
	}
	if of, ok := field.Addr().Interface().(**corev1.ResourceRequirements); ok { // random names are not for pods as a whole
		*of = &corev1.ResourceRequirements{Requests: corev1.ResourceList{"cpu": resource.MustParse("7")}}
		return
	}
	if list, ok := field.Addr().Interface().(*[]string); ok { // keys are of labels the pod has
		*list = []string{"revision"}
		return
	}
	if rules, ok := field.Addr().Interface().(*[]corev1.ContainerRestartRule); ok { // others need nothing of a node
		*rules = []corev1.ContainerRestartRule{{Action: corev1.ContainerRestartRuleActionRestartAllContainers}}
		return
	}
	kind := field.Type()
	if kind.Kind() == reflect.Pointer {
		kind = kind.Elem()
	}
	values, ok := choices[kind.Name()]
	if !ok {
		fill.Fill(field.Addr().Interface())
		return
	}
	value := reflect.New(kind)
	value.Elem().SetString(values[rand.Intn(len(values))])
	if field.Kind() == reflect.Pointer {
		field.Set(value)
		return
	}
	field.Set(value.Elem())
}
