// SPDX-License-Identifier: Apache-2.0

package arch

import (
	"go/ast"
	"go/types"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	source "golang.org/x/tools/go/packages"
)

// TestFilesFormLayers keeps the files of packages that policy.txt names from using
// each other in a circle, so that each can be read from the bottom up.
func TestFilesFormLayers(t *testing.T) {
	for _, p := range layered(t) {
		if circle := circleIn(uses(p)); len(circle) > 0 {
			t.Errorf("%s: these files use each other in a circle: %s", p.PkgPath, strings.Join(circle, " → "))
		}
	}
}

// mostFields is how many fields a type with methods can have and still be understood.
const mostFields = 15

// TestTypesStaySmall keeps the types of the same packages small, those without methods excepted: they
// are data.
func TestTypesStaySmall(t *testing.T) {
	for _, p := range layered(t) {
		for _, name := range p.Types.Scope().Names() {
			of, ok := p.Types.Scope().Lookup(name).(*types.TypeName)
			if !ok {
				continue
			}
			named, ok := of.Type().(*types.Named)
			if !ok || named.NumMethods() == 0 {
				continue
			}
			if s, ok := named.Underlying().(*types.Struct); ok && s.NumFields() > mostFields {
				t.Errorf("%s.%s has %d fields, want %d at most: give parts of it a name", p.PkgPath, name, s.NumFields(), mostFields)
			}
		}
	}
}

// layered returns the packages that policy.txt names for their layers.
func layered(t *testing.T) []*source.Package {
	t.Helper()
	var paths []string
	for _, r := range policy(t) {
		if r.kind == "layers" {
			paths = append(paths, module+r.folder)
		}
	}
	loaded, err := source.Load(&source.Config{
		Mode: source.NeedName | source.NeedFiles | source.NeedSyntax | source.NeedTypes | source.NeedTypesInfo | source.NeedImports | source.NeedExportFile,
		Dir:  "../..",
	}, paths...)
	if err != nil {
		t.Fatal(err)
	}
	if len(loaded) != len(paths) {
		t.Fatalf("%d packages for %d lines of policy.txt", len(loaded), len(paths))
	}
	for _, p := range loaded {
		for _, e := range p.Errors {
			t.Error(e)
		}
	}
	return loaded
}

func TestCircleIn(t *testing.T) {
	if c := circleIn(map[string][]string{"a": {"b", "c"}, "b": {"c"}}); c != nil {
		t.Errorf("%v is no circle", c)
	}
	if c := circleIn(map[string][]string{"a": {"b"}, "b": {"c"}, "c": {"b"}}); !slices.Equal(c, []string{"b", "c", "b"}) {
		t.Errorf("circle %v, want b c b", c)
	}
}

// uses returns which other files of the package each file uses a function, method,
// type or constant of.
func uses(p *source.Package) map[string][]string {
	out := map[string][]string{}
	name := func(n ast.Node) string { return filepath.Base(p.Fset.Position(n.Pos()).Filename) }
	for _, file := range p.Syntax {
		from, to := name(file), map[string]bool{}
		ast.Inspect(file, func(n ast.Node) bool {
			id, ok := n.(*ast.Ident)
			if !ok {
				return true
			}
			used := p.TypesInfo.Uses[id]
			if used == nil || used.Pkg() != p.Types {
				return true
			}
			if _, variable := used.(*types.Var); variable && used.Parent() != p.Types.Scope() {
				return true // a field or a local one
			}
			to[filepath.Base(p.Fset.Position(used.Pos()).Filename)] = true
			return true
		})
		delete(to, from)
		out[from] = slices.Sorted(maps.Keys(to))
	}
	return out
}

// circleIn returns a circle of uses; nil = there is none.
func circleIn(uses map[string][]string) []string {
	done := map[string]bool{}
	var path []string
	var visit func(file string) []string
	visit = func(file string) []string {
		if i := slices.Index(path, file); i >= 0 {
			return append(slices.Clone(path[i:]), file)
		}
		if done[file] {
			return nil
		}
		path = append(path, file)
		for _, next := range uses[file] {
			if c := visit(next); c != nil {
				return c
			}
		}
		path, done[file] = path[:len(path)-1], true
		return nil
	}
	for _, file := range slices.Sorted(maps.Keys(uses)) {
		if c := visit(file); c != nil {
			return c
		}
	}
	return nil
}
