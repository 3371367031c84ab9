// SPDX-License-Identifier: Apache-2.0

package sanitize

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	kubejson "k8s.io/apimachinery/pkg/runtime/serializer/json"

	"karpenter/api/unreadable"
)

// reader knows our kinds. It is safe for concurrent use.
type reader struct {
	kinds   map[schema.GroupVersionKind]reflect.Type
	decoder runtime.Decoder
}

func newReader(objects *runtime.Scheme) *reader {
	return &reader{
		kinds:   objects.AllKnownTypes(),
		decoder: kubejson.NewSerializerWithOptions(kubejson.DefaultMetaFactory, objects, objects, kubejson.SerializerOptions{}),
	}
}

// header is what is read of a value to tell what it is.
type header struct {
	APIVersion string            `json:"apiVersion"`
	Kind       string            `json:"kind"`
	Metadata   json.RawMessage   `json:"metadata"`
	Items      []json.RawMessage `json:"items"`
}

// sanitize returns the object or the list, so that it can be decoded.
func (r *reader) sanitize(raw []byte) []byte {
	var h header
	if json.Unmarshal(raw, &h) != nil {
		return raw
	}
	kind := schema.FromAPIVersionAndKind(h.APIVersion, h.Kind)
	item := kind.GroupVersion().WithKind(strings.TrimSuffix(h.Kind, "List"))
	switch {
	case item == kind:
		return r.object(raw, kind)
	case r.kinds[item] == nil:
		return raw
	}
	changed := false
	for i := range h.Items {
		clean := r.object(h.Items[i], item)
		changed = changed || !bytes.Equal(clean, h.Items[i])
		h.Items[i] = clean
	}
	if !changed {
		return raw
	}
	out, err := json.Marshal(h)
	if err != nil {
		return raw
	}
	return out
}

// event returns a frame of a watch, so that its object can be decoded.
func (r *reader) event(raw []byte) []byte {
	var frame struct {
		Type   string          `json:"type"`
		Object json.RawMessage `json:"object"`
	}
	if json.Unmarshal(raw, &frame) != nil {
		return raw
	}
	clean := r.sanitize(frame.Object)
	if bytes.Equal(clean, frame.Object) {
		return raw
	}
	frame.Object = clean
	out, err := json.Marshal(frame)
	if err != nil {
		return raw
	}
	return out
}

// object returns an object of the kind, so that it can be decoded.
func (r *reader) object(raw []byte, kind schema.GroupVersionKind) []byte {
	t := r.kinds[kind]
	if t == nil || !costly(raw) && !bytes.Contains(raw, []byte(unreadable.AnnotationKey)) && r.decode(raw, kind) == nil {
		return raw
	}
	in := json.NewDecoder(bytes.NewReader(raw))
	in.UseNumber()
	var tree map[string]any
	if in.Decode(&tree) != nil {
		return raw
	}
	p := &pruner{}
	p.keep(tree, t, "")
	if forged := p.mark(tree); !forged && !p.dropped && r.decode(raw, kind) == nil {
		return raw
	}
	out, err := json.Marshal(tree)
	if err == nil {
		err = r.decode(out, kind)
	}
	if err != nil {
		return r.bare(tree, kind, err)
	}
	return out
}

// bare returns the object without all that could be at fault. Metadata comes
// from the API server, which has decoded it itself.
func (r *reader) bare(tree map[string]any, kind schema.GroupVersionKind, err error) []byte {
	p := &pruner{}
	p.refuse("spec", fmt.Errorf("cannot be decoded: %w", err))
	bare := map[string]any{"apiVersion": kind.GroupVersion().String(), "kind": kind.Kind, "metadata": tree["metadata"], "spec": map[string]any{}}
	p.mark(bare)
	out, err := json.Marshal(bare)
	if err != nil {
		return []byte("null")
	}
	return out
}

func (r *reader) decode(raw []byte, kind schema.GroupVersionKind) error {
	_, _, err := r.decoder.Decode(raw, &kind, nil)
	return err
}

// costly reports whether the text has a number that may be expensive to parse:
// one with a large exponent or with many digits. It errs on the side of caution.
func costly(raw []byte) bool {
	const exponent, digits = 3, 100
	for i := 0; i < len(raw); i++ {
		switch c := raw[i]; {
		case c == 'e' || c == 'E':
			signs := len(raw[i+1:]) - len(bytes.TrimLeft(raw[i+1:], "+-"))
			if digitsAt(raw[i+1+signs:]) > exponent && endsNumber(raw[:i]) {
				return true
			}
		case isDigit(c):
			n := digitsAt(raw[i:])
			if n > digits {
				return true
			}
			i += n - 1
		}
	}
	return false
}

// endsNumber reports whether the text ends with a number that is no part of a
// word. In most words that look like one, such as UIDs, letters come before.
func endsNumber(text []byte) bool {
	rest := bytes.TrimRight(text, "0123456789.+-")
	if len(rest) == len(text) || len(rest) == 0 {
		return false
	}
	last := rest[len(rest)-1]
	return last < 'A' || last > 'z'
}

// digitsAt returns how many digits the text begins with.
func digitsAt(text []byte) int {
	n := 0
	for n < len(text) && isDigit(text[n]) {
		n++
	}
	return n
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }
