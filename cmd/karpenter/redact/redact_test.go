// SPDX-License-Identifier: Apache-2.0

package redact

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	awsv1 "karpenter/api/aws/v1"
	kwokv1alpha1 "karpenter/api/kwok/v1alpha1"
	v1 "karpenter/api/v1"
	"karpenter/model"
	"karpenter/scenario"
)

func TestNames(t *testing.T) {
	r := &Redactor{}
	for _, x := range []struct{ name, want string }{
		{"web", "n000000"},
		{"web-7d4b9c-x2x", "n000000-n000001-n000002"},
		{"web-7d4b9c", "n000000-n000001"},
		{"db-0", "n000003-0"},
		{"report-29384750", "n000004-29384750"},
		{"account-123456789012", "n000005-n000006"},
		{"ip-10-0-1-2.ec2.internal", "n000007-n000008-n000009-n000010-n000011.n000012.n000013"},
		{"17", "n000014"},
		{"", ""},
		{"web/db-0", "n000000/n000003-0"},
	} {
		if got := r.Name(x.name); got != x.want {
			t.Errorf("%s: %s, want %s", x.name, got, x.want)
		}
	}
	for key, want := range map[string]string{
		"topology.kubernetes.io/zone": "topology.kubernetes.io/zone", "karpenter.k8s.aws/instance-cpu": "karpenter.k8s.aws/instance-cpu",
		"web": "n000000", "db/web": "n000003/n000000", "kubernetes.io.db/web": "",
	} {
		if got := r.Key(key); got != want && want != "" || want == "" && got == key {
			t.Errorf("key %s: %s, want %s", key, got, want)
		}
	}
	for key, kept := range map[string]bool{
		corev1.LabelInstanceTypeStable: true, corev1.LabelTopologyZone: true, "topology.ebs.csi.aws.com/zone": true, v1.CapacityTypeLabelKey: true,
		corev1.LabelHostname: false, v1.NodePoolLabelKey: false, awsv1.NodeClassLabelKey: false, "karpenter.kwok.sh/kwoknodeclass": false,
		"app.kubernetes.io/name": false, "team": false, "karpenter.k8s.aws/capacity-reservation-id": false,
	} {
		if got := r.Value(key, "web"); (got == "web") != kept {
			t.Errorf("the value of %s becomes %s", key, got)
		}
	}
}

const secret = "zebra"

// fill sets everything in v, to secrets where it can be a name.
func fill(v reflect.Value, field string, depth int, n *int) {
	if !v.CanSet() || depth > 14 {
		return
	}
	switch v.Interface().(type) {
	case time.Time:
		v.Set(reflect.ValueOf(time.Unix(1, 0)))
		return
	}
	if leaves[v.Type()] || kept[field] {
		return
	}
	switch t := v.Type(); v.Kind() {
	case reflect.String:
		if t == reflect.TypeFor[string]() || t == reflect.TypeFor[types.UID]() {
			*n++
			v.SetString(fmt.Sprintf("%s%d.example/%s%d", secret, *n, secret, *n))
		}
	case reflect.Pointer:
		v.Set(reflect.New(t.Elem()))
		fill(v.Elem(), field, depth+1, n)
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Uint8 {
			return
		}
		v.Set(reflect.MakeSlice(t, 1, 1))
		fill(v.Index(0), field, depth+1, n)
	case reflect.Map:
		if t.Key() == reflect.TypeFor[string]() {
			value := reflect.New(t.Elem()).Elem()
			fill(value, field, depth+1, n)
			*n++
			v.Set(reflect.MakeMap(t))
			v.SetMapIndex(reflect.ValueOf(fmt.Sprint(secret, *n)), value)
		}
	case reflect.Struct:
		if kept[t.Name()+".*"] {
			return
		}
		for i := range t.NumField() {
			fill(v.Field(i), t.Name()+"."+t.Field(i).Name, depth+1, n)
		}
	}
}

// TestRedactReplacesEveryName fills every text in the objects of recordings and in a Snapshot with a
// name, and finds none of them afterwards.
func TestRedactReplacesEveryName(t *testing.T) {
	for _, o := range []client.Object{
		&corev1.Pod{}, &corev1.Node{}, &v1.NodeClaim{}, &v1.NodePool{}, &corev1.Event{}, &corev1.Namespace{}, &appsv1.DaemonSet{}, &appsv1.Deployment{},
		&policyv1.PodDisruptionBudget{}, &corev1.PersistentVolumeClaim{}, &corev1.PersistentVolume{}, &storagev1.StorageClass{}, &storagev1.CSINode{},
		&awsv1.EC2NodeClass{}, &kwokv1alpha1.KWOKNodeClass{}, &coordinationv1.Lease{}, &corev1.ConfigMap{},
	} {
		n := 0
		fill(reflect.ValueOf(o).Elem(), "", 0, &n)
		was, err := json.Marshal(o)
		if err != nil {
			t.Fatal(err)
		}
		if _, isLease := o.(*coordinationv1.Lease); isLease {
			o.SetName("karpenter-leader-election")
		}
		got, err := (&Redactor{}).Object(o)
		if err != nil {
			t.Fatal(err)
		}
		if got == nil {
			continue
		}
		is, err := json.Marshal(got)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(was), secret) {
			t.Errorf("%T has no names: %s", o, was)
		}
		if at := strings.Index(string(is), secret); at >= 0 {
			t.Errorf("%T: %s", o, is[max(0, at-80):min(len(is), at+60)])
		}
	}
	s, n := &model.Snapshot{}, 0
	fill(reflect.ValueOf(s).Elem(), "", 0, &n)
	s.Resources = []string{"cpu", "memory", "pods", "ephemeral-storage", "nodes"}
	var was, is strings.Builder
	if err := (scenario.Situation{Snapshot: s, Policy: model.DefaultPolicy()}).Print(&was); err != nil {
		t.Fatal(err)
	}
	if err := Situation(scenario.Situation{Snapshot: s, Policy: model.DefaultPolicy()}).Print(&is); err != nil {
		t.Fatal(err)
	}
	if strings.Count(was.String(), secret) < 50 {
		t.Errorf("the Snapshot has hardly any names: %s", &was)
	}
	if at := strings.Index(is.String(), secret); at >= 0 {
		t.Errorf("the Snapshot: %s", is.String()[max(0, at-80):min(is.Len(), at+60)])
	}
}
