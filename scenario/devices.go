// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"karpenter/model"
)

// Devices and claims are nested deeper than the rest of the language, so they are
// written as their fields are called: a field and its value, a word alone for a field
// that is true, and each element of a list in brackets:
//
//	requests [name gpu ways [class big count 2]] constraints [match example.com/model]

// notation writes the fields of a value that are not zero.
func notation(v reflect.Value) string {
	var parts []string
	for i := range v.NumField() {
		name, field := strings.ToLower(v.Type().Field(i).Name), v.Field(i)
		switch {
		case field.IsZero():
		case field.Kind() == reflect.Bool:
			parts = append(parts, name)
		case field.Kind() == reflect.Slice:
			for j := range field.Len() {
				text := elementText(field.Index(j))
				if j == 0 {
					text = name + " [" + text + "]"
				} else {
					text = "[" + text + "]"
				}
				parts = append(parts, text)
			}
		default:
			parts = append(parts, name+" "+elementText(field))
		}
	}
	return strings.Join(parts, " ")
}

// elementText writes a value of a field, or one element of it.
func elementText(v reflect.Value) string {
	switch x := v.Interface().(type) {
	case *model.DeviceKind:
		return inner(x.Key)
	case model.Requirements:
		return strconv.Quote(requirements(x))
	}
	switch v.Kind() {
	case reflect.Struct:
		return notation(v)
	case reflect.String:
		return inner(v.String())
	default:
		return strconv.FormatInt(v.Int(), 10)
	}
}

// fields reads what notation writes into the value.
func (b *builder) fields(atoms []atom, v reflect.Value) error {
	for len(atoms) > 0 {
		name := atoms[0]
		at := slices.IndexFunc(reflect.VisibleFields(v.Type()), func(f reflect.StructField) bool {
			return name.sign == 0 && !name.literal && strings.ToLower(f.Name) == name.text
		})
		if at < 0 {
			return fmt.Errorf("%q is none of %s", show(atoms[:1]), strings.Join(fieldNames(v.Type()), ", "))
		}
		field := v.Field(at)
		atoms = atoms[1:]
		switch {
		case !field.IsZero():
			return fmt.Errorf("%s is written twice", name.text)
		case field.Kind() == reflect.Bool:
			field.SetBool(true)
		case field.Kind() == reflect.Slice:
			rest, err := b.elements(atoms, field)
			if err != nil {
				return fmt.Errorf("%s: %w", name.text, err)
			}
			atoms = rest
		case len(atoms) == 0:
			return fmt.Errorf("%s lacks a value", name.text)
		default:
			if err := b.element(atoms[:1], field); err != nil {
				return fmt.Errorf("%s: %w", name.text, err)
			}
			atoms = atoms[1:]
		}
	}
	return nil
}

func fieldNames(t reflect.Type) []string {
	var out []string
	for _, f := range reflect.VisibleFields(t) {
		out = append(out, strings.ToLower(f.Name))
	}
	return out
}

// elements reads "[…] […]" and returns what follows.
func (b *builder) elements(atoms []atom, list reflect.Value) ([]atom, error) {
	if len(atoms) == 0 || atoms[0].sign != '[' {
		return nil, fmt.Errorf("invalid list %q; each element is in brackets", show(atoms))
	}
	for len(atoms) > 0 && atoms[0].sign == '[' {
		depth, end := 0, -1
		for i, a := range atoms {
			switch a.sign {
			case '[':
				depth++
			case ']':
				depth--
			}
			if depth == 0 {
				end = i
				break
			}
		}
		if end < 0 {
			return nil, fmt.Errorf("a bracket in %q is not closed", show(atoms))
		}
		one := reflect.New(list.Type().Elem()).Elem()
		if err := b.element(atoms[1:end], one); err != nil {
			return nil, err
		}
		list.Set(reflect.Append(list, one))
		atoms = atoms[end+1:]
	}
	return atoms, nil
}

// element reads one value.
func (b *builder) element(atoms []atom, v reflect.Value) error {
	_, terms := v.Interface().(model.Requirements)
	if v.Kind() == reflect.Struct {
		return b.fields(atoms, v)
	}
	if len(atoms) != 1 || atoms[0].sign != 0 {
		return fmt.Errorf("invalid value %q", show(atoms))
	}
	text := atoms[0].text
	switch {
	case terms:
		r, err := parseRequirements(text)
		if err != nil {
			return err
		}
		v.Set(reflect.ValueOf(r))
	case v.Kind() == reflect.Pointer:
		kind := b.kinds[text]
		if kind == nil {
			return fmt.Errorf("there is no kind %s; describe it on a line of its own: kind %[1]s driver=gpu.example.com", text)
		}
		v.Set(reflect.ValueOf(kind))
	case v.Kind() == reflect.String:
		v.SetString(text)
	default:
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return fmt.Errorf("invalid whole number %q", text)
		}
		v.SetInt(n)
	}
	return nil
}

