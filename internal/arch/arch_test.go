// SPDX-License-Identifier: Apache-2.0

package arch

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const module = "karpenter/"

// goPackage is what `go list -json` tells about a package.
type goPackage struct {
	ImportPath, Dir string
	GoFiles         []string
	Imports, Deps   []string
}

func packages(t *testing.T) []goPackage {
	t.Helper()
	cmd := exec.Command("go", "list", "-json=ImportPath,Dir,GoFiles,Imports,Deps", "./...")
	cmd.Dir = "../.."
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	var all []goPackage
	for dec := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p goPackage
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			return all
		} else if err != nil {
			t.Fatalf("go list: %v", err)
		}
		all = append(all, p)
	}
}

// rule is one line of policy.txt.
type rule struct{ kind, folder, what, reason string }

func policy(t *testing.T) []rule {
	t.Helper()
	f, err := os.Open("policy.txt")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var rules []rule
	for s := bufio.NewScanner(f); s.Scan(); {
		line := strings.TrimSpace(s.Text())
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		head, rest, ok := strings.Cut(line, ":")
		if !ok {
			t.Fatalf("policy.txt: %q has no colon", line)
		}
		r := rule{kind: "allow", folder: head}
		if kind, folder, two := strings.Cut(head, " "); two {
			r.kind, r.folder = kind, folder
		}
		r.what, r.reason, _ = strings.Cut(strings.TrimSpace(rest), " — ")
		rules = append(rules, r)
	}
	return rules
}

func inside(path, folder string) bool { return path == folder || strings.HasPrefix(path, folder+"/") }

// folderOf returns the longest folder of the rules that holds the package.
func folderOf(rules []rule, path string) (rule, bool) {
	var best rule
	for _, r := range rules {
		if r.kind == "allow" && inside(path, r.folder) && len(r.folder) > len(best.folder) {
			best = r
		}
	}
	return best, best.folder != ""
}

func TestImportsFollowThePolicy(t *testing.T) {
	rules := policy(t)
	for _, p := range packages(t) {
		path, ours := strings.CutPrefix(p.ImportPath, module)
		folder, ok := folderOf(rules, path)
		if !ours || !ok {
			t.Errorf("%s is in no folder of policy.txt: add its folder", p.ImportPath)
			continue
		}
		for _, imported := range p.Imports {
			target, ours := strings.CutPrefix(imported, module)
			if !ours || inside(target, folder.folder) {
				continue
			}
			other, _ := folderOf(rules, target)
			if !slices.Contains(strings.Fields(folder.what), other.folder) {
				t.Errorf("%s imports %s: folder %s may import only [%s]", path, target, folder.folder, folder.what)
			}
		}
	}
}

// TestControllersDoNotKnowEachOther keeps control/x from importing control/y.
func TestControllersDoNotKnowEachOther(t *testing.T) {
	folder := func(path string) string {
		rest, ok := strings.CutPrefix(path, module+"control/")
		if !ok {
			return ""
		}
		name, _, _ := strings.Cut(rest, "/")
		return name
	}
	for _, p := range packages(t) {
		for _, imported := range p.Imports {
			from, to := folder(p.ImportPath), folder(imported)
			if from != "" && to != "" && from != to && to != "controltest" {
				t.Errorf("%s imports %s: what both need belongs in kube", p.ImportPath, imported)
			}
		}
	}
}

func TestBannedImportsStayOut(t *testing.T) {
	rules := policy(t)
	for _, p := range packages(t) {
		path := strings.TrimPrefix(p.ImportPath, module)
		for _, r := range rules {
			if r.kind != "ban" || !inside(path, r.folder) || strings.HasSuffix(path, "test") {
				continue
			}
			for _, dep := range p.Deps {
				if inside(dep, r.what) {
					t.Errorf("%s reaches %s: %s", path, dep, cmp.Or(r.reason, "no reason given"))
					break
				}
			}
		}
	}
}

// TestForbiddenNamesStayOut looks for calls of names like time.Now.
func TestForbiddenNamesStayOut(t *testing.T) {
	rules := policy(t)
	eachFile(t, func(path string, fset *token.FileSet, file *ast.File) {
		ast.Inspect(file, func(n ast.Node) bool {
			sel, ok := n.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			if x, ok := sel.X.(*ast.Ident); ok {
				for _, r := range rules {
					if r.kind == "free" && inside(path, r.folder) && r.what == x.Name+"."+sel.Sel.Name {
						t.Errorf("%s uses %s: %s", fset.Position(sel.Pos()), r.what, r.reason)
					}
				}
			}
			return true
		})
	})
}

func TestEveryPackageHasOneDocComment(t *testing.T) {
	docs := map[string]int{}
	eachFile(t, func(path string, _ *token.FileSet, file *ast.File) {
		docs[path] += 0
		if file.Doc != nil && !strings.HasPrefix(file.Doc.Text(), "Code generated") {
			docs[path]++
		}
	})
	for path, n := range docs {
		if n != 1 {
			t.Errorf("%s has %d package comments, want one", path, n)
		}
	}
}

func TestNoInitFunctions(t *testing.T) {
	eachFile(t, func(path string, fset *token.FileSet, file *ast.File) {
		for _, d := range file.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && f.Recv == nil && f.Name.Name == "init" {
				t.Errorf("%s: init runs before anybody can decide: wire it in cmd/karpenter/wiring", fset.Position(f.Pos()))
			}
		}
	})
}

// eachFile parses every non-test file of the module.
func eachFile(t *testing.T, visit func(path string, fset *token.FileSet, file *ast.File)) {
	t.Helper()
	fset := token.NewFileSet()
	for _, p := range packages(t) {
		for _, name := range p.GoFiles {
			file, err := parser.ParseFile(fset, filepath.Join(p.Dir, name), nil, parser.ParseComments)
			if err != nil {
				t.Fatal(err)
			}
			if !ast.IsGenerated(file) {
				visit(strings.TrimPrefix(p.ImportPath, module), fset, file)
			}
		}
	}
}
