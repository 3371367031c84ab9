// SPDX-License-Identifier: Apache-2.0

package script

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
)

// field is a key=value of a line about a T: how it is read, how it is printed,
// and what it may be.
type field[T any] struct {
	key  string
	want string
	set  func(*T, string) error
	get  func(*T) string // "" = is not printed
}

var errValue = errors.New("value")

func text[T any](key, want string, at func(*T) *string, allowed func(string) bool) field[T] {
	return field[T]{key, want, func(t *T, s string) error {
		if !allowed(s) {
			return errValue
		}
		*at(t) = s
		return nil
	}, func(t *T) string { return *at(t) }}
}

func oneOf[T any](key string, at func(*T) *string, values ...string) field[T] {
	return field[T]{key, strings.Join(values, " or "), func(t *T, s string) error {
		if !slices.Contains(values, s) {
			return errValue
		}
		*at(t) = s
		return nil
	}, func(t *T) string { return *at(t) }}
}

// count reads a number of at least 1 and at most bound.
func count[T any](key string, bound int, at func(*T) *int) field[T] {
	return field[T]{key, fmt.Sprintf("a number from 1 to %d", bound), func(t *T, s string) error {
		n, err := number(s, bound)
		if err != nil || n == 0 {
			return errValue
		}
		*at(t) = n
		return nil
	}, func(t *T) string {
		if *at(t) == 0 {
			return ""
		}
		return strconv.Itoa(*at(t))
	}}
}

func span[T any](key string, at func(*T) *time.Duration) field[T] {
	return field[T]{key, "a duration such as 90s or 1h30m", func(t *T, s string) error {
		d, err := duration(s)
		if err != nil || d == 0 {
			return errValue
		}
		*at(t) = d
		return nil
	}, func(t *T) string {
		if *at(t) == 0 {
			return ""
		}
		return short(*at(t))
	}}
}

func amount[T any](key string, at func(*T) *string) field[T] {
	return field[T]{key, "a quantity such as 500m, 4 or 8Gi", func(t *T, s string) error {
		q, err := quantity(s)
		*at(t) = q
		return err
	}, func(t *T) string { return *at(t) }}
}

func dollars[T any](key string, at func(*T) *float64) field[T] {
	return field[T]{key, "dollars per hour, from 0.0001 to 1000", func(t *T, s string) error {
		f, err := strconv.ParseFloat(s, 64)
		if err != nil || !(f >= 0.0001 && f <= 1000) {
			return errValue
		}
		*at(t) = f
		return nil
	}, func(t *T) string { return decimal(*at(t)) }}
}

func words[T any](key, want string, at func(*T) *[]string, allowed func(string) bool) field[T] {
	return field[T]{key, want, func(t *T, s string) error {
		list := strings.Split(s, ",")
		for _, w := range list {
			if !allowed(w) {
				return errValue
			}
		}
		*at(t) = list
		return nil
	}, func(t *T) string { return strings.Join(*at(t), ",") }}
}

func flag[T any](key string, at func(*T) *bool) field[T] {
	return field[T]{key, "true", func(t *T, s string) error {
		if s != "true" {
			return errValue
		}
		*at(t) = true
		return nil
	}, func(t *T) string {
		if *at(t) {
			return "true"
		}
		return ""
	}}
}

// number reads a natural number of at most bound, in its shortest form.
func number(s string, bound int) (int, error) {
	n, err := strconv.Atoi(s)
	if err != nil || n < 0 || n > bound || strconv.Itoa(n) != s {
		return 0, errValue
	}
	return n, nil
}

// duration reads a duration in whole seconds of at most 60 days.
func duration(s string) (time.Duration, error) {
	d, err := time.ParseDuration(s)
	if err != nil || d < 0 || d > 60*24*time.Hour || d%time.Second != 0 {
		return 0, errValue
	}
	return d, nil
}

// quantity returns the canonical form of a positive quantity.
func quantity(s string) (string, error) {
	q, err := resource.ParseQuantity(s)
	if err != nil || q.Sign() <= 0 || q.CmpInt64(1<<50) > 0 {
		return "", errValue
	}
	return q.String(), nil
}

// short prints a duration without the units that are zero.
func short(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

func decimal(f float64) string {
	if f == 0 {
		return ""
	}
	return strconv.FormatFloat(f, 'f', -1, 64)
}

// isName reports whether s is a name: up to 40 lower-case letters, digits, -
// and ., with a letter or digit at both ends.
func isName(s string) bool {
	return spelled(s, "abcdefghijklmnopqrstuvwxyz0123456789", "-.")
}

// isWord reports whether s is a word: a name with upper-case letters as well,
// and without dots.
func isWord(s string) bool {
	return spelled(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789", "-")
}

// spelled reports whether s consists of these characters, up to 40, with
// those of inner neither first nor last.
func spelled(s, outer, inner string) bool {
	return s != "" && len(s) <= 40 && strings.Trim(s, outer+inner) == "" &&
		strings.ContainsRune(outer, rune(s[0])) && strings.ContainsRune(outer, rune(s[len(s)-1]))
}

// isShare reports whether s is a number or a percentage.
func isShare(s string) bool {
	digits, percent := strings.CutSuffix(s, "%")
	n, err := number(digits, 9999)
	return err == nil && (!percent || n <= 100)
}

// isProtection reports whether s is a value of do-not-disrupt.
func isProtection(s string) bool {
	d, err := duration(s)
	return s == "true" || err == nil && d > 0
}

// isBudget reports whether s is nodes[@schedule/duration][:reason]...
func isBudget(s string) bool {
	parts := strings.Split(s, ":")
	nodes, schedule, scheduled := strings.Cut(parts[0], "@")
	if !isShare(nodes) {
		return false
	}
	if scheduled {
		macro, length, _ := strings.Cut(schedule, "/")
		d, err := duration(length)
		if err != nil || d == 0 || d%time.Minute != 0 || !slices.Contains([]string{"hourly", "daily", "weekly"}, macro) {
			return false
		}
	}
	return !slices.ContainsFunc(parts[1:], func(r string) bool {
		return !slices.Contains([]string{"Empty", "Drifted", "Underutilized", "Unhealthy"}, r)
	})
}

func isSold(s string) bool { return s == "spot" || s == "on-demand" }
