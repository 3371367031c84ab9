// SPDX-License-Identifier: Apache-2.0

// Package licences tells under which licences a folder of source is, by what
// its licence files say, and whether they are permissive.
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

// Permissive are the SPDX identifiers of licences that ask for no more than
// notices.
func Permissive() []string {
	return []string{"Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "ISC", "MIT"}
}

// licence is one that texts are known by: every phrase is in them.
type licence struct {
	id      string
	phrases []string
}

const (
	redistribution = "redistribution and use in source and binary forms, with or without modification, are permitted provided that the following conditions are met"
	mit            = "permission is hereby granted, free of charge, to any person obtaining a copy of this software and associated documentation files"
	isc            = "this software for any purpose with or without fee is hereby granted, provided that the above copyright notice and this permission notice appear in all copies"
)

// known are the licences we tell apart, in lower case with single blanks. Of the
// same text, the first of a family counts.
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

// Of returns the identifiers of all licences that files in the folder name,
// sorted; none without such files. A file that names none we know is an error.
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

// Text returns the identifiers of the licences a text consists of or points at.
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

// Module returns where a module of Go's lies below a module cache.
func Module(cache, path, version string) string {
	return filepath.Join(cache, filepath.FromSlash(escaped(path))+"@"+escaped(version))
}

// escaped writes capitals as Go does for file systems that do not tell them apart.
func escaped(path string) string {
	return regexp.MustCompile("[A-Z]").ReplaceAllStringFunc(path, func(c string) string { return "!" + strings.ToLower(c) })
}
