// SPDX-License-Identifier: Apache-2.0

package sanitize

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"

	"karpenter/api/quantity"
	"karpenter/api/unreadable"
)

const (
	// mostProblems is how many fields are named on an object.
	mostProblems = 10
	// longestProblem is the maximum length of the text about a problem, in
	// bytes.
	longestProblem = 300
)

// pruner takes out of a JSON tree what a Go type cannot hold.
type pruner struct {
	dropped  bool     // whether the tree has changed
	problems []string // of the spec
	more     int      // problems that are not listed
}

// keep reports whether the type can hold the value, after it has dropped from
// the value what it cannot hold.
func (p *pruner) keep(value any, t reflect.Type, path string) bool {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if value == nil {
		return true
	}
	if t == reflect.TypeFor[resource.Quantity]() {
		return p.check(path, checkQuantity(value))
	}
	if reflect.PointerTo(t).Implements(reflect.TypeFor[json.Unmarshaler]()) {
		return p.try(value, t, path)
	}
	switch t.Kind() {
	case reflect.Struct:
		return p.fields(value, t, path)
	case reflect.Map:
		return p.entries(value, t, path)
	case reflect.Slice, reflect.Array:
		if t.Elem().Kind() != reflect.Uint8 {
			return p.items(value, t, path)
		}
	case reflect.Interface:
		return true
	}
	return p.try(value, t, path)
}

// fields keeps of an object what the fields of the struct can hold, and what it
// has no field for.
func (p *pruner) fields(value any, t reflect.Type, path string) bool {
	object, ok := value.(map[string]any)
	if !ok {
		return p.check(path, fmt.Errorf("want an object, have %s", brief(value)))
	}
	for i := range t.NumField() {
		f := t.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case name == "-" || !f.IsExported():
		case name == "" && f.Anonymous:
			p.fields(value, deref(f.Type), path)
		default:
			if name == "" {
				name = f.Name
			}
			if inner, found := object[name]; found && !p.keep(inner, f.Type, join(path, name)) {
				delete(object, name)
			}
		}
	}
	return true
}

func (p *pruner) entries(value any, t reflect.Type, path string) bool {
	object, ok := value.(map[string]any)
	if !ok {
		return p.check(path, fmt.Errorf("want an object, have %s", brief(value)))
	}
	for key, inner := range object {
		if !p.keep(inner, t.Elem(), fmt.Sprintf("%s[%s]", path, key)) {
			delete(object, key)
		}
	}
	return true
}

// items drops a list with an item that cannot be held: the others mean little
// without it.
func (p *pruner) items(value any, t reflect.Type, path string) bool {
	list, ok := value.([]any)
	if !ok {
		return p.check(path, fmt.Errorf("want a list, have %s", brief(value)))
	}
	kept := true
	for i, inner := range list {
		kept = p.keep(inner, t.Elem(), fmt.Sprintf("%s[%d]", path, i)) && kept
	}
	return kept
}

// try decodes the value alone.
func (p *pruner) try(value any, t reflect.Type, path string) bool {
	raw, err := json.Marshal(value)
	if err == nil {
		err = json.Unmarshal(raw, reflect.New(t).Interface())
	}
	if err != nil {
		err = fmt.Errorf("%s cannot be read: %w", brief(value), err)
	}
	return p.check(path, err)
}

func checkQuantity(value any) error {
	switch v := value.(type) {
	case string:
		_, err := quantity.Parse(v)
		return err
	case json.Number:
		_, err := quantity.Parse(v.String())
		return err
	}
	return fmt.Errorf("want a quantity, have %s", brief(value))
}

// check reports whether there is no error, and takes it in otherwise.
func (p *pruner) check(path string, err error) bool {
	if err == nil {
		return true
	}
	p.refuse(path, err)
	return false
}

// refuse records that the field was dropped. Problems in the status are not
// recorded, because Karpenter writes the status itself.
func (p *pruner) refuse(path string, err error) {
	p.dropped = true
	if path == "status" || strings.HasPrefix(path, "status.") {
		return
	}
	if len(p.problems) == mostProblems {
		p.more++
		return
	}
	text := strings.ReplaceAll(path+": "+err.Error(), "\n", " ")
	if len(text) > longestProblem {
		text = strings.ToValidUTF8(text[:longestProblem], "") + "..."
	}
	p.problems = append(p.problems, text)
}

// mark writes on the object what was dropped, and nothing if nothing was. It
// reports whether the object came with a mark.
func (p *pruner) mark(tree map[string]any) (forged bool) {
	metadata, ok := tree["metadata"].(map[string]any)
	if !ok {
		metadata = map[string]any{}
		tree["metadata"] = metadata
	}
	annotations, ok := metadata["annotations"].(map[string]any)
	if !ok {
		annotations = map[string]any{}
	}
	_, forged = annotations[unreadable.AnnotationKey]
	delete(annotations, unreadable.AnnotationKey)
	if len(p.problems) > 0 {
		slices.Sort(p.problems)
		text := strings.Join(p.problems, "\n")
		if p.more > 0 {
			text += fmt.Sprintf("\nand %d more", p.more)
		}
		annotations[unreadable.AnnotationKey] = text
		metadata["annotations"] = annotations
	}
	return forged
}

// brief shows a value in an error.
func brief(value any) string {
	const most = 64
	raw, err := json.Marshal(value)
	if err != nil {
		return fmt.Sprintf("%T", value)
	}
	if len(raw) > most {
		return strings.ToValidUTF8(string(raw[:most]), "") + "..."
	}
	return string(raw)
}

func deref(t reflect.Type) reflect.Type {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return t
}

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}
