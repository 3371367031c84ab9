// SPDX-License-Identifier: Apache-2.0

package crds_test

import (
	"cmp"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"

	"karpenter/api/crds"
)

var update = flag.Bool("update", false, "write the tables in docs/fields anew")

// reference is where the documents are, one for each kind, by its name in lower
// case.
var reference = filepath.Join("..", "..", "docs", "fields")

// definitions returns the definitions by kind.
func definitions(t *testing.T) map[string]*apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	files, err := crds.Manifests()
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]*apiextensionsv1.CustomResourceDefinition{}
	for name, content := range files {
		crd := &apiextensionsv1.CustomResourceDefinition{}
		if err := yaml.UnmarshalStrict(content, crd); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		all[crd.Spec.Names.Kind] = crd
	}
	return all
}

// aField is a field of a kind.
type aField struct {
	path     string // such as spec.disruption.budgets[].nodes
	schema   apiextensionsv1.JSONSchemaProps
	required bool
}

// leaf reports whether the field holds a value, not other fields.
func (f aField) leaf() bool { return len(f.inner().Properties) == 0 }

// inner returns the schema of what a list holds, or of the field itself.
func (f aField) inner() *apiextensionsv1.JSONSchemaProps {
	if f.schema.Items != nil {
		return f.schema.Items.Schema
	}
	return &f.schema
}

// fields returns spec and status and what they hold, each before what it holds,
// in the order of the alphabet.
func fields(crd *apiextensionsv1.CustomResourceDefinition) []aField {
	var all []aField
	var walk func(prefix string, schema *apiextensionsv1.JSONSchemaProps)
	walk = func(prefix string, schema *apiextensionsv1.JSONSchemaProps) {
		for _, name := range slices.Sorted(maps.Keys(schema.Properties)) {
			if prefix == "" && name != "spec" && name != "status" {
				continue
			}
			f := aField{prefix + name, schema.Properties[name], slices.Contains(schema.Required, name)}
			all = append(all, f)
			below := f.path + "."
			if f.schema.Items != nil {
				below = f.path + "[]."
			}
			walk(below, f.inner())
		}
	}
	walk("", crd.Spec.Versions[0].Schema.OpenAPIV3Schema)
	return all
}

var tableMark = regexp.MustCompile(`(?s)<!-- fields (\S+) -->\n.*?<!-- end -->\n`)

