// SPDX-License-Identifier: Apache-2.0

package provisioning

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/cache/informertest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"karpenter/api/scheme"
	v1 "karpenter/api/v1"
	"karpenter/kube/feed"
	"karpenter/kube/volumes"
	"karpenter/model"
)

// TestVolumes tells a Provisioner, through the informers, of clusters with
// volumes. Each line is an object, with zones 1 to 3:
//
//	pool NAME zones=1,2
//	node NAME zone=1 cpu=4 limits=ebs:10    and its CSINode
//	class NAME provisioner=ebs zones=1,2 or=3 keys=KEY immediate default=DAY
//	volume NAME kind=ebs zones=1 or=2 host=NODE deleting    kinds: see volumeSource
//	claim NAME class=CLASS volume=VOLUME selected=NODE deleting lost incomplete once
//	pod NAME claims=A,B scratch=CLASS zone=1 prefer=1 on=NODE cpu=1 app=web spread=MINDOMAINS
//	pods NAME COUNT …    the same with names NAME-1 and so on; claims=own is one of each pod's own, of class=CLASS
//	delete NAME    of a pod
//	pass    prints the plan, pods with equal fates together, and the warnings
func TestVolumes(t *testing.T) {
	datadriven.Walk(t, "testdata/volumes", func(t *testing.T, path string) {
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			if d.Cmd != "cluster" {
				d.Fatalf(t, "unknown directive %s", d.Cmd)
			}
			x := newStorage(t)
			var out strings.Builder
			for line := range strings.Lines(d.Input) {
				if words := strings.Fields(line); len(words) > 0 {
					out.WriteString(x.do(words))
				}
			}
			return out.String()
		})
	})
}

// storage is a stage whose world hangs on informers.
type storage struct {
	*stage
	informers *informertest.FakeInformers
	plan      *model.Plan
}

func newStorage(t *testing.T) *storage {
	t.Helper()
	objects := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, scheme.AddToScheme} {
		if err := add(objects); err != nil {
			t.Fatal(err)
		}
	}
	x := &storage{stage: newStage(t), informers: &informertest.FakeInformers{Scheme: objects}}
	rules := volumes.Rules{Drivers: sets.New("odd"), TopologyKeys: sets.New("example.com/rack")}
	if _, err := feed.Start(t.Context(), x.informers, x.world, x.Convert, feed.Sources{Volumes: volumes.New(x.Convert.Labels, rules)}); err != nil {
		t.Fatal(err)
	}
	decide := x.Decide
	x.Decide = func(s *model.Snapshot) *model.Plan {
		x.plan = decide(s)
		return x.plan
	}
	return x
}

func (x *storage) tell(o client.Object) {
	x.t.Helper()
	informer, err := x.informers.FakeInformerFor(x.t.Context(), o)
	if err != nil {
		x.t.Fatal(err)
	}
	informer.Add(o)
}

func (x *storage) forget(o client.Object) {
	x.t.Helper()
	informer, err := x.informers.FakeInformerFor(x.t.Context(), o)
	if err != nil {
		x.t.Fatal(err)
	}
	informer.Delete(o)
}

// words are what follows the name: flags and key=value.
type words map[string]string

func (w words) has(flag string) bool { _, ok := w[flag]; return ok }

func (w words) list(key string) []string {
	return strings.FieldsFunc(w[key], func(r rune) bool { return r == ',' })
}

// zones reads 1,2 as test-zone-1 and test-zone-2.
func (w words) zones(key string) []string {
	var out []string
	for _, n := range w.list(key) {
		out = append(out, "test-zone-"+n)
	}
	return out
}

func (w words) deleted() *metav1.Time {
	if !w.has("deleting") {
		return nil
	}
	return &metav1.Time{Time: time.Unix(1, 0)}
}

