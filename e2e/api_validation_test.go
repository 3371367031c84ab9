// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	kwokv1alpha1 "karpenter/api/kwok/v1alpha1"
	v1 "karpenter/api/v1"
	"karpenter/api/v1alpha1"
)

// TestAPIValidation asks the API server, case by case, what it accepts. The
// cases are in testdata/api; its README says how to read and write them.
func TestAPIValidation(t *testing.T) {
	cluster := shared.Cluster(t)
	datadriven.Walk(t, "testdata/api", func(t *testing.T, path string) {
		if strings.HasSuffix(path, ".md") {
			return
		}
		s := &script{
			client: client.WithFieldValidation(cluster.Client, metav1.FieldValidationStrict),
		}
		datadriven.RunTest(t, path, s.run)
	})
}

// script is the state of one case file.
type script struct {
	client client.Client
	base   map[string]any // the object every line starts from
}

// run executes one command of a case file and returns its output.
func (s *script) run(t *testing.T, d *datadriven.TestData) string {
	if d.Cmd == "base" {
		s.base = map[string]any{}
		if err := yaml.Unmarshal([]byte(d.Input), &s.base); err != nil {
			d.Fatalf(t, "base: %v", err)
		}
		return ""
	}
	option := func(key string) (value string) {
		if d.HasArg(key) {
			d.ScanArgs(t, key, &value)
		}
		return value
	}
	var out strings.Builder
	for line := range strings.Lines(d.Input) {
		line = strings.TrimSpace(line)
		before, after, isUpdate := strings.Cut(line, " -> ")
		object := s.object(t, d, before, option("at"))
		fmt.Fprintf(&out, "%s: ", line)
		switch err := s.client.Create(t.Context(), object); {
		case err != nil:
			out.WriteString(refusal(err))
		case isUpdate:
			out.WriteString(s.update(t, d, object, after, option("at"), option("subresource")))
		default:
			out.WriteString(s.accepted(t, object, option("show")))
		}
		out.WriteByte('\n')
		if object.GetUID() != "" {
			if err := s.client.Delete(t.Context(), object); err != nil {
				d.Fatalf(t, "clean up after %q: %v", line, err)
			}
		}
	}
	return out.String()
}

// object returns the base changed by one line of a case.
func (s *script) object(t *testing.T, d *datadriven.TestData, change, at string) *unstructured.Unstructured {
	object := &unstructured.Unstructured{Object: runtime.DeepCopyJSON(s.base)}
	s.change(t, d, object, change, at)
	return object
}

// change sets the YAML value at the path, or merges it into the object when
// the path is empty. "-" changes nothing.
func (s *script) change(t *testing.T, d *datadriven.TestData, object *unstructured.Unstructured, text, at string) {
	if text == "-" {
		return
	}
	var value any
	if err := yaml.Unmarshal([]byte(expand(text)), &value); err != nil {
		d.Fatalf(t, "%q: %v", text, err)
	}
	for _, key := range slices.Backward(strings.Split(at, ".")) {
		if key != "" {
			value = map[string]any{key: value}
		}
	}
	patch, ok := value.(map[string]any)
	if !ok {
		d.Fatalf(t, "%q: want a YAML map, or at=PATH", text)
	}
	merge(object.Object, patch)
}

// merge is a JSON merge patch: maps merge, null removes, all else replaces.
func merge(into, patch map[string]any) {
	for key, value := range patch {
		sub, isMap := value.(map[string]any)
		old, wasMap := into[key].(map[string]any)
		switch {
		case value == nil:
			delete(into, key)
		case isMap && wasMap:
			merge(old, sub)
		case isMap:
			fresh := map[string]any{}
			merge(fresh, sub)
			into[key] = fresh
		default:
			into[key] = value
		}
	}
}

// expand replaces $repeat(n, text) by n copies of the text.
func expand(text string) string {
	repeat := regexp.MustCompile(`\$repeat\((\d+), (.*?)\)`)
	return repeat.ReplaceAllStringFunc(text, func(match string) string {
		parts := repeat.FindStringSubmatch(match)
		n, _ := strconv.Atoi(parts[1]) // the pattern admits only digits
		return strings.Repeat(parts[2], n)
	})
}

// update changes the stored object and says what the API server made of it.
func (s *script) update(t *testing.T, d *datadriven.TestData, object *unstructured.Unstructured, change, at, subresource string) string {
	changed := object.DeepCopy()
	s.change(t, d, changed, change, at)
	var err error
	if subresource != "" {
		err = s.client.SubResource(subresource).Update(t.Context(), changed)
	} else {
		err = s.client.Update(t.Context(), changed)
	}
	if err != nil {
		return refusal(err)
	}
	return "accepted"
}

// accepted describes an object the API server accepted: the stored value at
// the path, and whether Karpenter rejects the object later.
func (s *script) accepted(t *testing.T, object *unstructured.Unstructured, show string) string {
	if show != "" {
		if err := s.client.Get(t.Context(), client.ObjectKeyFromObject(object), object); err != nil {
			t.Fatal(err)
		}
		value, found, err := unstructured.NestedFieldNoCopy(object.Object, strings.Split(show, ".")...)
		if err != nil || !found {
			return fmt.Sprintf("accepted, without %s", show)
		}
		text, err := yaml.Marshal(value)
		if err != nil {
			t.Fatal(err)
		}
		return "accepted as\n  " + strings.ReplaceAll(strings.TrimSpace(string(text)), "\n", "\n  ")
	}
	if err := validate(t, object); err != nil {
		return "accepted, refused at runtime"
	}
	return "accepted"
}

// validate runs the runtime validation of the object's kind.
func validate(t *testing.T, object *unstructured.Unstructured) error {
	convert := func(into any) {
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, into); err != nil {
			t.Fatal(err)
		}
	}
	labels := v1.DefaultLabels().With(kwokv1alpha1.Labels())
	switch object.GetKind() {
	case "NodePool":
		var pool v1.NodePool
		convert(&pool)
		return v1.ValidateNodePool(&pool, labels)
	case "NodeOverlay":
		var overlay v1alpha1.NodeOverlay
		convert(&overlay)
		return v1alpha1.ValidateNodeOverlay(&overlay, labels)
	}
	return nil
}

// refusal returns where the API server found fault, and why, in short.
func refusal(err error) string {
	var status apierrors.APIStatus
	if !errors.As(err, &status) || status.Status().Details == nil || len(status.Status().Details.Causes) == 0 {
		return "error: " + err.Error()
	}
	faults := map[string]bool{}
	for _, cause := range status.Status().Details.Causes {
		// After an unusable value the server could not check the CEL rules.
		if cause.Field == "<nil>" {
			continue
		}
		faults[cause.Field+": "+shorten(cause.Message)] = true
	}
	return "rejected at " + strings.Join(slices.Sorted(maps.Keys(faults)), "\n  and at ")
}

// shorten drops from the API server's message what the line and the field say
// already, and regular expressions.
func shorten(message string) string {
	message = regexp.MustCompile(`^Invalid value: (".*?": )?`).ReplaceAllString(message, "")
	message = regexp.MustCompile(`^Unsupported value: ".*?": `).ReplaceAllString(message, "")
	message = regexp.MustCompile(`^\S+ in body (should|must)`).ReplaceAllString(message, "$1")
	return regexp.MustCompile(`should match '.*'`).ReplaceAllString(message, "should match the pattern")
}
