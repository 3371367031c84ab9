// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"karpenter/model"
)

// TestRoundTrip fills situations by reflection, every field of every model
// type with something odd, and reads back what Print writes. A field that is
// new in model is filled like any other, so that forgetting it here fails.
func TestRoundTrip(t *testing.T) {
	for seed := range uint64(300) {
		t.Run(fmt.Sprintf("seed-%d", seed), func(t *testing.T) {
			f := newFiller(seed)
			want := Situation{Snapshot: f.snapshot(t)}
			f.fill(t, reflect.ValueOf(&want.Policy).Elem())
			var text bytes.Buffer
			if err := want.Print(&text); err != nil {
				t.Fatal(err)
			}
			got, err := Read(bytes.NewReader(text.Bytes()), nil)
			if err != nil {
				t.Fatalf("%v\n%s", err, text.String())
			}
			if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
				t.Fatalf("%s\nfrom\n%s", diff, text.String())
			}
		})
	}
}

// TestRoundTripWithoutKeys: a shape whose key is its identity is printed
// without a key, and has it again when it is read.
func TestRoundTripWithoutKeys(t *testing.T) {
	for seed := range uint64(100) {
		f := newFiller(seed)
		s := f.snapshot(t)
		s.Daemons = nil
		for i := range 20 {
			shape := &model.Shape{}
			f.fill(t, reflect.ValueOf(shape).Elem())
			shape.Key = shape.Identity(s.Resources)
			s.Daemons = append(s.Daemons, model.Daemon{Name: fmt.Sprintf("d%d", i), Shape: shape})
		}
		s.Pending, s.Nodes = nil, nil
		var text bytes.Buffer
		if err := Print(&text, s); err != nil {
			t.Fatal(err)
		}
		again, err := Parse(bytes.NewReader(text.Bytes()))
		if err != nil {
			t.Fatalf("seed %d: %v\n%s", seed, err, text.String())
		}
		if diff := cmp.Diff(s.Daemons, again.Daemons, cmpopts.EquateEmpty()); diff != "" || strings.Contains(text.String(), " key=") {
			t.Fatalf("seed %d: %s\n%s", seed, diff, text.String())
		}
	}
}

// filler makes random values. Whatever a valid Snapshot rules out, it avoids.
type filler struct {
	*rand.Rand
	resources []string
	pools     []string
	types     []*model.InstanceType
	count     int
}

func newFiller(seed uint64) *filler {
	return &filler{Rand: rand.New(rand.NewPCG(seed, 1))}
}

func (f *filler) snapshot(t *testing.T) *model.Snapshot {
	f.resources = slices.Clone(model.NewAxis().Names())
	for _, extra := range []string{"nvidia.com/gpu", "mem", "hugepages-2Mi", "odd, name:x", "zones"} {
		if f.IntN(2) == 0 {
			f.resources = append(f.resources, extra)
		}
	}
	f.pools = []string{f.unique(), f.unique(), ""}
	s := &model.Snapshot{}
	f.fill(t, reflect.ValueOf(s).Elem())
	s.Resources = f.resources
	slices.SortFunc(s.Nodes, func(a, b model.Node) int { return strings.Compare(a.Name, b.Name) })
	for i := range s.Pools {
		s.Pools[i].Name = f.pools[i%2] + strings.Repeat("+", i/2)
		for j, t := range s.Pools[i].Types {
			s.Pools[i].Types[j] = t.With(s.Pools[i].Extras)
		}
	}
	for i := range s.Nodes {
		f.perhapsDefault(s, &s.Nodes[i])
	}
	return s
}

// perhapsDefault makes some nodes what their facts say, to try what Print
// leaves out.
func (f *filler) perhapsDefault(s *model.Snapshot, n *model.Node) {
	if f.IntN(2) == 0 || len(s.Pools) == 0 {
		return
	}
	pool := &s.Pools[f.IntN(len(s.Pools))]
	facts := nodeFacts{name: n.Name, poolName: pool.Name, pool: pool, zone: "a", ct: "spot", registered: n.Registered, initialized: n.Initialized}
	if len(pool.Types) > 0 {
		facts.kind = pool.Types[f.IntN(len(pool.Types))]
	}
	movable := n.Movable
	*n = facts.defaults()
	if f.IntN(2) == 0 {
		n.Movable = movable
		said{}.follow(n, asked(s))
	}
	if f.IntN(2) == 0 {
		n.Labels = n.Labels.And(f.requirement())
	}
}

