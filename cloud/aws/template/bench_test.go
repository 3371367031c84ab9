// SPDX-License-Identifier: Apache-2.0

package template

import (
	"context"
	"testing"
)

// BenchmarkEnsure is a launch that names as many types as one may, of templates
// that are there.
func BenchmarkEnsure(b *testing.B) {
	s := parse(b, "class: {spec: {amiFamily: AL2023}}")
	s.Types = []string{}
	known := descriptions(b)
	for _, family := range []string{"m5", "m5a", "m6i", "m6a", "m7i", "m7a", "c5", "c6i", "c6a", "c7i", "r5", "r6i"} {
		for _, size := range []string{"large", "xlarge", "2xlarge", "4xlarge", "8xlarge"} {
			if _, ok := known[family+"."+size]; ok {
				s.Types = append(s.Types, family+"."+size)
			}
		}
	}
	want := s.want(b, known)
	templates := New(s.config(newAccount(), &controlPlane{cidr: "10.100.0.0/16"}))
	made, err := templates.Ensure(context.Background(), want)
	if err != nil {
		b.Fatal(err)
	}
	b.Logf("%d types, %d templates", len(s.Types), len(made))
	for b.Loop() {
		if _, err := templates.Ensure(context.Background(), want); err != nil {
			b.Fatal(err)
		}
	}
}
