// SPDX-License-Identifier: Apache-2.0

package overlay_test

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/yaml"

	v1 "karpenter/api/v1"
	"karpenter/api/v1alpha1"
	"karpenter/cloud"
	"karpenter/cloud/cloudtest"
	"karpenter/cloud/overlay"
	"karpenter/model"
)

// TestEvaluate reads situations with one thing a line:
//
//	type t1 a/spot=1 b/spot=1.5 gpus=2   a type with its offerings, and a resource
//	pool p team=a                        a pool with labels of its template
//	overlay o {…}                        an overlay with this spec, in YAML
//
// It prints what became of each overlay and, per pool, every price and
// resource that is different.
func TestEvaluate(t *testing.T) {
	datadriven.RunTest(t, "testdata/evaluate", func(t *testing.T, d *datadriven.TestData) string {
		s, err := parse(d.Input)
		if err != nil {
			d.Fatalf(t, "%v", err)
		}
		return s.run(t)
	})
}

type situation struct {
	types    []*cloud.InstanceType
	pools    []*v1.NodePool
	overlays []v1alpha1.NodeOverlay
}

func parse(text string) (*situation, error) {
	s := &situation{}
	for line := range strings.Lines(text) {
		words := strings.Fields(line)
		var err error
		switch words[0] {
		case "type":
			err = s.parseType(words[1], words[2:])
		case "pool":
			pool := &v1.NodePool{}
			pool.Name, pool.Spec.Template.Labels = words[1], map[string]string{}
			for _, pair := range words[2:] {
				key, value, _ := strings.Cut(pair, "=")
				pool.Spec.Template.Labels[key] = value
			}
			s.pools = append(s.pools, pool)
		case "overlay":
			o := v1alpha1.NodeOverlay{}
			o.Name = words[1]
			_, spec, _ := strings.Cut(line, "{")
			err = yaml.UnmarshalStrict([]byte("{"+spec), &o.Spec)
			s.overlays = append(s.overlays, o)
		default:
			err = errors.New("unknown word")
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", line, err)
		}
	}
	return s, nil
}

func (s *situation) parseType(name string, words []string) error {
	var offerings []cloud.Offering
	capacity := corev1.ResourceList{}
	for _, word := range words {
		key, value, _ := strings.Cut(word, "=")
		zone, capacityType, ok := strings.Cut(key, "/")
		if !ok {
			capacity[corev1.ResourceName(key)] = resource.MustParse(value)
			continue
		}
		dollars, err := strconv.ParseFloat(value, 64)
		if err != nil {
			return err
		}
		offerings = append(offerings, cloudtest.Offering(zone, capacityType, dollars))
	}
	it := cloudtest.Type(name, "4", "16Gi", offerings...)
	maps.Copy(it.Capacity, capacity)
	s.types = append(s.types, it)
	return nil
}

func (s *situation) run(t *testing.T) string {
	var out strings.Builder
	var subjects []overlay.Subject
	for _, pool := range s.pools {
		subjects = append(subjects, overlay.Subject{Pool: pool, Types: s.types})
	}
	before := make([]cloud.InstanceType, len(s.types))
	for i, it := range s.types {
		before[i] = *it
		before[i].Offerings, before[i].Capacity = slices.Clone(it.Offerings), it.Capacity.DeepCopy()
	}
	verdicts, set := overlay.Evaluate(s.overlays, subjects, v1.DefaultLabels())
	for _, v := range verdicts {
		switch {
		case v.Reason != "":
			fmt.Fprintf(&out, "%s: %s: %s\n", v.Overlay, v.Reason, v.Message)
		case v.Idle:
			fmt.Fprintf(&out, "%s: holds, idle\n", v.Overlay)
		default:
			fmt.Fprintf(&out, "%s: holds\n", v.Overlay)
		}
	}
	store := &overlay.Store{}
	store.Swap(set)
	for _, pool := range s.pools {
		fmt.Fprintf(&out, "pool %s\n", pool.Name)
		overlaid, err := store.Overlay(pool.Name, s.types)
		if err != nil {
			t.Fatal(err)
		}
		for i, it := range overlaid {
			changes := differences(s.types[i], it)
			price, capacity := store.Applied(pool.Name, []string{"other", it.Name})
			if copied := it != s.types[i]; copied != (price || capacity) || len(changes) > 0 && !copied {
				t.Errorf("%s in %s: changes %v, price applied %t, capacity applied %t, copied %t", it.Name, pool.Name, changes, price, capacity, copied)
			}
			if !reflect.DeepEqual(it.Requirements, s.types[i].Requirements) { // spec 45/25
				t.Errorf("%s in %s has requirements %v, had %v", it.Name, pool.Name, it.Requirements, s.types[i].Requirements)
			}
			for _, change := range changes {
				fmt.Fprintf(&out, "  %s\n", change)
			}
		}
	}
	for i, it := range s.types { // spec 45/23: what was handed in is as it was
		if changes := differences(&before[i], it); len(changes) > 0 {
			t.Errorf("the provider's own type was changed: %v", changes)
		}
	}
	return out.String()
}