// TestFieldTables writes the tables in docs/fields from the definitions. A table
// "fields spec.disruption" has what is below that, but for what a longer one has.
// Every field is in some table.
func TestFieldTables(t *testing.T) {
	words := patterns()
	for kind, crd := range definitions(t) {
		path := filepath.Join(reference, strings.ToLower(kind)+".md")
		text, err := os.ReadFile(path)
		if err != nil {
			t.Error(err)
			continue
		}
		var marks []string
		for _, mark := range tableMark.FindAllStringSubmatch(string(text), -1) {
			marks = append(marks, mark[1])
		}
		tables := map[string][]string{}
		for _, f := range fields(crd) {
			if (f.path == "spec" || f.path == "status") && len(f.schema.XValidations) == 0 {
				continue // there is nothing to say but what its fields are
			}
			mark, ok := longest(marks, f.path)
			if !ok {
				t.Errorf("%s has no table for %s: add the lines <!-- fields %s --> and <!-- end -->", path, f.path, f.path[:max(0, strings.LastIndex(f.path, "."))])
				continue
			}
			tables[mark] = append(tables[mark], f.row(mark, words))
		}
		got := tableMark.ReplaceAllStringFunc(string(text), func(old string) string {
			mark := tableMark.FindStringSubmatch(old)[1]
			if len(tables[mark]) == 0 {
				t.Errorf("%s: %s has no fields", path, mark)
			}
			return "<!-- fields " + mark + " -->\n| field | type | default | allowed | meaning |\n|---|---|---|---|---|\n" +
				strings.Join(tables[mark], "") + "<!-- end -->\n"
		})
		if got == string(text) {
			continue
		}
		if !*update {
			t.Errorf("%s is not what the definition says: make generate", path)
		} else if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for text, p := range words {
		if !p.used {
			t.Errorf("no field has the pattern %s any more", text)
		}
	}
}

// longest returns the longest of the marks that the path is below, or that is
// all there is of it.
func longest(marks []string, path string) (string, bool) {
	found := ""
	for _, mark := range marks {
		below := strings.HasPrefix(path, mark) && strings.IndexAny(path[len(mark):], ".[") == 0
		if (below || path == mark && !strings.Contains(path, ".")) && len(mark) > len(found) {
			found = mark
		}
	}
	return found, found != ""
}

// row is the field's line in the table of a mark.
func (f aField) row(mark string, words map[string]*pattern) string {
	name := "*itself*"
	if f.path != mark {
		name = "`" + strings.TrimPrefix(strings.TrimPrefix(f.path, mark), "[]")[1:] + "`"
	}
	preset := ""
	switch {
	case f.schema.Default != nil:
		preset = "`" + compact(f.schema.Default.Raw) + "`"
	case f.required:
		preset = "*required*"
	}
	about := withoutName(strings.ReplaceAll(f.schema.Description, "\n", " "), f.path)
	return "| " + name + " | " + kindOf(&f.schema) + " | " + preset + " | " + escaped(strings.Join(allowed(&f.schema, words), "; ")) + " | " + escaped(about) + " |\n"
}

// begins matches how the comments of fields begin after the name of the field in Go.
var begins = regexp.MustCompile(`^(?:(?:is|are|says|say|holds|names|lists) ((?:an?|the|how|when|where|whether) )|([a-z]+[^i\W]s ))`)

// withoutName returns the description without the name of the field, which is in another
// column: "Weight is how much" becomes "How much", and "GPU configures" becomes
// "Configures". A name that has to stay is as users write it.
func withoutName(about, path string) string {
	name := strings.Trim(path[strings.LastIndexByte(path, '.')+1:], "[]")
	first, rest, _ := strings.Cut(about, " ")
	if !strings.EqualFold(first, name) {
		return about
	}
	m := begins.FindStringSubmatchIndex(rest)
	if m == nil || strings.HasPrefix(rest, "nodes ") {
		return "`" + name + "` " + rest
	}
	rest = rest[max(m[2], m[4]):]
	return strings.ToUpper(rest[:1]) + rest[1:]
}

func escaped(cell string) string { return strings.ReplaceAll(cell, "|", `\|`) }

// compact writes a default as people write it.
func compact(raw []byte) string {
	var value any
	if err := json.Unmarshal(raw, &value); err != nil {
		return string(raw)
	}
	if text, ok := value.(string); ok {
		return text
	}
	return string(raw)
}

// kindOf names the type of a field.
func kindOf(s *apiextensionsv1.JSONSchemaProps) string {
	switch {
	case s.XIntOrString:
		return "quantity"
	case s.Items != nil:
		return "list of " + kindOf(s.Items.Schema) + "s"
	case s.AdditionalProperties != nil && s.AdditionalProperties.Schema != nil:
		return "map to " + kindOf(s.AdditionalProperties.Schema)
	case s.Format == "date-time":
		return "time"
	}
	return cmp.Or(s.Type, "any")
}

// allowed says what the API server accepts beyond the type.
func allowed(s *apiextensionsv1.JSONSchemaProps, words map[string]*pattern) []string {
	var all []string
	add := func(format string, args ...any) { all = append(all, fmt.Sprintf(format, args...)) }
	if len(s.Enum) > 0 {
		var values []string
		for _, v := range s.Enum {
			values = append(values, "`"+compact(v.Raw)+"`")
		}
		add("%s", strings.Join(values, ", "))
	}
	switch {
	case s.Minimum != nil && s.Maximum != nil:
		add("%.0f to %.0f", *s.Minimum, *s.Maximum)
	case s.Minimum != nil:
		add("%.0f or more", *s.Minimum)
	}
	if s.Pattern != "" && !s.XIntOrString {
		if p := words[s.Pattern]; p != nil {
			p.used = true
			add("%s", p.words)
		} else {
			add("`%s`", s.Pattern)
		}
	}
	for _, most := range []*int64{s.MaxItems, s.MaxProperties} {
		if most != nil {
			add("at most %d", *most)
		}
	}
	if s.MinLength != nil {
		add("not empty")
	}
	if s.MaxLength != nil {
		add("at most %d characters", *s.MaxLength)
	}
	if s.XListType != nil && *s.XListType == "set" {
		add("each once")
	}
	if s.AdditionalProperties != nil && s.AdditionalProperties.Schema != nil {
		all = append(all, allowed(s.AdditionalProperties.Schema, words)...)
	}
	for _, rule := range s.XValidations {
		add("*%s*", rule.Message)
	}
	if s.Items != nil {
		all = append(all, allowed(s.Items.Schema, words)...)
	}
	return all
}

// pattern is what a regular expression means.
type pattern struct {
	words string
	used  bool
}

// patterns returns the regular expressions that people need not read.
func patterns() map[string]*pattern {
	all := map[string]*pattern{}
	for text, words := range map[string]string{
		`^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*(\/))?([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]$`: "a qualified name, such as `example.com/team` or `team`",
		`^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$`:  "a qualified name",
		`^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$`:    "one word",
		`^([A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?|)$`: "one word or nothing",
		`^(([0-9]{1,6}h|[0-9]{1,7}m|[0-9]{1,9}s)+|(1[0-9]{6}|2[0-4][0-9]{5})h([0-9]{1,2}m)?([0-9]{1,2}s)?|[0-9]{8}m|[1-8][0-9]{9}s)$`:         "a duration of `h`, `m` and `s`, such as `1h30m`",
		`^((([0-9]{1,6}h|[0-9]{1,7}m|[0-9]{1,9}s)+|(1[0-9]{6}|2[0-4][0-9]{5})h([0-9]{1,2}m)?([0-9]{1,2}s)?|[0-9]{8}m|[1-8][0-9]{9}s)|Never)$`: "a duration of `h`, `m` and `s`, such as `1h30m`, or `Never`",
		`^([0-9]{1,6}h|[0-9]{1,8}m|[0-9]{1,6}h[0-9]{1,7}m)(0s)?$`:                                                                             "a duration of `h` and `m`, such as `8h` or `1h30m`",
		`^((100|[0-9]{1,2})%|[0-9]+)$`:                  "a number in quotes, or `0%` to `100%`",
		`^(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?$`: "a label value",
		`^[^/]*$`:                              "no `/`, so no version",
		`^[0-9]{12}$`:                          "12 digits",
		`^cr-[0-9a-z]+$`:                       "`cr-…`",
		`^\d+(E|P|T|G|M|K|Ei|Pi|Ti|Gi|Mi|Ki)$`: "a whole number with a unit, such as `50Mi` or `50M`",
		`^([0-9]+(s|m|h))+$`:                   "a duration of `h`, `m` and `s`, such as `1h30m`",
		`^\d+ \d+$`:                            "two ports with a space between them",
		`^(\.|[A-Za-z0-9]([A-Za-z0-9_-]{0,61}[A-Za-z0-9])?(\.[A-Za-z0-9]([A-Za-z0-9_-]{0,61}[A-Za-z0-9])?)*\.?)$`:                                                         "a DNS name, or `.`",
		`(?i)^\/subscriptions\/[^\/]+\/resourceGroups\/[a-zA-Z0-9_\-().]{0,89}[a-zA-Z0-9_\-()]\/providers\/Microsoft\.Network\/virtualNetworks\/[^\/]+\/subnets\/[^\/]+$`: "the ARM ID of a subnet, in any letter case",
		`^pg-[0-9a-z]+$`:      "`pg-…`",
		`subnet-[0-9a-z]+`:    "`subnet-…`",
		`sg-[0-9a-z]+`:        "`sg-…`",
		`ami-[0-9a-z]+`:       "`ami-…`",
		`^[0-9]+(\.[0-9]+)?$`: "an unsigned decimal, such as `0.5`",
		`^([+-][0-9]*\.?[0-9]+|\+[0-9]*\.?[0-9]+%|-[0-9]{1,2}(\.[0-9]+)?%|-100%)$`:                                                                                                "a signed decimal, such as `+0.5`; or a signed percentage, `-100%` and more",
		`^@(annually|yearly|monthly|weekly|daily|midnight|hourly)|\S+\s+\S+\s+\S+\s+\S+\s+\S+`:                                                                                    "five fields of cron, or `@annually`, `@yearly`, `@monthly`, `@weekly`, `@daily`, `@midnight`, `@hourly`",
		`^((59000|5[0-8][0-9]{3}|[1-4][0-9]{4}|[1-9][0-9]{0,3})Gi|(64000|6[0-3][0-9]{3}|[1-5][0-9]{4}|[1-9][0-9]{0,3})G|(5[0-8]|[1-4][0-9]|[1-9])Ti|(6[0-4]|[1-5][0-9]|[1-9])T)$`: "`1Gi` to `59000Gi`, `1G` to `64000G`, `1Ti` to `58Ti`, `1T` to `64T`; whole numbers",
	} {
		all[text] = &pattern{words: words}
	}
	return all
}

// TestDescriptions: kubectl explain shows neither defaults nor more than four
// values of an enumeration, so the description of each field must.
func TestDescriptions(t *testing.T) {
	const shown = 4
	for kind, crd := range definitions(t) {
		for _, f := range fields(crd) {
			if strings.HasPrefix(f.path, "status") {
				continue
			}
			at := kind + "." + f.path
			if f.schema.Description == "" {
				t.Errorf("%s has no description", at)
			}
			about := strings.ReplaceAll(f.schema.Description, "\n", " ")
			if f.schema.Default != nil && f.leaf() && !strings.HasSuffix(about, " Default "+compact(f.schema.Default.Raw)+".") {
				t.Errorf("%s does not end with its default, %s: %s", at, compact(f.schema.Default.Raw), about)
			}
			for _, value := range f.schema.Enum {
				if len(f.schema.Enum) > shown && !strings.Contains(about, compact(value.Raw)) {
					t.Errorf("%s does not name the value %s", at, compact(value.Raw))
				}
			}
		}
	}
}
