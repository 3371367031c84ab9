// SPDX-License-Identifier: Apache-2.0

// Package redact replaces names in what is written to files, so that the files can be shared.
//
// The same rule holds for objects of Kubernetes and for values of package model: every
// text is a name, except in four cases, and each word of a name becomes a pseudonym,
// always the same one. The four cases are:
//
//   - values of a Go type other than string: conditions, phases, operators, effects, resources
//   - fields that the table kept lists
//   - keys of labels and taints in the domains of Kubernetes and Karpenter, and the values of
//     those that describe an instance: its type, zone, architecture and the like
//   - "true", "false" and a number of up to eight digits at the end of a name, such as the
//     ordinal of a StatefulSet
//
// Texts for people are dropped, or keep the words that the program itself writes.
package redact

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"
	"unicode"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	awsv1 "karpenter/api/aws/v1"
	kwokv1alpha1 "karpenter/api/kwok/v1alpha1"
	v1 "karpenter/api/v1"
	"karpenter/model"
)

// Redactor replaces names. The zero value is ready for use. It is not safe for concurrent use.
type Redactor struct {
	pseudonyms map[string]string
	learning   bool
}

// Learn assigns pseudonyms to the words in v in alphabetical order, and does not change v.
// Lists that are sorted by name then keep their order, on which plans depend if pods or nodes
// differ in nothing else. Without Learn, words get pseudonyms in the order in which they occur.
func Learn[T any](r *Redactor, v *T) {
	r.learning = true
	r.walk(reflect.ValueOf(v).Elem(), "")
	r.learning = false
	words := make([]string, 0, len(r.pseudonyms))
	for word := range r.pseudonyms {
		words = append(words, word)
	}
	slices.Sort(words)
	for i, word := range words {
		r.pseudonyms[word] = pseudonym(i)
	}
}

// Redacted returns v with pseudonyms. It shares nothing with v that has names.
func Redacted[T any](r *Redactor, v *T) *T {
	out := r.walk(reflect.ValueOf(v).Elem(), "").Interface().(T)
	return &out
}

func pseudonym(n int) string { return fmt.Sprintf("n%06d", n) }

// Name returns the name with pseudonyms. It keeps the separators between words,
// so that names with a common beginning still have one.
func (r *Redactor) Name(name string) string {
	var b strings.Builder
	for name != "" {
		at := strings.IndexFunc(name, separates)
		switch at {
		case 0:
			b.WriteByte(name[0])
			name = name[1:]
		case -1:
			if b.Len() > 0 && ordinal(name) {
				b.WriteString(name)
			} else {
				b.WriteString(r.word(name))
			}
			name = ""
		default:
			b.WriteString(r.word(name[:at]))
			name = name[at:]
		}
	}
	return b.String()
}

func separates(c rune) bool {
	return c < unicode.MaxASCII && !unicode.IsLetter(c) && !unicode.IsDigit(c)
}

// ordinal reports whether the last word of a name is only a running number.
func ordinal(word string) bool {
	const most = 8 // CronJobs use minutes since 1970, which have eight digits
	return len(word) <= most && strings.Trim(word, "0123456789") == ""
}

func (r *Redactor) word(word string) string {
	if word == "true" || word == "false" {
		return word
	}
	p, ok := r.pseudonyms[word]
	if !ok {
		if r.pseudonyms == nil {
			r.pseudonyms = map[string]string{}
		}
		p = pseudonym(len(r.pseudonyms))
		r.pseudonyms[word] = p
	}
	return p
}

// Key returns the key of a label, a taint, an annotation or a topology.
func (r *Redactor) Key(key string) string {
	domain, _, prefixed := strings.Cut(key, "/")
	for _, ours := range []string{"kubernetes.io", "k8s.io", "karpenter.sh", "k8s.aws", "karpenter.kwok.sh", "csi.aws.com"} {
		if prefixed && (domain == ours || strings.HasSuffix(domain, "."+ours)) {
			return key
		}
	}
	if key == model.FieldName {
		return key
	}
	return r.Name(key)
}

// Value returns the value of the label or taint with the key.
func (r *Redactor) Value(key, value string) string {
	if plain(key) {
		return value
	}
	return r.Name(value)
}

// plain reports whether the values of the key, or of the key that it is an alias of,
// contain no names.
func plain(key string) bool {
	canonical, _ := known.Canonical(key, "")
	return describes[key] || describes[canonical]
}

// known are the labels of all providers.
var known = v1.DefaultLabels().With(awsv1.Labels()).With(kwokv1alpha1.Labels())

