// SPDX-License-Identifier: Apache-2.0

package convert_test

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/yaml"

	v1 "karpenter/api/v1"
	"karpenter/kube/convert"
	"karpenter/kube/volumes"
	"karpenter/model"
	"karpenter/scenario"
	"karpenter/world"
)

func converter() convert.Converter {
	return convert.Converter{
		Axis:    model.NewAxis(),
		Volumes: store().Of,
		Labels: v1.DefaultLabels().With(v1.Labels{
			WellKnown:    sets.New("example.com/cores"),
			ValueAliases: map[string]map[string]string{"kubernetes.io/arch": {"x86_64": "amd64"}},
		}),
		Manages:        func(ref *v1.NodeClassReference) bool { return ref != nil && ref.Group == "example.com" },
		StaticCapacity: true,
	}
}

// store knows a claim that is bound to a volume in zone z1, and a class.
func store() *volumes.Store {
	s := volumes.New(v1.DefaultLabels(), volumes.Rules{})
	pv := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "pv", Labels: map[string]string{corev1.LabelTopologyZone: "z1"}}}
	pv.Spec.CSI = &corev1.CSIPersistentVolumeSource{Driver: "disks.example.com"}
	s.SetVolume(pv)
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{
		Namespace: "default", Name: "data", Annotations: map[string]string{"pv.kubernetes.io/bind-completed": "yes"},
	}}
	claim.Spec.VolumeName = "pv"
	s.SetClaim(claim)
	wait := storagev1.VolumeBindingWaitForFirstConsumer
	s.SetClass(&storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: "wait"}, Provisioner: "disks.example.com", VolumeBindingMode: &wait})
	return s
}

// TestCases converts the manifests in testdata. Launches are written below a
// NodePool, after a line of dashes.
func TestCases(t *testing.T) {
	datadriven.Walk(t, "testdata/cases", func(t *testing.T, path string) {
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			c := converter()
			switch d.Cmd {
			case "pod":
				return showPod(c, c.Pod(read(t, d.Input, &corev1.Pod{})))
			case "daemonset":
				daemon, ok := c.Daemon(read(t, d.Input, &appsv1.DaemonSet{}))
				if !ok {
					return "no room kept\n"
				}
				return fmt.Sprintf("%s: %s\n", daemon.Name, scenario.ShapeText(daemon.Shape, c.Axis.Names()))
			case "node":
				return showNode(c, c.Node(read(t, d.Input, &corev1.Node{})))
			case "nodeclaim":
				return showClaim(c, read(t, d.Input, &v1.NodeClaim{}))
			case "nodepool":
				return showPool(c, read(t, d.Input, &v1.NodePool{}))
			case "pdb":
				return showBudget(c.DisruptionBudget(read(t, d.Input, &policyv1.PodDisruptionBudget{})))
			case "launch":
				return launch(t, c, d.Input)
			}
			d.Fatalf(t, "unknown directive %s", d.Cmd)
			return ""
		})
	})
}

func read[T any](t *testing.T, text string, into *T) *T {
	t.Helper()
	if err := yaml.UnmarshalStrict([]byte(text), into); err != nil {
		t.Fatalf("read %T: %v", into, err)
	}
	return into
}

func showPod(c convert.Converter, p world.Pod) string {
	var words []string
	add := func(cond bool, word string) {
		if cond {
			words = append(words, word)
		}
	}
	add(p.Pending, "pending")
	add(p.Node != "", "on "+p.Node)
	add(p.Terminal, "terminal")
	add(p.Terminating, "terminating")
	add(p.Daemon, "daemon")
	add(p.Static, "static")
	add(p.Reschedulable, "reschedulable")
	add(p.Nominated != "", "nominated to "+p.Nominated)
	add(p.Awaits != "", "awaits "+p.Awaits)
	add(p.Unready, "unready")
	add(p.Resizing, "resizing")
	add(p.Stays, "stays")
	add(p.Protected && p.ProtectedUntil.IsZero(), "protected")
	add(p.Protected && !p.ProtectedUntil.IsZero(), "protected until "+p.ProtectedUntil.UTC().Format(time.TimeOnly))
	add(p.Claims != "", "with volumes of "+p.Claims)
	add(p.EvictionCost != 1, fmt.Sprintf("cost %.7g", p.EvictionCost))
	shape := *p.Shape
	shape.Requests = c.Resources(c.Requested(&p))
	out := fmt.Sprintf("%s\n%s\n", strings.Join(words, ", "), scenario.ShapeText(&shape, c.Axis.Names()))
	for _, r := range p.Shape.Refused {
		out += "refused: " + r + "\n"
	}
	return out
}

func showNode(c convert.Converter, n world.Node) string {
	return fmt.Sprintf("%s %s ready=%t deleting=%t do-not-disrupt=%t\nlabels %s\ntaints %v\ncapacity %s\nallocatable %s\n",
		n.Name, n.ProviderID, n.Ready, n.Deleting, n.DoNotDisrupt, labels.Set(n.Labels), n.Taints,
		n.Capacity.Format(c.Axis.Names()), n.Allocatable.Format(c.Axis.Names()))
}

