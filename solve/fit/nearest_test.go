// SPDX-License-Identifier: Apache-2.0

package fit

import "testing"

func TestNearest(t *testing.T) {
	zones := []string{"us-east-1a", "us-east-1b", "us-east-1c"}
	for _, c := range []struct {
		word  string
		known []string
		want  string // "" = none
	}{
		{"us-eats-1a", zones, "us-east-1a"},
		{"us-east-1A", zones, ""}, // as far from every zone
		{"us-east-1x", zones, ""},
		{"eu-west-1a", zones, ""},
		{"amd46", []string{"amd64", "arm64"}, "amd64"},
		{"x86_64", []string{"amd64", "arm64"}, ""},
		{"spott", []string{"on-demand", "spot"}, "spot"},
		{"ondemand", []string{"on-demand", "spot"}, "on-demand"},
		{"a", []string{"b"}, ""},
		{"topology.kubernetes.io/zones", []string{"topology.kubernetes.io/zone", "topology.kubernetes.io/region"}, "topology.kubernetes.io/zone"},
		{"anything", nil, ""},
	} {
		if got, ok := nearest(c.word, c.known); ok != (c.want != "") || ok && got != c.want {
			t.Errorf("nearest(%q) = %q, %t; want %q", c.word, got, ok, c.want)
		}
	}
}

func TestDistance(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want int
	}{
		{"", "", 0}, {"", "abc", 3}, {"abc", "", 3}, {"abc", "abc", 0}, {"abc", "abd", 1},
		{"abc", "ab", 1}, {"ab", "abc", 1}, {"abc", "acb", 1}, {"kitten", "sitting", 3}, {"ca", "abc", 3},
	} {
		if got := distance(c.a, c.b); got != c.want {
			t.Errorf("distance(%q, %q) = %d, want %d", c.a, c.b, got, c.want)
		}
	}
}