// describes are the keys of labels whose values describe an instance and contain no
// names.
var describes = func() map[string]bool {
	out := map[string]bool{}
	for key := range known.WellKnown {
		out[key] = true
	}
	for _, name := range []string{
		corev1.LabelHostname, v1.NodePoolLabelKey, awsv1.NodeClassLabelKey, model.FieldName,
		v1.NodeClassLabelKey(schema.GroupKind{Group: kwokv1alpha1.Group, Kind: kwokv1alpha1.Kind}),
	} {
		delete(out, name)
	}
	for key := range out {
		if strings.Contains(key, "reservation-id") {
			delete(out, key)
		}
	}
	return out
}()

// kept are fields whose text contains no names, and dropped are fields that are left out.
// Both list them by type and field.
var (
	kept    = set(keptFields)
	dropped = set(droppedFields)
)

const keptFields = `
TypeMeta.Kind TypeMeta.APIVersion OwnerReference.APIVersion OwnerReference.Kind ObjectReference.Kind ObjectReference.APIVersion
ObjectMeta.ResourceVersion ObjectMeta.Finalizers Condition.Type Condition.Reason Event.Reason Event.Type EventSource.Component Event.ReportingController
NodeClassReference.Group NodeClassReference.Kind Budget.Nodes Budget.Schedule Disruption.Nodes
LocalObjectReference.Kind NodeSelectorTerm.Kind PodSpec.PriorityClassName StorageClass.Provisioner CSINodeDriver.Name CSIPersistentVolumeSource.Driver
PodCondition.Reason NodeCondition.Reason NodeSystemInfo.KubeletVersion NodeSystemInfo.OperatingSystem NodeSystemInfo.Architecture
CustomResourceDefinition.* LeaseSpec.RenewTime
Snapshot.Resources InstanceType.Name Offering.Zone Offering.CapacityType VolumeLimit.Driver Volumes.Driver Attached.Driver
Extra.Name Extra.Zone HostPort.IP HostPort.Protocol Launch.Type Launch.Zone Launch.CapacityType
Decision.Kind Group.Type Group.Zone Group.CapacityType Offering.Type`

const droppedFields = `
ObjectMeta.ManagedFields ObjectMeta.SelfLink ObjectMeta.GenerateName Condition.Message PodCondition.Message NodeCondition.Message Event.Message PodStatus.Message PodStatus.Reason
PodStatus.ContainerStatuses PodStatus.InitContainerStatuses PodStatus.EphemeralContainerStatuses PodStatus.PodIP PodStatus.PodIPs PodStatus.HostIP PodStatus.HostIPs
Container.Image Container.Command Container.Args Container.Env Container.EnvFrom Container.WorkingDir Container.VolumeMounts Container.LivenessProbe
Container.ReadinessProbe Container.StartupProbe Container.Lifecycle PodSpec.ImagePullSecrets PodSpec.HostAliases PodSpec.DNSConfig
NodeSpec.PodCIDR NodeSpec.PodCIDRs NodeStatus.Addresses NodeStatus.Images NodeStatus.VolumesAttached NodeStatus.VolumesInUse NodeStatus.Config
EC2NodeClass.Spec EC2NodeClass.Status KWOKNodeClass.Spec StorageClass.Parameters CSIPersistentVolumeSource.VolumeAttributes ConfigMap.Data ConfigMap.BinaryData Shape.Key Decision.Reasons`

func set(text string) map[string]bool {
	out := map[string]bool{}
	for _, field := range strings.Fields(text) {
		out[field] = true
	}
	return out
}

// annotations are those that are kept, with their values.
var annotations = map[string]bool{
	v1.DoNotDisruptAnnotationKey: true, v1.DisruptionCostAnnotationKey: true, v1.SurgeFirstAnnotationKey: true, corev1.PodDeletionCost: true,
	v1.ReplacesAnnotationKey: true, v1.RebalanceRecommendedAnnotationKey: true,
}

// ours are the words of the messages that the program writes into a Snapshot.
var ours = set(`
the The a node Node is not managed by NodeClaim has no yet being deleted rebooting initialized annotation karpenter sh do disrupt true label there NodePool
instance types pod which holds until PodDisruptionBudget PodDisruptionBudgets more than one and allows disruption of nominated for several objects have
provider ID same ready static valid it its to be on was made from another template drifted nodes roll out halted resourceClaims supported in volume claim
PersistentVolumeClaim kubernetes io nodepool instances pods are expected`)

// text returns a message in which all words that are not in ours are replaced.
func (r *Redactor) text(text string) string {
	if text == model.BlockedByNomination {
		return text
	}
	var b strings.Builder
	for text != "" {
		at := strings.IndexFunc(text, separates)
		if at == 0 {
			b.WriteByte(text[0])
			text = text[1:]
			continue
		}
		if at < 0 {
			at = len(text)
		}
		if ours[text[:at]] {
			b.WriteString(text[:at])
		} else {
			b.WriteString(r.word(text[:at]))
		}
		text = text[at:]
	}
	return b.String()
}