func (x *storage) do(line []string) string {
	x.t.Helper()
	if line[0] == "pass" {
		x.plan = nil
		x.mustPass()
		return x.outcome()
	}
	kind, name, w := line[0], line[1], words{}
	for _, word := range line[2:] {
		k, v, _ := strings.Cut(word, "=")
		w[k] = v
	}
	switch kind {
	case "pool":
		x.pool(name, func(p *v1.NodePool) {
			if w.has("zones") {
				p.Spec.Template.Spec.Requirements = []v1.NodeSelectorRequirementWithMinValues{{Key: model.LabelZone, Operator: corev1.NodeSelectorOpIn, Values: w.zones("zones")}}
			}
		})
	case "node":
		x.node(name, w)
	case "class":
		x.tell(class(name, w))
	case "volume":
		x.tell(volume(name, w))
	case "claim":
		x.tell(claim(name, w))
	case "pod":
		x.tell(pod(name, w))
	case "delete":
		x.forget(pod(name, w))
	case "pods":
		count, err := strconv.Atoi(line[2])
		if err != nil {
			x.t.Fatal(err)
		}
		x.pods(name, count, w)
	default:
		x.t.Fatalf("unknown line %v", line)
	}
	return ""
}

func (x *storage) node(name string, w words) {
	have := corev1.ResourceList{"cpu": resource.MustParse(w["cpu"]), "memory": resource.MustParse("64Gi"), "pods": resource.MustParse("110")}
	x.tell(&corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{model.LabelHostname: name, model.LabelZone: w.zones("zone")[0]}},
		Status:     corev1.NodeStatus{Capacity: have, Allocatable: have},
	})
	node := &storagev1.CSINode{ObjectMeta: metav1.ObjectMeta{Name: name}}
	for _, limit := range w.list("limits") {
		driver, text, _ := strings.Cut(limit, ":")
		n, err := strconv.Atoi(text)
		if err != nil {
			x.t.Fatal(err)
		}
		node.Spec.Drivers = append(node.Spec.Drivers, storagev1.CSINodeDriver{Name: driver, Allocatable: &storagev1.VolumeNodeResources{Count: ptr.To(int32(n))}})
	}
	x.tell(node)
}

func class(name string, w words) *storagev1.StorageClass {
	c := &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Provisioner: "ebs"}
	c.VolumeBindingMode = ptr.To(storagev1.VolumeBindingWaitForFirstConsumer)
	if w.has("provisioner") {
		c.Provisioner = w["provisioner"]
	}
	if w.has("immediate") {
		c.VolumeBindingMode = ptr.To(storagev1.VolumeBindingImmediate)
	}
	if w.has("default") {
		c.Annotations = map[string]string{"storageclass.kubernetes.io/is-default-class": "true"}
		day, _ := strconv.Atoi(w["default"])
		c.CreationTimestamp = metav1.Date(2026, 1, day, 0, 0, 0, 0, time.UTC)
	}
	key := model.LabelZone
	if w.has("keys") {
		key = w["keys"]
	}
	for _, zones := range [][]string{w.zones("zones"), w.zones("or")} {
		if len(zones) > 0 {
			c.AllowedTopologies = append(c.AllowedTopologies, corev1.TopologySelectorTerm{
				MatchLabelExpressions: []corev1.TopologySelectorLabelRequirement{{Key: key, Values: zones}},
			})
		}
	}
	return c
}

func volume(name string, w words) *corev1.PersistentVolume {
	v := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: name, DeletionTimestamp: w.deleted()}}
	v.Spec.PersistentVolumeSource = volumeSource(w["kind"])
	var terms []corev1.NodeSelectorTerm
	for _, zones := range [][]string{w.zones("zones"), w.zones("or")} {
		if len(zones) > 0 {
			terms = append(terms, corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{
				{Key: model.LabelZone, Operator: corev1.NodeSelectorOpIn, Values: zones},
			}})
		}
	}
	if host := w["host"]; host != "" {
		if len(terms) == 0 {
			terms = make([]corev1.NodeSelectorTerm, 1)
		}
		terms[0].MatchExpressions = append(terms[0].MatchExpressions, corev1.NodeSelectorRequirement{
			Key: model.LabelHostname, Operator: corev1.NodeSelectorOpIn, Values: []string{host},
		})
	}
	if len(terms) > 0 {
		v.Spec.NodeAffinity = &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: terms}}
	}
	return v
}

