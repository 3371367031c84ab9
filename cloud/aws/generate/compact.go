// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
)

// compact prints a value as JSON without fields that are zero, in the order of the
// struct's fields.
func compact(value any) string {
	v := reflect.ValueOf(value)
	switch v.Kind() {
	case reflect.Pointer:
		return compact(v.Elem().Interface())
	case reflect.Struct:
		var parts []string
		for i := range v.NumField() {
			if field := v.Field(i); !zero(field) {
				parts = append(parts, quoted(v.Type().Field(i).Name)+":"+compact(field.Interface()))
			}
		}
		return "{" + strings.Join(parts, ",") + "}"
	case reflect.Slice:
		var parts []string
		for i := range v.Len() {
			parts = append(parts, compact(v.Index(i).Interface()))
		}
		return "[" + strings.Join(parts, ",") + "]"
	}
	text, err := json.Marshal(value)
	if err != nil {
		panic(fmt.Sprintf("compact %T: %v", value, err)) // descriptions hold texts, numbers and booleans
	}
	return string(text)
}

func zero(v reflect.Value) bool {
	return v.IsZero() || v.Kind() == reflect.Slice && v.Len() == 0
}
