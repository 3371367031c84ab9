// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"encoding/base64"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/aws/smithy-go"
)

// query is the protocol of EC2 and IAM: a form in, XML out. EC2 numbers the
// elements of a list directly (Filter.1), IAM below "member" (Tags.member.1).
type query struct {
	names *names
	ec2   bool
}

func (q query) decode(_ *http.Request, body []byte) (string, func(any) error, error) {
	form, err := url.ParseQuery(string(body))
	if err != nil {
		return "", nil, &smithy.GenericAPIError{Code: "MalformedQueryString", Message: err.Error(), Fault: smithy.FaultClient}
	}
	operation := form.Get("Action")
	if !q.names.operations[operation] {
		return "", nil, &smithy.GenericAPIError{
			Code: "InvalidAction", Fault: smithy.FaultClient,
			Message: fmt.Sprintf("the action %s is not valid for this endpoint: it is not simulated", operation),
		}
	}
	form.Del("Action")
	form.Del("Version")
	return operation, func(input any) error { return q.fill(reflect.ValueOf(input).Elem(), treeOf(form), "") }, nil
}

// tree is a form as its dotted names nest.
type tree struct {
	value    string
	children map[string]*tree
}

func treeOf(form url.Values) *tree {
	root := &tree{}
	for name, values := range form {
		at := root
		for step := range strings.SplitSeq(name, ".") {
			if at.children == nil {
				at.children = map[string]*tree{}
			}
			next := at.children[step]
			if next == nil {
				next = &tree{}
				at.children[step] = next
			}
			at = next
		}
		at.value = values[0]
	}
	return root
}

// fill sets the value from the tree. Whatever the tree has more is an error.
func (q query) fill(v reflect.Value, from *tree, path string) error {
	switch {
	case v.Kind() == reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		return q.fill(v.Elem(), from, path)
	case v.Kind() == reflect.Struct && v.Type() != reflect.TypeFor[time.Time]():
		return q.fillStruct(v, from, path)
	case v.Kind() == reflect.Slice && v.Type().Elem().Kind() != reflect.Uint8:
		return q.fillList(v, from, path)
	}
	if err := setScalar(v, from.value); err != nil {
		return &smithy.GenericAPIError{
			Code: "InvalidParameterValue", Fault: smithy.FaultClient,
			Message: fmt.Sprintf("value (%s) for parameter %s is invalid: %v", from.value, path, err),
		}
	}
	return nil
}

func (q query) fillStruct(v reflect.Value, from *tree, path string) error {
	left := maps.Clone(from.children)
	for f, field := range v.Fields() {
		if !f.IsExported() {
			continue
		}
		name := wireName(q.names.in, v.Type().Name(), f.Name)
		child, ok := left[name]
		if !ok {
			continue
		}
		delete(left, name)
		if err := q.fill(field, child, join(path, name)); err != nil {
			return err
		}
	}
	if len(left) > 0 {
		return &smithy.GenericAPIError{
			Code: "UnknownParameter", Fault: smithy.FaultClient,
			Message: fmt.Sprintf("the parameter %s is not recognized", join(path, slices.Min(slices.Collect(maps.Keys(left))))),
		}
	}
	return nil
}

func (q query) fillList(v reflect.Value, from *tree, path string) error {
	if !q.ec2 && from.children["member"] != nil {
		from, path = from.children["member"], join(path, "member")
	}
	elements := reflect.MakeSlice(v.Type(), 0, len(from.children))
	for i := range len(from.children) {
		name := strconv.Itoa(i + 1)
		child, ok := from.children[name]
		if !ok {
			return &smithy.GenericAPIError{
				Code: "InvalidParameter", Fault: smithy.FaultClient,
				Message: fmt.Sprintf("the list %s has no element %s", path, name),
			}
		}
		element := reflect.New(v.Type().Elem()).Elem()
		if err := q.fill(element, child, join(path, name)); err != nil {
			return err
		}
		elements = reflect.Append(elements, element)
	}
	v.Set(elements)
	return nil
}

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

// setScalar sets a string, number, truth value, time or blob.
func setScalar(v reflect.Value, text string) error {
	if v.Type() == reflect.TypeFor[time.Time]() {
		at, err := time.Parse(time.RFC3339Nano, text)
		v.Set(reflect.ValueOf(at))
		return err
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString(text)
	case reflect.Bool:
		b, err := strconv.ParseBool(text)
		v.SetBool(b)
		return err
	case reflect.Int32, reflect.Int64:
		n, err := strconv.ParseInt(text, 10, v.Type().Bits())
		v.SetInt(n)
		return err
	case reflect.Float32, reflect.Float64:
		n, err := strconv.ParseFloat(text, v.Type().Bits())
		v.SetFloat(n)
		return err
	case reflect.Slice:
		blob, err := base64.StdEncoding.DecodeString(text)
		v.SetBytes(blob)
		return err
	default:
		return fmt.Errorf("a %s cannot be sent in a form", v.Type())
	}
	return nil
}
