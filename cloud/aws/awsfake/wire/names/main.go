// SPDX-License-Identifier: Apache-2.0

// Command names writes the tables of wire names that package wire reads, from
// the source of the SDK's clients as go.mod pins them. Only names that are not
// the Go field's own name are listed.
package main

import (
	"fmt"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/smithy-go/middleware"

	"karpenter/cloud/aws/client"
)

// service is one of the two services that speak the query protocol.
type service struct {
	name    string
	api     reflect.Type // the operations that Karpenter calls
	client  reflect.Type // where those of extra are found
	extra   []string     // what machines, tests and operators call beside
	element string       // of lists in XML
}

func main() {
	log.SetFlags(0)
	for _, s := range []service{
		{"ec2", reflect.TypeFor[client.EC2](), reflect.TypeFor[*ec2.Client](), []string{
			"DescribeInstanceAttribute", "DescribeLaunchTemplateVersions", "DescribeFleets", "DescribeFleetInstances",
			"DescribeAvailabilityZones", "DescribeVolumes", "DescribeTags", "DeleteTags",
		}, "item"},
		{"iam", reflect.TypeFor[client.IAM](), reflect.TypeFor[*iam.Client](), []string{
			"CreateRole", "GetRole", "DeleteRole", "TagInstanceProfile",
		}, "member"},
	} {
		if err := s.write(s.name + ".txt"); err != nil {
			log.Fatalf("%s: %v", s.name, err)
		}
	}
}

// table is the wire name by "Type.Field".
type table map[string]string

func (s *service) write(file string) error {
	in, out, elements, err := s.read()
	if err != nil {
		return err
	}
	lines := []string{}
	var walk func(names table, direction string, t reflect.Type, same func(a, b string) bool, seen map[reflect.Type]bool)
	walk = func(names table, direction string, t reflect.Type, same func(a, b string) bool, seen map[reflect.Type]bool) {
		for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice {
			t = t.Elem()
		}
		if t.Kind() != reflect.Struct || seen[t] || t.PkgPath() == "time" {
			return
		}
		seen[t] = true
		for f := range t.Fields() {
			if !f.IsExported() || f.Type == reflect.TypeFor[middleware.Metadata]() {
				continue
			}
			key := t.Name() + "." + f.Name
			wire, known := names[key]
			if !known {
				log.Fatalf("%s %s: the SDK's source says no wire name of it; its generator has changed", direction, key)
			}
			if !same(wire, f.Name) {
				lines = append(lines, direction+" "+key+" "+wire)
			}
			if element := elements[key]; direction == "out" && element != "" && element != s.element {
				lines = append(lines, "element "+key+" "+element)
			}
			walk(names, direction, f.Type, same, seen)
		}
	}
	seenIn, seenOut := map[reflect.Type]bool{}, map[reflect.Type]bool{}
	for name, method := range s.operations() {
		lines = append(lines, "op "+name)
		at := method.NumIn() - 2
		walk(in, "in", method.In(at), func(a, b string) bool { return a == b }, seenIn)
		walk(out, "out", method.Out(0), strings.EqualFold, seenOut)
	}
	slices.Sort(lines)
	head := "# Made by go generate: operations, and wire names that are not the Go field's. Do not edit.\n"
	return os.WriteFile(file, []byte(head+strings.Join(lines, "\n")+"\n"), 0o644)
}

func (s *service) operations() map[string]reflect.Type {
	all := map[string]reflect.Type{}
	for m := range s.api.Methods() {
		all[m.Name] = m.Type
	}
	for _, name := range s.extra {
		m, ok := s.client.MethodByName(name)
		if !ok {
			log.Fatalf("%s has no operation %s", s.name, name)
		}
		all[name] = m.Type
	}
	return all
}

// read learns all names from the SDK's serializers and deserializers.
func (s *service) read() (in, out, elements table, err error) {
	list := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/aws/aws-sdk-go-v2/service/"+s.name)
	dir, err := list.Output()
	if err != nil {
		return nil, nil, nil, fmt.Errorf("where the SDK is: %w", err)
	}
	read := func(file string) string {
		text, readErr := os.ReadFile(filepath.Join(strings.TrimSpace(string(dir)), file))
		if readErr != nil {
			err = readErr
		}
		return string(text)
	}
	in = scan(read("serializers.go"),
		regexp.MustCompile(`_serialize(?:Op)?Document\w+\(v \*(?:types\.)?(\w+), value`),
		regexp.MustCompile(`v\.(\w+)|object\.(?:Flat)?Key\("(\w+)"\)`), true)
	answers := read("deserializers.go")
	out = scan(answers,
		regexp.MustCompile(`_deserialize(?:Op)?Document\w+\(v \*\*(?:types\.)?(\w+), decoder`),
		regexp.MustCompile(`sv\.(\w+)|strings\.EqualFold\("(\w+)", t\.Name`), false)
	return in, out, elementsOf(answers), err
}

// elementsOf returns what the elements of lists in answers are called.
func elementsOf(source string) table {
	ofList := map[string]string{}
	list := regexp.MustCompile(`(?s)^(\w+)\(v \*\[\].*?strings\.EqualFold\("(\w+)", t\.Name`)
	structure := regexp.MustCompile(`_deserialize(?:Op)?Document\w+\(v \*\*(?:types\.)?(\w+), decoder`)
	field := regexp.MustCompile(`(\w+)\(&sv\.(\w+), nodeDecoder\)`)
	functions := strings.Split(source, "\nfunc ")
	for _, function := range functions {
		if m := list.FindStringSubmatch(function); m != nil {
			ofList[m[1]] = m[2]
		}
	}
	names := table{}
	for _, function := range functions {
		first, body, _ := strings.Cut(function, "\n")
		of := structure.FindStringSubmatch(first)
		if of == nil {
			continue
		}
		for _, m := range field.FindAllStringSubmatch(body, -1) {
			names[of[1]+"."+m[2]] = ofList[m[1]]
		}
	}
	return names
}

// scan goes through the functions whose head matches, and pairs each field
// (first group of the parts) with the wire name (second group) next to it:
// before it or after it.
func scan(source string, head, parts *regexp.Regexp, fieldFirst bool) table {
	names := table{}
	for function := range strings.SplitSeq(source, "\nfunc ") {
		first, body, _ := strings.Cut(function, "\n")
		of := head.FindStringSubmatch(first)
		if of == nil {
			continue
		}
		field, wire := "", ""
		for _, m := range parts.FindAllStringSubmatch(body, -1) {
			if m[1] != "" {
				field = m[1]
			} else {
				wire = m[2]
			}
			if (m[1] == "") != fieldFirst || field == "" || wire == "" {
				continue
			}
			if key := of[1] + "." + field; names[key] == "" {
				names[key] = wire
			}
			field, wire = "", ""
		}
	}
	return names
}
