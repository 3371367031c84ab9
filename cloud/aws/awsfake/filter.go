// SPDX-License-Identifier: Apache-2.0

package awsfake

import (
	"encoding/base64"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
)

// fields are the filters of a kind of resource: name → the values a resource
// has for it.
type fields[T any] map[string]func(T) []string

// resources are things of one kind as one call describes them.
type resources[T any] struct {
	fields fields[T]
	tags   func(T) []types.Tag // nil: not tagged
}

// one makes a filter of a single text.
func one[T any, S ~string](get func(T) S) func(T) []string {
	return func(item T) []string { return []string{string(get(item))} }
}

// pointer makes a filter of a text that may be missing.
func pointer[T any](get func(T) *string) func(T) []string {
	return func(item T) []string {
		if p := get(item); p != nil {
			return []string{*p}
		}
		return nil
	}
}

// pick returns the items that pass all filters: of a filter's values one must
// match.
func (r resources[T]) pick(items []T, filters []types.Filter) ([]T, error) {
	for _, f := range filters {
		if err := r.known(aws.ToString(f.Name)); err != nil {
			return nil, err
		}
	}
	var out []T
	for _, item := range items {
		if r.passes(item, filters) {
			out = append(out, item)
		}
	}
	return out, nil
}

func (r resources[T]) known(name string) error {
	if _, ok := r.fields[name]; ok || r.tags != nil && (name == "tag-key" || strings.HasPrefix(name, "tag:")) {
		return nil
	}
	return refuse("InvalidParameterValue", "The filter '%s' is invalid", name)
}

func (r resources[T]) passes(item T, filters []types.Filter) bool {
	for _, f := range filters {
		if !slices.ContainsFunc(r.values(item, aws.ToString(f.Name)), func(value string) bool { return matchesAny(f.Values, value) }) {
			return false
		}
	}
	return true
}

func (r resources[T]) values(item T, name string) []string {
	if get, ok := r.fields[name]; ok {
		return get(item)
	}
	var out []string
	key, byKey := strings.CutPrefix(name, "tag:")
	for _, tag := range r.tags(item) {
		switch {
		case !byKey:
			out = append(out, aws.ToString(tag.Key))
		case aws.ToString(tag.Key) == key:
			out = append(out, aws.ToString(tag.Value))
		}
	}
	return out
}

func matchesAny(patterns []string, value string) bool {
	return slices.ContainsFunc(patterns, func(pattern string) bool { return wildcard(pattern, value) })
}

// wildcard reports whether the value is what the pattern says, in which * stands
// for any text, ? for one character, and \ takes their meaning away.
func wildcard(pattern, value string) bool {
	for len(pattern) > 0 {
		switch pattern[0] {
		case '*':
			for i := range len(value) + 1 {
				if wildcard(pattern[1:], value[i:]) {
					return true
				}
			}
			return false
		case '?':
			if value == "" {
				return false
			}
		case '\\':
			if len(pattern) > 1 {
				pattern = pattern[1:]
			}
			fallthrough
		default:
			if value == "" || value[0] != pattern[0] {
				return false
			}
		}
		pattern, value = pattern[1:], value[1:]
	}
	return value == ""
}

// pages are what an operation allows for MaxResults, and how many it gives
// unasked; 0 is all.
type pages struct{ least, most, unasked int }

// page returns the part of the items that a call asked for, and the token of the
// next part, nil when there is none.
func page[T any](items []T, limit pages, maximum *int32, token *string) ([]T, *string, error) {
	size := limit.unasked
	if maximum != nil {
		if size = int(*maximum); size < limit.least || size > limit.most {
			return nil, nil, refuse("InvalidParameterValue", "Value ( %d ) for parameter maxResults is invalid. Expecting a value between %d and %d.", size, limit.least, limit.most)
		}
	}
	from, err := position(token)
	if err != nil {
		return nil, nil, err
	}
	if from > len(items) {
		from = len(items)
	}
	rest := items[from:]
	if size == 0 || len(rest) <= size {
		return rest, nil, nil
	}
	next := base64.RawURLEncoding.EncodeToString(fmt.Appendf(nil, "from:%d", from+size))
	return rest[:size], &next, nil
}

func position(token *string) (int, error) {
	if aws.ToString(token) == "" {
		return 0, nil
	}
	text, err := base64.RawURLEncoding.DecodeString(*token)
	number, ok := strings.CutPrefix(string(text), "from:")
	from, err2 := strconv.Atoi(number)
	if err != nil || err2 != nil || !ok || from < 0 {
		return 0, refuse("InvalidNextToken", "The token '%s' is invalid", *token)
	}
	return from, nil
}

// byID returns the items with the identifiers, in their order, and those that
// no one has. No identifiers are all items.
func byID[T any](items []T, ids []string, id func(T) string) (found []T, missing []string) {
	if len(ids) == 0 {
		return items, nil
	}
	for _, want := range ids {
		if i := slices.IndexFunc(items, func(item T) bool { return id(item) == want }); i >= 0 {
			found = append(found, items[i])
		} else {
			missing = append(missing, want)
		}
	}
	return found, missing
}

// doNotExist rejects identifiers that no one has, in the words of EC2.
func doNotExist(code, what string, missing []string) error {
	if len(missing) == 1 {
		return refuse(code, "The %s '%s' does not exist", what, missing[0])
	}
	return refuse(code, "The %ss '%s' do not exist", what, strings.Join(missing, ", "))
}

// tags makes EC2's tags of keys and values in turn.
func tags(pairs ...string) []types.Tag {
	out := make([]types.Tag, 0, len(pairs)/2)
	for i := 0; i+1 < len(pairs); i += 2 {
		out = append(out, types.Tag{Key: aws.String(pairs[i]), Value: aws.String(pairs[i+1])})
	}
	return out
}

// withTags returns the tags with others put over them, at most 50.
func withTags(have, more []types.Tag) ([]types.Tag, error) {
	out := cloneTags(have)
	for _, tag := range more {
		key := aws.ToString(tag.Key)
		if strings.HasPrefix(strings.ToLower(key), "aws:") {
			return nil, refuse("InvalidParameterValue", "Tag keys starting with 'aws:' are reserved for internal use")
		}
		if n := len(key); n == 0 || n > 128 || len(aws.ToString(tag.Value)) > 256 {
			return nil, refuse("InvalidParameterValue", "Tag key '%s' exceeds the maximum length of 128, is empty, or its value exceeds 256", key)
		}
		out = set(out, key, aws.ToString(tag.Value))
	}
	users := slices.DeleteFunc(slices.Clone(out), func(t types.Tag) bool { return strings.HasPrefix(*t.Key, "aws:") })
	if len(users) > 50 {
		return nil, refuse("TagLimitExceeded", "The maximum number of Tags for a resource has been reached.")
	}
	return out, nil
}

func set(list []types.Tag, key, value string) []types.Tag {
	for i := range list {
		if *list[i].Key == key {
			list[i].Value = &value
			return list
		}
	}
	return append(list, types.Tag{Key: &key, Value: &value})
}

func cloneTags(list []types.Tag) []types.Tag {
	out := make([]types.Tag, len(list))
	for i, tag := range list {
		out[i] = types.Tag{Key: aws.String(aws.ToString(tag.Key)), Value: aws.String(aws.ToString(tag.Value))}
	}
	return out
}

// tagged returns the tags that a request asks for on a kind of resource.
func tagged(specifications []types.TagSpecification, kind types.ResourceType) []types.Tag {
	var out []types.Tag
	for _, s := range specifications {
		if s.ResourceType == kind {
			out = append(out, s.Tags...)
		}
	}
	return out
}