// unique returns a name that is used once. The number comes first, so that
// names sort by age.
func (f *filler) unique() string {
	f.count++
	return fmt.Sprintf("u%04d%s", f.count, f.text())
}

func (f *filler) text() string {
	odd := []string{"", "a", "web-7", "web-8", "a b", `q"uote`, "none", "any", "zone", "zone-1", "type", "x..y", "1..3", "ünï", "#c",
		"a=b", "line\nbreak", "a,b|c;d", "*", "m5.*", "[x]", "key:v", "a/b", "\\", "\xff", "true", "009", "x!", "~", "In", "Gte", ".", "in", "of", "anti"}
	return odd[f.IntN(len(odd))]
}

func (f *filler) vector() model.Resources {
	var out model.Resources
	for i := range f.resources {
		switch f.IntN(4) {
		case 0:
			out = out.With(i, f.Int64()>>f.IntN(60)-f.Int64N(5))
		case 1:
			out = out.With(i, f.Int64N(64)<<30)
		}
	}
	return out
}

func (f *filler) requirement() model.Requirement {
	keys := []string{model.LabelZone, model.LabelArch, model.LabelInstanceType, "zone", "team", "example.com/cpu", "odd key", "none", f.text()}
	ops := []model.Operator{model.In, model.NotIn, model.Exists, model.DoesNotExist}
	r := model.NewRequirement(keys[f.IntN(len(keys))], ops[f.IntN(len(ops))])
	if op := r.Operator(); op == model.DoesNotExist || op == model.Exists {
		for range f.IntN(4) {
			r = model.NewRequirement(r.Key, map[bool]model.Operator{true: model.NotIn, false: model.In}[r.Complement],
				append(slices.Clone(r.Values), f.text())...)
		}
	}
	if r.Complement && f.IntN(2) == 0 {
		r.Gte = model.Bound{Set: true, N: f.Int64() - f.Int64()}
	}
	if r.Complement && f.IntN(2) == 0 {
		r.Lte = model.Bound{Set: true, N: f.Int64() - f.Int64()}
	}
	if f.IntN(3) == 0 {
		r.MinValues = f.IntN(5)
	}
	return r
}

// special fills the types that hold more than their fields may say.
func (f *filler) special(v reflect.Value) bool {
	switch p := v.Addr().Interface().(type) {
	case *time.Time:
		*p = time.Unix(f.Int64N(1<<34), f.Int64N(1e9)).UTC()
	case *model.Resources:
		*p = f.vector()
	case *model.Requirements:
		*p = nil
		for range f.IntN(4) {
			if r := f.requirement(); !slices.ContainsFunc(*p, func(o model.Requirement) bool { return o.Key == r.Key }) {
				*p = p.And(r)
			}
		}
	case *model.LabelSet:
		*p = model.NewLabelSet(f.text(), "zone", model.LabelArch)
		if f.IntN(2) == 0 {
			*p = model.NewLabelSet(append(defaultWellKnown(), f.text())...)
		}
	case *model.Reason:
		*p = reasons()[f.IntN(len(reasons()))]
	case *model.ConsolidationPolicy:
		*p = []model.ConsolidationPolicy{model.WhenEmpty, model.WhenEmptyOrUnderutilized, model.Balanced, ""}[f.IntN(4)]
	case *model.Comparison:
		*p = []model.Comparison{model.Greater, model.Less, "", ""}[f.IntN(4)]
	case *model.Effect:
		*p = []model.Effect{model.NoSchedule, model.NoExecute, "", "odd effect"}[f.IntN(4)]
	case *[]model.Label:
		*p = f.labels()
	case *[]model.DevicePool, *[]model.DeviceClaim: // they are large, so most have none
		return f.IntN(4) > 0
	case *model.Limit:
		*p = model.Limit{Resource: f.IntN(len(f.resources)), Max: f.Int64N(1000)}
	default:
		return false
	}
	return true
}

