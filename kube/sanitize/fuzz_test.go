// SPDX-License-Identifier: Apache-2.0

package sanitize_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// hostile is what a CRD may let pass in some field, or let pass once.
var hostile = []string{
	`"1e-999999999"`, `"1E+999999999"`, `"-1e5.5"`, `"1e100"`, `"-5"`, `"` + strings.Repeat("9", 300) + `"`,
	`"99999999h"`, `"-1s"`, `"Never"`, `"2024-01-01T00:00:00"`, `"x"`, `""`, `"%"`,
	`1e30`, `1.5`, `-1`, `99999999999`, `99999999999999999999`, `true`, `null`, `{}`, `[]`, `[{}]`, `{"k":{}}`, `[null]`,
}

// stage is informers for all kinds that follow a server.
type stage struct {
	server *apiServer
	kinds  []kind
	seen   []*follower
	full   []map[string]any // an object of each kind with every field set
	paths  [][][]any        // of every field of those
}

func newStage(t testing.TB) *stage {
	t.Helper()
	objects, all := kinds(t)
	s := &stage{server: &apiServer{}, kinds: all}
	config := s.server.serve(t)
	for _, k := range all {
		s.server.put(k, "first", "{}", "{}")
		object := full(t, k.object, nil).(map[string]any)
		s.full = append(s.full, object)
		var paths [][]any
		for _, part := range []string{"spec", "status"} {
			paths = append(paths, pathsIn(object[part], []any{part})...)
		}
		s.paths = append(s.paths, paths)
	}
	c := informers(t, config, objects, all)
	for _, k := range all {
		s.seen = append(s.seen, follow(t, c, k))
	}
	start(t, c)
	for _, f := range s.seen {
		f.wait(t, "first")
	}
	return s
}

// try sends an object of the kind with the value at the path through the
// informer, and waits until it comes out.
func (s *stage) try(t testing.TB, kind int, path []any, value json.RawMessage) client.Object {
	t.Helper()
	object := replaced(s.full[kind], path, value).(map[string]any)
	var parts [2]string
	for i, part := range []string{"spec", "status"} {
		raw, err := json.Marshal(object[part])
		if err != nil {
			t.Fatal(err)
		}
		parts[i] = string(raw)
	}
	version := s.server.put(s.kinds[kind], "tried", parts[0], parts[1])
	deadline := time.NewTimer(patience)
	defer deadline.Stop()
	for {
		select {
		case o := <-s.seen[kind].objects:
			if o.GetName() == "tried" && o.GetResourceVersion() == version {
				return o
			}
		case <-deadline.C:
			t.Fatalf("%s with %s at %v does not come out of the informer", s.kinds[kind].gvk.Kind, value, path)
		}
	}
}

// TestEveryFieldMayBeHostile puts every hostile value into every field of every
// kind.
func TestEveryFieldMayBeHostile(t *testing.T) {
	s := newStage(t)
	for kind := range s.kinds {
		if n := len(s.paths[kind]); n < 3 {
			t.Errorf("%s has %d fields only", s.kinds[kind].gvk.Kind, n)
		}
		for _, path := range s.paths[kind] {
			for _, value := range hostile {
				s.try(t, kind, path, json.RawMessage(value))
			}
		}
	}
}

// FuzzInformers puts any JSON into any field of any kind: the object must come
// out of the informer, and so must what follows it.
func FuzzInformers(f *testing.F) {
	s := newStage(f)
	for kind := range s.kinds {
		for i, value := range hostile {
			f.Add(uint8(kind), uint16(7*i), value)
		}
	}
	f.Fuzz(func(t *testing.T, kind uint8, field uint16, value string) {
		k := int(kind) % len(s.kinds)
		// The API server decodes and encodes what it stores.
		in := json.NewDecoder(strings.NewReader(value))
		in.UseNumber()
		var tree any
		if in.Decode(&tree) != nil {
			tree = value
		}
		normal, err := json.Marshal(tree)
		if err != nil {
			t.Skip()
		}
		s.try(t, k, s.paths[k][int(field)%len(s.paths[k])], normal)
	})
}

// full returns JSON for the type with every field set.
func full(t testing.TB, typ reflect.Type, within []reflect.Type) any {
	t.Helper()
	for typ.Kind() == reflect.Pointer {
		typ = typ.Elem()
	}
	if slices.Contains(within, typ) {
		return nil
	}
	within = append(slices.Clone(within), typ)
	if reflect.PointerTo(typ).Implements(reflect.TypeFor[json.Unmarshaler]()) {
		return sample(t, typ)
	}
	switch typ.Kind() {
	case reflect.Struct:
		out := map[string]any{}
		for i := range typ.NumField() {
			field := typ.Field(i)
			name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
			switch inner := full(t, field.Type, within); {
			case name == "" && field.Anonymous:
				for k, v := range inner.(map[string]any) {
					out[k] = v
				}
			case name != "-" && name != "metadata":
				out[name] = inner
			}
		}
		return out
	case reflect.Map:
		return map[string]any{"k": full(t, typ.Elem(), within)}
	case reflect.Slice:
		if typ.Elem().Kind() == reflect.Uint8 {
			return "AA=="
		}
		return []any{full(t, typ.Elem(), within)}
	}
	return sample(t, typ)
}

// sample returns JSON that the type can hold.
func sample(t testing.TB, typ reflect.Type) any {
	t.Helper()
	for _, value := range []any{"1h", "2024-01-01T00:00:00Z", "1", 1, true, map[string]any{}} {
		raw, err := json.Marshal(value)
		if err != nil {
			t.Fatal(err)
		}
		if json.Unmarshal(raw, reflect.New(typ).Interface()) == nil {
			return value
		}
	}
	t.Fatalf("no sample of %s", typ)
	return nil
}

// pathsIn returns the paths of the value and of everything in it.
func pathsIn(value any, at []any) [][]any {
	out := [][]any{at}
	switch v := value.(type) {
	case map[string]any:
		keys := make([]string, 0, len(v))
		for key := range v {
			keys = append(keys, key)
		}
		slices.Sort(keys)
		for _, key := range keys {
			out = append(out, pathsIn(v[key], append(slices.Clone(at), key))...)
		}
	case []any:
		for i := range v {
			out = append(out, pathsIn(v[i], append(slices.Clone(at), i))...)
		}
	}
	return out
}

// replaced returns a copy of the tree with the value at the path.
func replaced(tree any, path []any, value any) any {
	if len(path) == 0 {
		return value
	}
	switch v := tree.(type) {
	case map[string]any:
		out := map[string]any{}
		for key, inner := range v {
			if key == path[0] {
				inner = replaced(inner, path[1:], value)
			}
			out[key] = inner
		}
		return out
	case []any:
		out := slices.Clone(v)
		out[path[0].(int)] = replaced(v[path[0].(int)], path[1:], value)
		return out
	}
	panic(fmt.Sprintf("nothing at %v", path))
}
