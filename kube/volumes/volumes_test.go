// SPDX-License-Identifier: Apache-2.0

package volumes_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/yaml"

	awsv1 "karpenter/api/aws/v1"
	azurev1beta1 "karpenter/api/azure/v1beta1"
	v1 "karpenter/api/v1"
	"karpenter/kube/volumes"
	"karpenter/model"
)

// situation is a Store and the pods that were handed to it.
type situation struct {
	t     *testing.T
	store *volumes.Store
	pods  map[string]*corev1.Pod
}

// TestCases tells a Store of the objects in testdata. Without saying so,
// objects are in namespace default, and a claim that names its volume is
// bound.
//
//	set     the manifests; prints the other pods that must be looked at again
//	delete  what the manifests name; prints the same
//	pod     what the Store answers for pods with such specs, which it knows or not
//	limits  of a CSINode
func TestCases(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		x := &situation{t: t, pods: map[string]*corev1.Pod{}, store: volumes.New(
			v1.DefaultLabels().With(v1.Labels{Aliases: map[string]string{"csi.example.com/zone": "topology.kubernetes.io/zone"}}).With(awsv1.Labels()).With(azurev1beta1.Labels()),
			volumes.Rules{Drivers: sets.New("odd.example.com"), TopologyKeys: sets.New("example.com/rack")},
		)}
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			x.t = t
			var out strings.Builder
			for _, text := range strings.Split(d.Input, "\n...\n") {
				switch d.Cmd {
				case "set":
					out.WriteString(x.set(text))
				case "delete":
					out.WriteString(x.delete(text))
				case "pod":
					out.WriteString(x.show(x.pod(text)))
				case "limits":
					limits := volumes.Limits(read(t, text, &storagev1.CSINode{}))
					for _, driver := range slices.Sorted(maps.Keys(limits)) {
						fmt.Fprintf(&out, "%s %d\n", driver, limits[driver])
					}
				default:
					d.Fatalf(t, "unknown directive %s", d.Cmd)
				}
			}
			return out.String()
		})
	})
}

func read[T any](t *testing.T, text string, into *T) *T {
	t.Helper()
	if err := yaml.UnmarshalStrict([]byte(text), into); err != nil {
		t.Fatalf("read %T: %v\n%s", into, err, text)
	}
	return into
}

func (x *situation) kind(text string) string {
	var meta metav1.TypeMeta
	if err := yaml.Unmarshal([]byte(text), &meta); err != nil {
		x.t.Fatal(err)
	}
	return meta.Kind
}

func (x *situation) pod(text string) *corev1.Pod {
	p := read(x.t, text, &corev1.Pod{})
	if p.Name == "" {
		p.Name = "web"
	}
	p.Namespace = "default"
	if p.UID == "" {
		p.UID = "uid"
	}
	return p
}

func (x *situation) claim(text string) *corev1.PersistentVolumeClaim {
	c := read(x.t, text, &corev1.PersistentVolumeClaim{})
	c.Namespace = "default"
	if c.Annotations == nil && c.Spec.VolumeName != "" {
		c.Annotations = map[string]string{"pv.kubernetes.io/bind-completed": "yes"}
	}
	return c
}

func (x *situation) set(text string) string {
	switch kind := x.kind(text); kind {
	case "Pod":
		p := x.pod(text)
		x.pods[p.Name] = p
		return touched(x.store.SetPod(p))
	case "PersistentVolumeClaim":
		return touched(x.store.SetClaim(x.claim(text)))
	case "PersistentVolume":
		return touched(x.store.SetVolume(read(x.t, text, &corev1.PersistentVolume{})))
	case "StorageClass":
		return touched(x.store.SetClass(read(x.t, text, &storagev1.StorageClass{})))
	default:
		x.t.Fatalf("kind %q", kind)
		return ""
	}
}

func (x *situation) delete(text string) string {
	switch kind := x.kind(text); kind {
	case "Pod":
		p := x.pod(text)
		delete(x.pods, p.Name)
		return touched(x.store.DeletePod(p))
	case "PersistentVolumeClaim":
		return touched(x.store.DeleteClaim(x.claim(text)))
	case "PersistentVolume":
		return touched(x.store.DeleteVolume(read(x.t, text, &corev1.PersistentVolume{})))
	case "StorageClass":
		return touched(x.store.DeleteClass(read(x.t, text, &storagev1.StorageClass{})))
	default:
		x.t.Fatalf("kind %q", kind)
		return ""
	}
}

func touched(pods []*corev1.Pod) string {
	var out strings.Builder
	for _, p := range pods {
		fmt.Fprintf(&out, "look again at %s\n", p.Name)
	}
	return out.String()
}

// show prints the Answer for the pod; for one that only has a name, as it was
// handed to the Store.
func (x *situation) show(p *corev1.Pod) string {
	if known, ok := x.pods[p.Name]; ok && len(p.Spec.Volumes) == 0 {
		p = known
	}
	a := x.store.Of(p)
	var out []string
	for _, r := range a.Refused {
		out = append(out, "refused: "+r)
	}
	for _, v := range a.Volumes {
		out = append(out, fmt.Sprintf("attaches: %s %d %v", v.Driver, v.Own, v.Shared))
	}
	for _, t := range a.Terms {
		out = append(out, "in: "+terms(t))
	}
	if len(a.Claims) > 0 {
		out = append(out, "for: "+strings.Join(a.Claims, ", "))
	}
	if len(a.Together) > 0 {
		out = append(out, "together with others: "+strings.Join(a.Together, ", "))
	}
	if len(out) == 0 {
		return "anywhere\n"
	}
	return strings.Join(out, "\n") + "\n"
}

func terms(t model.Requirements) string {
	var out []string
	for _, r := range t {
		out = append(out, r.String())
	}
	return strings.Join(out, ", ")
}