// nestedList reads an option that is a list of such values.
func nestedList[T any](b *builder, d *directive, key string) []T {
	return read(d, key, nil, func(value string) ([]T, error) {
		var out []T
		if isKeywordText(value) {
			return nil, nil
		}
		atoms, err := atomize(value)
		if err != nil {
			return nil, err
		}
		rest, err := b.elements(atoms, reflect.ValueOf(&out).Elem())
		if err == nil && len(rest) > 0 {
			err = fmt.Errorf("%q is too much", show(rest))
		}
		return out, err
	})
}

func isKeywordText(value string) bool { return value == keywordNone }

// nestedText writes a list as nestedList reads it.
func nestedText[T any](list []T) string {
	if len(list) == 0 {
		return keywordNone
	}
	parts := make([]string, len(list))
	for i := range list {
		parts[i] = "[" + notation(reflect.ValueOf(list[i])) + "]"
	}
	return strings.Join(parts, " ")
}

// kind reads "kind a10 driver=gpu.example.com shared attributes=… capacity=…".
func (b *builder) kind(d *directive) error {
	k := &model.DeviceKind{
		Key: d.name("the key of the kind, as in kind a10 driver=gpu.example.com"), Driver: d.text("driver", ""), Shared: d.flag("shared"),
		Attributes: nestedList[model.DeviceAttribute](b, d, "attributes"), Capacity: nestedList[model.DeviceCapacity](b, d, "capacity"),
	}
	if b.kinds[k.Key] != nil {
		d.fail(fmt.Errorf("%s is described twice", k.Key))
	}
	b.kinds[k.Key] = k
	return d.done("driver= attributes= capacity= and shared")
}

// published reads "devices […] […]", pools that are not of one node.
func (b *builder) published(d *directive) error {
	b.s.Devices = append(b.s.Devices, nestedList[model.DevicePool](b, d, "pools")...)
	return d.done("pools=")
}

// selector reads "selector TEXT matches=a10,t4 fails=… invalid=…".
func (b *builder) selector(d *directive) error {
	s := model.DeviceSelector{
		Text:    d.name("the expression"),
		Matches: read(d, "matches", nil, literals), Fails: read(d, "fails", nil, literals), Invalid: d.text("invalid", ""),
	}
	slices.Sort(s.Matches)
	slices.Sort(s.Fails)
	b.s.Selectors = append(b.s.Selectors, s)
	return d.done("matches= fails= and invalid=")
}

// literals reads a list of quoted texts or words.
func literals(value string) ([]string, error) {
	parts, err := list(value)
	if err != nil {
		return nil, err
	}
	var out []string
	for _, p := range parts {
		if len(p) != 1 || p[0].sign != 0 {
			return nil, fmt.Errorf("invalid element %q of a list such as a,b,c", show(p))
		}
		out = append(out, p[0].text)
	}
	return out, nil
}

// uses adds in-use= to the devices that a node has.
func (b *builder) uses(d *directive, pools []model.DevicePool) []model.DevicePool {
	type use struct {
		Pool   string
		Device string
		Share  bool
		Takes  []model.DeviceAmount
		Claim  string
	}
	all := nestedList[use](b, d, "in-use")
	if len(all) == 0 {
		return pools
	}
	pools = slices.Clone(pools)
	for _, u := range all {
		i := slices.IndexFunc(pools, func(p model.DevicePool) bool { return p.Name == u.Pool })
		if i < 0 {
			d.fail(fmt.Errorf("in-use=: there is no pool %s on the node", u.Pool))
			continue
		}
		pools[i].InUse = append(slices.Clip(pools[i].InUse), model.DeviceUse{Device: u.Device, Share: u.Share, Takes: u.Takes, Claim: u.Claim})
	}
	return pools
}

// devices writes the kinds of devices, and what of the Snapshot is about devices alone.
func (p *printer) devices() {
	kinds := map[string]*model.DeviceKind{}
	add := func(pools []model.DevicePool) {
		for i := range pools {
			for _, d := range pools[i].Devices {
				if d.Kind != nil {
					kinds[d.Kind.Key] = d.Kind
				}
			}
		}
	}
	add(p.s.Devices)
	for i := range p.s.Pools {
		for _, t := range p.s.Pools[i].Types {
			add(t.Devices)
		}
	}
	for i := range p.s.Nodes {
		add(p.s.Nodes[i].Devices)
	}
	for _, key := range slices.Sorted(maps.Keys(kinds)) {
		k := kinds[key]
		p.line("kind "+outerName(key), option("driver", k.Driver, ""), when(k.Shared, "shared"),
			option("attributes", nestedText(k.Attributes), keywordNone), option("capacity", nestedText(k.Capacity), keywordNone))
	}
	for i := range p.s.Devices {
		p.line("devices", "pools="+outer(nestedText(p.s.Devices[i:i+1])))
	}
	for _, s := range p.s.Selectors {
		p.line("selector "+outerName(s.Text), option("matches", innerList(s.Matches), keywordNone), option("fails", innerList(s.Fails), keywordNone), option("invalid", s.Invalid, ""))
	}
}