// named fills the fields a valid Snapshot wants to be distinct or known.
func (f *filler) named(owner reflect.Type, field string, v reflect.Value) bool {
	switch owner.Name() + "." + field {
	case "Node.Name", "Pool.Name", "Shape.Key", "PodGroup.Name", "DeviceKind.Key":
		v.SetString(f.unique())
	case "Pod.Namespace":
		v.SetString([]string{"default", "kube-system", ""}[f.IntN(3)])
	case "Node.Pool":
		v.SetString(f.pools[f.IntN(len(f.pools))])
	case "Offering.CapacityType":
		v.SetString([]string{model.Spot, model.OnDemand, model.Reserved, ""}[f.IntN(4)])
	default:
		return false
	}
	return true
}

// labels are sorted by key.
func (f *filler) labels() []model.Label {
	var out []model.Label
	for range f.IntN(3) {
		out = append(out, model.Label{Key: f.text(), Value: f.text()})
	}
	slices.SortFunc(out, func(a, b model.Label) int { return strings.Compare(a.Key, b.Key) })
	return slices.CompactFunc(out, func(a, b model.Label) bool { return a.Key == b.Key })
}

// settle mends what a valid Snapshot rules out.
func settle(v reflect.Value) {
	sorted := func(ss []string) []string { return slices.Compact(slices.Sorted(slices.Values(ss))) }
	switch p := v.Addr().Interface().(type) {
	case *model.PodSelector:
		p.Namespaces = sorted(p.Namespaces)
		if !p.ByNamespace {
			p.NamespaceLabels = nil
		}
	case *model.Resident:
		for i := range p.Anti {
			p.Anti[i].Anti = true
		}
	case *model.Toleration:
		if p.Exists {
			p.Compare = ""
		}
	case *model.Intent:
		slices.Sort(p.Claims)
	case *model.Extra:
		p.Price = max(p.Price, 0)
	case *model.Offering:
		p.Price = min(max(p.Price, 0), model.MaxPrice)
	case *model.DeviceSelector:
		slices.Sort(p.Matches)
		slices.Sort(p.Fails)
	case *model.Volumes:
		p.Shared = sorted(p.Shared)
	case *model.Attached:
		p.Shared = sorted(p.Shared)
	}
}

func (f *filler) fill(t *testing.T, v reflect.Value) {
	if f.special(v) {
		return
	}
	defer settle(v)
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			if !f.named(v.Type(), v.Type().Field(i).Name, v.Field(i)) {
				f.fill(t, v.Field(i))
			}
		}
	case reflect.Pointer:
		f.pointer(t, v)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), f.IntN(4), 4))
		for i := range v.Len() {
			f.fill(t, v.Index(i))
		}
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		for range f.IntN(3) {
			key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
			f.fill(t, key)
			f.fill(t, value)
			v.SetMapIndex(key, value)
		}
	case reflect.String:
		v.SetString(f.text())
	case reflect.Bool:
		v.SetBool(f.IntN(2) == 0)
	case reflect.Int, reflect.Int64:
		v.SetInt(f.Int64()>>f.IntN(60) - f.Int64N(100))
	case reflect.Int32:
		v.SetInt(int64(f.Int32()) >> f.IntN(30))
	case reflect.Float64:
		v.SetFloat(f.Float64() * 100)
	default:
		t.Fatalf("teach the filler and Print about %s", v.Type())
	}
}

// pointer makes a new value, or shares an instance type with another pool.
func (f *filler) pointer(t *testing.T, v reflect.Value) {
	kind, isType := v.Interface().(*model.InstanceType)
	if isType && len(f.types) > 0 && f.IntN(2) == 0 {
		v.Set(reflect.ValueOf(f.types[f.IntN(len(f.types))]))
		return
	}
	v.Set(reflect.New(v.Type().Elem()))
	f.fill(t, v.Elem())
	if isType {
		kind = v.Interface().(*model.InstanceType)
		f.perhapsPlain(kind)
		f.types = append(f.types, kind)
	}
}