// texts are the fields of package model that contain messages.
var texts = set(`NodeDisruption.Blocked NodeDisruption.Held NodeDisruption.Unhealthy Pool.Unavailable Disruption.Halted ` + whyNot)

// whyNot is the only list of messages in a Shape: what no plan can honor.
const whyNot = "Shape.[]string"

// leaves are types with a text format of their own that contain no names.
var leaves = map[reflect.Type]bool{
	reflect.TypeFor[time.Time](): true, reflect.TypeFor[metav1.Time](): true, reflect.TypeFor[metav1.MicroTime](): true, reflect.TypeFor[metav1.Duration](): true,
	reflect.TypeFor[resource.Quantity](): true, reflect.TypeFor[intstr.IntOrString](): true, reflect.TypeFor[v1.NillableDuration](): true,
}

// walk returns a copy of the value with pseudonyms. field is the type and the field that
// contain the value.
func (r *Redactor) walk(v reflect.Value, field string) reflect.Value {
	t := v.Type()
	if leaves[t] || kept[field] {
		return v
	}
	switch t.Kind() {
	case reflect.String:
		return r.string(v, field)
	case reflect.Pointer, reflect.Interface:
		if v.IsNil() {
			return v
		}
		if t.Kind() == reflect.Interface {
			return r.walk(v.Elem(), field)
		}
		out := reflect.New(t.Elem())
		out.Elem().Set(r.walk(v.Elem(), field))
		return out
	case reflect.Slice:
		if v.IsNil() || t.Elem().Kind() == reflect.Uint8 {
			return reflect.Zero(t)
		}
		out := reflect.MakeSlice(t, v.Len(), v.Len())
		for i := range v.Len() {
			out.Index(i).Set(r.walk(v.Index(i), field))
		}
		return out
	case reflect.Map:
		return r.mapped(v, field)
	case reflect.Struct:
		return r.structure(v)
	}
	return v
}

func (r *Redactor) string(v reflect.Value, field string) reflect.Value {
	t := v.Type()
	if t != reflect.TypeFor[string]() && t != reflect.TypeFor[types.UID]() {
		return v
	}
	out := reflect.New(t).Elem()
	switch _, name, _ := strings.Cut(field, "."); {
	case texts[field]:
		out.SetString(r.text(v.String()))
	case name == "Key" || name == "TopologyKey" || name == "MatchLabelKeys" || name == "MismatchLabelKeys":
		out.SetString(r.Key(v.String()))
	default:
		out.SetString(r.Name(v.String()))
	}
	return out
}

func (r *Redactor) mapped(v reflect.Value, field string) reflect.Value {
	t := v.Type()
	if v.IsNil() || t.Key() != reflect.TypeFor[string]() {
		return v // by resource, or by reason
	}
	out := reflect.MakeMapWithSize(t, v.Len())
	keys := v.MapKeys()
	slices.SortFunc(keys, func(a, b reflect.Value) int { return strings.Compare(a.String(), b.String()) })
	for _, key := range keys {
		k, value := key.String(), v.MapIndex(key)
		switch {
		case strings.HasSuffix(field, ".Annotations"):
			if annotations[k] {
				out.SetMapIndex(key, value)
			}
		case t.Elem() == reflect.TypeFor[string]():
			out.SetMapIndex(reflect.ValueOf(r.Key(k)), reflect.ValueOf(r.Value(k, value.String())))
		default:
			out.SetMapIndex(reflect.ValueOf(r.Key(k)), r.walk(value, field))
		}
	}
	return out
}

func (r *Redactor) structure(v reflect.Value) reflect.Value {
	t := v.Type()
	out := reflect.New(t).Elem()
	if kept[t.Name()+".*"] {
		return v
	}
	key := v.FieldByName("Key")
	for i := range t.NumField() {
		f := t.Field(i)
		name := t.Name() + "." + f.Name
		switch {
		case !f.IsExported() || dropped[name]:
		case key.IsValid() && key.Kind() == reflect.String && plain(key.String()) && (f.Name == "Value" || f.Name == "Values"):
			out.Field(i).Set(v.Field(i))
		case t == reflect.TypeFor[model.Shape]() && f.Type == reflect.TypeFor[[]string]():
			out.Field(i).Set(r.walk(v.Field(i), whyNot))
		default:
			out.Field(i).Set(r.walk(v.Field(i), name))
		}
	}
	return out
}
