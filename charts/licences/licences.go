// SPDX-License-Identifier: Apache-2.0

// Package licences finds the licenses of a source folder from the text of its
// license files, and which licenses are permissive.
package licences

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// Permissive returns the SPDX identifiers of licenses that require no more than
// notices.
func Permissive() []string {
	return []string{"Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "ISC", "MIT"}
}

// licence is a license and the phrases by which its text is recognized: a text
// must contain all of them.
type licence struct {
	id      string
	phrases []string
}

const (
	redistribution = "redistribution and use in source and binary forms, with or without modification, are permitted provided that the following conditions are met"
	mit            = "permission is hereby granted, free of charge, to any person obtaining a copy of this software and associated documentation files"
	isc            = "this software for any purpose with or without fee is hereby granted, provided that the above copyright notice and this permission notice appear in all copies"
)

// known returns the licenses that are recognized, by family, in lower case with
// single blanks. If several of a family match a text, the first one counts.
func known() [][]licence {
	return [][]licence{
		{{"Apache-2.0", []string{"apache license version 2.0, january 2004", "grant of patent license"}},
			{"Apache-2.0", []string{"licensed under the apache license, version 2.0"}}},
		{{"BSD-4-Clause", []string{redistribution, "all advertising materials"}},
			{"BSD-3-Clause", []string{redistribution, "endorse or promote products derived from this software"}},
			{"BSD-2-Clause", []string{redistribution}}},
		{{"MIT", []string{mit, `the software is provided "as is"`}}},
		{{"ISC", []string{"permission to use, copy, modify, and", isc}}},
		{{"MPL-2.0", []string{"mozilla public license", "2.0"}}},
		{{"AGPL", []string{"gnu affero general public license"}},
			{"LGPL", []string{"gnu lesser general public license"}},
			{"GPL", []string{"gnu general public license"}}},
		{{"SSPL", []string{"server side public license"}}},
		{{"BUSL", []string{"business source license"}}},
		{{"Commons-Clause", []string{"commons clause"}}},
		{{"EPL", []string{"eclipse public license"}}},
		{{"CC", []string{"creative commons"}}},
	}
}

// Of returns the identifiers of all licenses in the license files of the
// folder, sorted. It returns none if there are no such files, and an error if a
// file has no known license.
func Of(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	// What comes with documentation only is not part of a program.
	name := regexp.MustCompile(`(?i)^((un)?licen[cs]e|copying)([-._].*)?$`)
	ignored := regexp.MustCompile(`(?i)\.(docs|go|header)$`)
	var out []string
	for _, e := range entries {
		if e.IsDir() || !name.MatchString(e.Name()) || ignored.MatchString(e.Name()) {
			continue
		}
		path := filepath.Join(dir, e.Name())
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		ids := Text(string(text))
		if len(ids) == 0 {
			return nil, fmt.Errorf("%s is no licence that is known here: read it, and teach package licences to know it", path)
		}
		out = append(out, ids...)
	}
	slices.Sort(out)
	return slices.Compact(out), nil
}

// Text returns the identifiers of the licenses that a text contains or refers
// to.
func Text(text string) []string {
	plain := strings.NewReplacer("“", `"`, "”", `"`, "``", `"`, "''", `"`).Replace(strings.ToLower(text))
	plain = strings.Join(strings.FieldsFunc(plain, func(r rune) bool { return strings.ContainsRune(" \t\r\n*#>/|", r) }), " ")
	var out []string
	for _, family := range known() {
		for _, l := range family {
			if !slices.ContainsFunc(l.phrases, func(p string) bool { return !strings.Contains(plain, p) }) {
				out = append(out, l.id)
				break
			}
		}
	}
	slices.SortFunc(out, cmp.Compare[string])
	return out
}

// Module returns the folder of a Go module in a module cache.
func Module(cache, path, version string) string {
	return filepath.Join(cache, filepath.FromSlash(escaped(path))+"@"+escaped(version))
}

// escaped writes capital letters as Go's module cache does, for file systems
// that ignore case.
func escaped(path string) string {
	return regexp.MustCompile("[A-Z]").ReplaceAllStringFunc(path, func(c string) string { return "!" + strings.ToLower(c) })
}
