// SPDX-License-Identifier: Apache-2.0

package awsfake

import "reflect"

// copied returns a value that shares no memory with the given one: what goes in
// and out of AWS does so over a wire. Unexported fields, which only mark the
// SDK's structs, stay zero.
func copied[T any](value T) T {
	to := reflect.New(reflect.TypeOf(&value).Elem()).Elem()
	copyInto(to, reflect.ValueOf(&value).Elem())
	return to.Interface().(T)
}

func copyInto(to, from reflect.Value) {
	switch from.Kind() {
	case reflect.Pointer:
		if !from.IsNil() {
			to.Set(reflect.New(from.Type().Elem()))
			copyInto(to.Elem(), from.Elem())
		}
	case reflect.Slice:
		if !from.IsNil() {
			to.Set(reflect.MakeSlice(from.Type(), from.Len(), from.Len()))
			for i := range from.Len() {
				copyInto(to.Index(i), from.Index(i))
			}
		}
	case reflect.Map:
		if !from.IsNil() {
			to.Set(reflect.MakeMapWithSize(from.Type(), from.Len()))
			for _, key := range from.MapKeys() {
				element := reflect.New(from.Type().Elem()).Elem()
				copyInto(element, from.MapIndex(key))
				to.SetMapIndex(key, element)
			}
		}
	case reflect.Struct:
		to.Set(from) // values with unexported fields, such as time.Time, are whole
		for i := range from.NumField() {
			if from.Type().Field(i).IsExported() {
				copyInto(to.Field(i), from.Field(i))
			}
		}
	default:
		to.Set(from)
	}
}