// volumeSource returns the source of a kind: nfs, local, host, aws, or else
// that of the CSI driver with this name, ebs if there is none.
func volumeSource(kind string) corev1.PersistentVolumeSource {
	switch kind {
	case "nfs":
		return corev1.PersistentVolumeSource{NFS: &corev1.NFSVolumeSource{Server: "s", Path: "/"}}
	case "local":
		return corev1.PersistentVolumeSource{Local: &corev1.LocalVolumeSource{Path: "/disk"}}
	case "host":
		return corev1.PersistentVolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/disk"}}
	case "aws":
		return corev1.PersistentVolumeSource{AWSElasticBlockStore: &corev1.AWSElasticBlockStoreVolumeSource{VolumeID: "v"}}
	case "":
		kind = "ebs"
	}
	return corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{Driver: kind, VolumeHandle: "v"}}
}

func claim(name string, w words) *corev1.PersistentVolumeClaim {
	c := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, DeletionTimestamp: w.deleted()}}
	c.Spec.VolumeName = w["volume"]
	if w.has("class") {
		c.Spec.StorageClassName = ptr.To(w["class"])
	}
	c.Annotations = map[string]string{}
	if !w.has("incomplete") {
		c.Annotations["pv.kubernetes.io/bind-completed"] = "yes"
	}
	if w.has("selected") {
		c.Annotations["volume.kubernetes.io/selected-node"] = w["selected"]
	}
	if w.has("once") {
		c.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOncePod}
	}
	if w.has("lost") {
		c.Status.Phase = corev1.ClaimLost
	}
	return c
}

func pod(name string, w words) *corev1.Pod {
	cpu := "1"
	if w.has("cpu") {
		cpu = w["cpu"]
	}
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: types.UID(name), Labels: map[string]string{"app": w["app"]}}}
	p.Spec.NodeName = w["on"]
	p.Spec.Containers = []corev1.Container{{Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{"cpu": resource.MustParse(cpu)}}}}
	p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable}}
	for _, c := range w.list("claims") {
		p.Spec.Volumes = append(p.Spec.Volumes, corev1.Volume{Name: c, VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: c},
		}})
	}
	if w.has("scratch") {
		template := &corev1.PersistentVolumeClaimTemplate{}
		if w["scratch"] != "" {
			template.Spec.StorageClassName = ptr.To(w["scratch"])
		}
		p.Spec.Volumes = append(p.Spec.Volumes, corev1.Volume{Name: "scratch", VolumeSource: corev1.VolumeSource{
			Ephemeral: &corev1.EphemeralVolumeSource{VolumeClaimTemplate: template},
		}})
	}
	if w.has("zone") {
		p.Spec.NodeSelector = map[string]string{model.LabelZone: w.zones("zone")[0]}
	}
	if w.has("prefer") {
		p.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{PreferredDuringSchedulingIgnoredDuringExecution: []corev1.PreferredSchedulingTerm{{
			Weight: 100, Preference: corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{
				{Key: model.LabelZone, Operator: corev1.NodeSelectorOpIn, Values: w.zones("prefer")},
			}},
		}}}}
	}
	if w.has("spread") {
		least, _ := strconv.Atoi(w["spread"])
		p.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{
			MaxSkew: 1, TopologyKey: model.LabelZone, WhenUnsatisfiable: corev1.DoNotSchedule, MinDomains: ptr.To(int32(least)),
			LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": w["app"]}},
		}}
	}
	return p
}

func (x *storage) pods(name string, count int, w words) {
	for i := range count {
		own := words{}
		for k, v := range w {
			own[k] = v
		}
		each := fmt.Sprint(name, "-", i+1)
		if w["claims"] == "own" {
			own["claims"] = "data-" + each
			x.tell(claim("data-"+each, words{"class": w["class"]}))
		}
		x.tell(pod(each, own))
	}
}

// outcome prints the plan and the warnings.
func (x *storage) outcome() string {
	var out []string
	placed := map[string]int{}
	for _, p := range x.plan.Placements {
		placed[p.Node]++
	}
	for node, n := range placed {
		out = append(out, fmt.Sprintf("%d onto node %s", n, node))
	}
	for _, l := range x.plan.Launches {
		zone := "any zone"
		if r, ok := l.Requirements.Get(model.LabelZone); ok {
			zone = r.String()
		}
		out = append(out, fmt.Sprintf("%d onto a new node, %s", len(l.Pods), strings.TrimPrefix(zone, model.LabelZone+" ")))
	}
	slices.Sort(out)
	for _, text := range x.said() {
		if strings.HasPrefix(text, "FailedScheduling") {
			out = append(out, text)
		}
	}
	return strings.Join(append(out, ""), "\n")
}
