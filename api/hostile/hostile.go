// SPDX-License-Identifier: Apache-2.0

// Package hostile fills values of API types with what no one would write, for tests: the API
// server accepts much of it, and whatever it accepts must not harm anyone else.
package hostile

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"reflect"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// Source draws values.
type Source struct {
	*rand.Rand
	words []string
}

// New returns a Source that draws the same for the same seed. More is text that fields of the
// values can have.
func New(seed uint64, more ...string) Source {
	return Source{rand.New(rand.NewPCG(seed, 0)), append(words[:len(words):len(words)], more...)}
}

// names is how many of words are names that mean something in a cluster.
const names = 16

// words are names, words of the API, and text that no field takes.
var words = []string{
	"", "a", "b", "web", "general", "small", "large", "n1", "shop", "shop/web", "default", "default-scheduler", "karpenter.sh/nodepool", "karpenter.sh/capacity-type",
	"kubernetes.io/hostname", "topology.kubernetes.io/zone", "node.kubernetes.io/instance-type", "kubernetes.io/arch", "app", "cpu", "memory", "pods", "ephemeral-storage", "hugepages-2Mi",
	"widgets.example.com/widget", "In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt", "NoSchedule", "NoExecute", "DoNotSchedule", "ScheduleAnyway",
	"Honor", "Ignore", "Always", "Never", "Pending", "Running", "Succeeded", "Failed", "PodScheduled", "Ready", "True", "False", "Unschedulable", "Deployment", "Node", "Job", "ReplicaSet",
	"DaemonSet", "WaitForFirstConsumer", "Immediate", "ebs.csi.aws.com", "spot", "on-demand", "karpenter.sh/do-not-disrupt", "true", "-1", "9223372036854775808", "1e309",
	"99999999h", "0s", "*/*", "@every 1ns", "%s%n", "\x00", "\u202e", "🐈", strings.Repeat("x", 10_000), strings.Repeat("a/", 300), "scheduling.x-k8s.io/pod-group", "AlwaysAllow", "IfHealthyBudget",
	"widget", "claim-1", "example.com", "d-1", "All", "ExactCount", `device.driver == "example.com"`, `device.attributes["example.com"].model`, `[1, 2].all(x, [1, 2].all(y, x == y))`,
}

var amounts = []string{
	"0", "1", "2", "100m", "1Gi", "-1", "-1Gi", "1n", "1e-9", "9223372036854775807", "-9223372036854775808", "9223372036854775807Ei", "1e18", "1E", "8Ei", "100k", "0.0000000001", "123456789012345678901234567890",
}

// Fill sets every field of the value at random.
func (h Source) Fill(v reflect.Value, depth int) {
	switch special := v.Addr().Interface().(type) {
	case *resource.Quantity:
		*special = resource.MustParse(amounts[h.IntN(len(amounts))])
		return
	case *metav1.Time:
		*special = metav1.NewTime([]time.Time{{}, time.Now(), time.Unix(0, 0), time.Unix(1<<34, 0), time.Now().Add(-time.Hour), time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC), time.Date(0, 1, 1, 0, 0, 1, 0, time.UTC)}[h.IntN(7)])
		return
	case *intstr.IntOrString:
		*special = []intstr.IntOrString{intstr.FromInt32(h.whole32()), intstr.FromString("50%"), intstr.FromString("-7%"), intstr.FromString("x"), intstr.FromString("99999999999%")}[h.IntN(5)]
		return
	case *runtime.RawExtension, *metav1.FieldsV1, *metav1.MicroTime, *metav1.ManagedFieldsEntry:
		return
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString(h.words[h.IntN(len(h.words))])
	case reflect.Bool:
		v.SetBool(h.IntN(2) == 0)
	case reflect.Int, reflect.Int64:
		v.SetInt([]int64{0, 1, -1, 2, 30, math.MaxInt64, math.MinInt64, math.MaxInt32, 1e12}[h.IntN(9)])
	case reflect.Int32:
		v.SetInt(int64(h.whole32()))
	case reflect.Pointer:
		if h.rarely(depth) {
			v.Set(reflect.New(v.Type().Elem()))
			h.Fill(v.Elem(), depth+1)
		}
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Uint8 || !h.rarely(depth) {
			return
		}
		n := 1 + h.IntN(3)
		if depth < 4 && h.IntN(200) == 0 {
			n = 1000
		}
		v.Set(reflect.MakeSlice(v.Type(), n, n))
		for i := range n {
			if v.Index(i).Kind() == reflect.Pointer { // the API server takes no null in a list
				v.Index(i).Set(reflect.New(v.Type().Elem().Elem()))
				h.Fill(v.Index(i).Elem(), depth+1)
				continue
			}
			h.Fill(v.Index(i), depth+1)
		}
	case reflect.Map:
		if !h.rarely(depth) {
			return
		}
		v.Set(reflect.MakeMap(v.Type()))
		for range 1 + h.IntN(4) {
			key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
			h.Fill(key, depth+1)
			h.Fill(value, depth+1)
			v.SetMapIndex(key, value)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() && h.IntN(3) > 0 {
				h.Fill(v.Field(i), depth+1)
			}
		}
	}
}

func (h Source) whole32() int32 {
	return []int32{0, 1, -1, 2, 30, math.MaxInt32, math.MinInt32, 1_000_000}[h.IntN(8)]
}

// rarely reports whether something deep is to be there.
func (h Source) rarely(depth int) bool { return h.IntN(2+depth) < 2 }

// within returns the value or a part of it.
func (h Source) within(v reflect.Value) reflect.Value {
	for h.IntN(4) > 0 {
		switch {
		case v.Kind() == reflect.Pointer && !v.IsNil():
			v = v.Elem()
		case v.Kind() == reflect.Slice && v.Len() > 0:
			v = v.Index(h.IntN(v.Len()))
		case v.Kind() == reflect.Struct && v.NumField() > 0:
			field := h.IntN(v.NumField())
			if !v.Type().Field(field).IsExported() {
				return v
			}
			v = v.Field(field)
		default:
			return v
		}
	}
	return v
}

// Name returns a name that means something in a cluster, or "".
func (h Source) Name() string { return words[h.IntN(names)] }

// Change fills up to n parts of the value, which are most often deep inside.
func (h Source) Change(v reflect.Value, n int) {
	for range n {
		h.Fill(h.within(v.Field(h.IntN(v.NumField()))), 1)
	}
}

// Sent returns the value as the API server sends it: what JSON cannot hold is lost. It
// reports whether anything is left.
func Sent[T any](value *T) (*T, bool) {
	text, err := json.Marshal(value)
	if err != nil {
		return nil, false
	}
	out := new(T)
	return out, json.Unmarshal(text, out) == nil
}