func showClaim(c convert.Converter, claim *v1.NodeClaim) string {
	n, ok := c.Claim(claim)
	if !ok {
		return "not managed\n"
	}
	consolidatable := strconv.FormatBool(n.Consolidatable)
	for _, at := range []struct {
		word string
		time time.Time
	}{{" drifted at ", n.Drifted}, {" quiet since ", n.QuietSince}} {
		if !at.time.IsZero() {
			consolidatable += at.word + at.time.UTC().Format(time.TimeOnly)
		}
	}
	if n.Deadline {
		consolidatable += " deadline"
	}
	return fmt.Sprintf("%s %s deleting=%t terminating=%t consolidatable=%s\nlabels %s\nrequirements %s\ntaints %v startup %v\nrequests %s\ncapacity %s\nallocatable %s\n",
		n.Name, n.ProviderID, n.Deleting, n.Terminating, consolidatable, labels.Set(n.Labels), n.Requirements,
		n.Taints, n.StartupTaints, n.Requests.Format(c.Axis.Names()), n.Capacity.Format(c.Axis.Names()), n.Allocatable.Format(c.Axis.Names()))
}

func showPool(c convert.Converter, pool *v1.NodePool) string {
	p, ok := c.Pool(pool)
	if !ok {
		return "not managed\n"
	}
	out := fmt.Sprintf("%s weight %d\nrequirements %s\ntaints %v\n", p.Name, p.Weight, p.Requirements, p.Taints)
	for _, l := range p.Limits {
		out += fmt.Sprintf("limit %s %s\n", c.Axis.Names()[l.Resource], model.FormatQuantity(l.Resource, l.Max))
	}
	if p.Replicas != nil {
		out += fmt.Sprintf("replicas %d\n", *p.Replicas)
	}
	if p.Unavailable != "" {
		out += "unavailable: " + p.Unavailable + "\n"
	}
	if p.Policy != "" {
		out += fmt.Sprintf("%s after %s never=%t\n", p.Policy, p.ConsolidateAfter, p.Never)
	}
	noon := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	out += "allowed of 25:"
	for _, r := range []model.Reason{model.Empty, model.Drifted, model.Underutilized} {
		out += fmt.Sprintf(" %s %d", r, p.Allowed(noon, 25, r))
	}
	return out + "\n"
}

func showBudget(b world.DisruptionBudget) string {
	var selected []string
	for _, l := range []labels.Set{{"app": "a"}, {"app": "b"}, {}} {
		if b.Selects(l) {
			selected = append(selected, "{"+l.String()+"}")
		}
	}
	return fmt.Sprintf("%s/%s allowed=%d never=%t unready-exempt=%t\nselects %s (%s)\n",
		b.Namespace, b.Name, b.Allowed, b.Never, b.UnreadyExempt, strings.Join(selected, " "), b.Selector)
}

// plannedLaunch is a model.Launch as people write it.
type plannedLaunch struct {
	Requirements  []v1.NodeSelectorRequirementWithMinValues `json:"requirements"`
	Types         []string                                  `json:"types"`
	CapacityTypes []string                                  `json:"capacityTypes"`
	Requests      corev1.ResourceList                       `json:"requests"`
	DefaultGrace  *metav1.Duration                          `json:"defaultGrace"`
	MinValues     []model.Relaxed                           `json:"minValues"`
}

// launch renders a NodeClaim and, as NodeClaims know no better, reads it back.
func launch(t *testing.T, c convert.Converter, input string) string {
	t.Helper()
	poolText, launchText, _ := strings.Cut(input, "\n...\n")
	pool, planned := read(t, poolText, &v1.NodePool{}), read(t, launchText, &plannedLaunch{})
	asPool, _ := c.Pool(pool)
	l := &model.Launch{
		Pool: pool.Name, Requirements: asPool.Requirements.And(c.Requirements(planned.Requirements)...),
		Types: planned.Types, CapacityTypes: planned.CapacityTypes, MinValues: planned.MinValues,
		Requests: c.Resources(planned.Requests),
	}
	claim := c.NodeClaimFor(l, pool, planned.DefaultGrace)
	if claim.Annotations[v1.NodePoolHashAnnotationKey] != pool.Hash() {
		t.Errorf("hash annotation %s, want that of the pool %s", claim.Annotations[v1.NodePoolHashAnnotationKey], pool.Hash())
	}
	delete(claim.Annotations, v1.NodePoolHashAnnotationKey)
	back := c.Requirements(claim.Spec.Requirements)
	for _, r := range l.Requirements {
		if got, ok := back.Get(r.Key); ok && !got.Within(r) && !slices.Contains([]string{model.LabelHostname}, r.Key) {
			t.Errorf("the claim's %s is looser than the plan's %s", got, r)
		}
	}
	claim.Status = v1.NodeClaimStatus{}
	text, err := yaml.Marshal(claim)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Replace(string(text), "status:\n  lastPodEventTime: null\n", "", 1)
}