// perhapsPlain makes some types ones that have a short form.
func (f *filler) perhapsPlain(t *model.InstanceType) {
	if f.IntN(2) == 0 {
		return
	}
	t.Offerings = nil
	for _, zone := range []string{"a", "b"} {
		for _, ct := range []string{model.Spot, model.OnDemand} {
			o := offering(zone, ct)
			o.Price, o.Available = model.Price(f.Int64N(3)*1e7), f.IntN(2) == 0
			t.Offerings = append(t.Offerings, o)
		}
	}
	def := typeDef{InstanceType: *t, arch: []string{"amd64"}, os: []string{"linux"}}
	t.Requirements = def.defaults()
}

// FuzzParse reads anything without a panic, and whatever it accepts survives
// being printed.
func FuzzParse(f *testing.F) {
	for seed := range uint64(3) {
		fl := newFiller(seed)
		var text bytes.Buffer
		t := &testing.T{}
		if err := Print(&text, fl.snapshot(t)); err != nil {
			f.Fatal(err)
		}
		f.Add(text.String())
	}
	f.Add("type m cpu=2 mem=8Gi zones=a,b spot=0.03,b:0.04! on-demand=0.1\npool p requires=\"cpu Gt 4 Lt 3\" labels=a=b\n" +
		"node n pool=p type=m zone=a ct=spot free=cpu:1\npods web-1..3,x/y cpu=1 affinity=\"zone=a | any\" tolerate=*,k=v:NoSchedule,k~v")
	f.Add("node n cpu=2 runs=\"3 app=web in x where a=b anti host of app=db; 1 terminating any\" ports=80,\"1:2/UDP\" attached=\"ebs 2 [a b] of 3\"\n" +
		"pods web-1,x/y labels=app=web spread=\"zone skew=2 min=3 soft of app=web in a b where t Exists; host of nothing\" near=\"1: anti zone of any in any; ct of any in none\" " +
		"anti=\"zone of app!=web\" prefer=\"5: zone=a, b In [c d]\" volumes=\"efs 1\" volumes-in=\"zone=a | any\"\ndecide premium=0.1 preferences=ignore")
	f.Add("type m cpu=4 zones=a spot=0.1\npool p premium=0.2 allowance=0\npool q premium=0 allowance=0.25")
	f.Add("type m cpu=4 zones=a spot=0.1,b:0! on-demand=0\npool p extras=\"root disk:0.0022,address:0.005 zone a,agent:0.001 per-vcpu zone b\"\nnode n pool=p type=m zone=a ct=spot")
	f.Add("type m cpu=4 zones=a spot=0.1\npool p budgets=2 policy=Balanced static=replicas:3,pending:1 consolidate-after=Never\n" +
		"node n pool=p type=m zone=a ct=spot consolidatable settling drifted=2h held=x deadline closed free=mem:1Gi\n" +
		"pods web-1..3,x/y cpu=1 on=n labels=app=web anti=\"host of app=web\" ports=80\npods on=n cpu=2\npod a from=n\n" +
		"intent Drifted n m\ndecide hysteresis=0.1 spot-to-spot=replace")
	f.Fuzz(func(t *testing.T, text string) {
		s, err := Parse(strings.NewReader(text))
		if err != nil {
			return
		}
		all := slices.Clone(s.Pending)
		for _, n := range s.Nodes {
			all = append(all, n.Movable...)
		}
		if slices.ContainsFunc(all, func(p model.Pending) bool { return len(p.Pods) > 100 }) {
			return // comparing would take all the time
		}
		var printed bytes.Buffer
		if err := Print(&printed, s); err != nil {
			t.Fatal(err)
		}
		again, err := Parse(bytes.NewReader(printed.Bytes()))
		if err != nil {
			t.Fatalf("%v\n%s", err, printed.String())
		}
		if diff := cmp.Diff(s, again, cmpopts.EquateEmpty(), cmpopts.EquateNaNs()); diff != "" {
			t.Fatalf("%s\nfrom\n%s", diff, printed.String())
		}
	})
}