// differences tells what the second type has different.
func differences(a, b *cloud.InstanceType) []string {
	var out []string
	for i := range a.Offerings {
		if x, y := &a.Offerings[i], &b.Offerings[i]; x.Price != y.Price {
			out = append(out, fmt.Sprintf("%s %s/%s $%v -> $%v", a.Name, x.Zone(), x.CapacityType(), x.Price.Dollars(), y.Price.Dollars()))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(merge(a.Capacity, b.Capacity))) {
		x, y := a.Capacity[name], b.Capacity[name]
		if x.Cmp(y) != 0 {
			out = append(out, fmt.Sprintf("%s %s %s -> %s", a.Name, name, x.String(), y.String()))
		}
		if allocatable := b.Allocatable()[name]; allocatable.Cmp(y) != 0 { // the types have no overhead
			out = append(out, fmt.Sprintf("%s %s allocatable %s", a.Name, name, allocatable.String()))
		}
	}
	return out
}

func merge(a, b corev1.ResourceList) corev1.ResourceList {
	out := maps.Clone(a)
	maps.Copy(out, b)
	return out
}

// What an overlay says of a resource also holds for offerings that come with
// resources of their own, which keep the rest of them.
func TestOfferingsKeepTheirResources(t *testing.T) {
	own := cloudtest.Offering("a", "spot", 1)
	own.CapacityOverride = corev1.ResourceList{"own": resource.MustParse("7"), "gpus": resource.MustParse("1")}
	own.OverheadOverride = corev1.ResourceList{"memory": resource.MustParse("3Gi")}
	it := cloudtest.Type("t", "4", "16Gi", own)
	it.VolumeAttachmentLimits = map[string]int{"ebs.csi.aws.com": 25} // spec 48 §9: kept
	s, err := parse("pool p\noverlay o {requirements: [], capacity: {gpus: 2}}")
	if err != nil {
		t.Fatal(err)
	}
	_, set := overlay.Evaluate(s.overlays, []overlay.Subject{{Pool: s.pools[0], Types: []*cloud.InstanceType{it}}}, v1.DefaultLabels())
	store := &overlay.Store{}
	store.Swap(set)
	types, err := store.Overlay("p", []*cloud.InstanceType{it})
	if err != nil {
		t.Fatal(err)
	}
	groups := types[0].Groups()
	got := groups[len(groups)-1].Allocatable
	for name, want := range map[corev1.ResourceName]string{"own": "7", "gpus": "2", "memory": "13Gi"} {
		if q := got[name]; q.Cmp(resource.MustParse(want)) != 0 {
			t.Errorf("%s is %s, want %s", name, q.String(), want)
		}
	}
	if n := types[0].VolumeAttachmentLimits["ebs.csi.aws.com"]; n != 25 {
		t.Errorf("%d volumes may be attached, want 25", n)
	}
	if q := it.Offerings[0].CapacityOverride["gpus"]; q.Value() != 1 {
		t.Errorf("the provider's own offering was changed: %s", q.String())
	}
}

// What the provider has new is overlaid without another evaluation, and what
// stays the same stays the same object.
func TestStore(t *testing.T) {
	store := &overlay.Store{}
	old := cloudtest.Type("old", "4", "16Gi", cloudtest.Offering("a", "spot", 1))
	_, err := store.Overlay("p", []*cloud.InstanceType{old})
	if !cloud.IsUnevaluatedNodePool(err) { // spec 45/24, spec 20/153: before the first evaluation
		t.Errorf("before any evaluation: error %v", err)
	}
	evaluate := func(text string) bool {
		s, err := parse(text)
		if err != nil {
			t.Fatal(err)
		}
		var subjects []overlay.Subject
		for _, pool := range s.pools {
			subjects = append(subjects, overlay.Subject{Pool: pool})
		}
		_, set := overlay.Evaluate(s.overlays, subjects, v1.DefaultLabels())
		return store.Swap(set)
	}
	types := func(pool string, in ...*cloud.InstanceType) []*cloud.InstanceType {
		out, err := store.Overlay(pool, in)
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	const half = `overlay o {requirements: [], priceAdjustment: "-50%"}`
	if store.Evaluated() || !evaluate("pool p\n"+half) || !store.Evaluated() {
		t.Error("the first evaluation changes nothing")
	}
	first := types("p", old)[0]
	fresh := cloudtest.Type("fresh", "4", "16Gi", cloudtest.Offering("a", "spot", 3))
	both := types("p", old, fresh)
	if both[0] != first || both[1].Offerings[0].Price != model.Dollar*3/2 {
		t.Errorf("old one the same: %t; new one at $%v, want $1.5", both[0] == first, both[1].Offerings[0].Price.Dollars())
	}
	if evaluate("pool p\n" + half) {
		t.Error("an evaluation with the same outcome changes something")
	}
	if !evaluate("pool p\npool q\n"+half) || types("p", old)[0] != first {
		t.Error("another pool is news, but none to this one's types")
	}
	if !evaluate("pool q\n" + half) {
		t.Error("a pool that is left out is no news")
	}
	if _, err := store.Overlay("p", nil); !cloud.IsUnevaluatedNodePool(err) { // spec 45/24
		t.Errorf("pool left out by the last evaluation: error %v", err)
	}
	if types("q", old)[0] == first { // each pool has its own
		t.Error("two pools share an overlaid type")
	}
	if got := types("q"); len(got) != 0 { // spec 45/24: no types remain no types
		t.Errorf("%d types from none", len(got))
	}
	evaluate("pool q")
	if price, capacity := store.Applied("q", []string{"old"}); types("q", old)[0] != old || price || capacity {
		t.Error("without overlays, the type is not the provider's own")
	}
}
