// SPDX-License-Identifier: Apache-2.0

package savings

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/unicode"
	"golang.org/x/text/transform"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Kinds are the objects that are read.
func Kinds() []client.Object {
	return []client.Object{&corev1.Namespace{}, &corev1.Node{}, &appsv1.DaemonSet{}, &policyv1.PodDisruptionBudget{}, &corev1.Pod{}}
}

// Cluster is the objects of a cluster.
type Cluster struct {
	Nodes      []*corev1.Node
	Pods       []*corev1.Pod
	DaemonSets []*appsv1.DaemonSet
	Budgets    []*policyv1.PodDisruptionBudget
	Namespaces []*corev1.Namespace
}

// Add adds an object of one of the Kinds, and ignores any other.
func (c *Cluster) Add(o runtime.Object) {
	switch o := o.(type) {
	case *corev1.Node:
		c.Nodes = append(c.Nodes, o)
	case *corev1.Pod:
		c.Pods = append(c.Pods, o)
	case *appsv1.DaemonSet:
		c.DaemonSets = append(c.DaemonSets, o)
	case *policyv1.PodDisruptionBudget:
		c.Budgets = append(c.Budgets, o)
	case *corev1.Namespace:
		c.Namespaces = append(c.Namespaces, o)
	}
}

// header is what tells what a document is.
type header struct {
	APIVersion string            `json:"apiVersion"`
	Kind       string            `json:"kind"`
	Items      []json.RawMessage `json:"items"`
}

// Read reads objects and lists of objects, as kubectl get -o json or -o yaml
// prints them, also compressed by gzip. Objects of other kinds are ignored.
func (c *Cluster) Read(r io.Reader, scheme *runtime.Scheme) error {
	buffered := bufio.NewReader(r)
	r = buffered
	switch magic, err := buffered.Peek(2); {
	case err != nil && !errors.Is(err, io.EOF):
		return err
	case bytes.Equal(magic, []byte{0x1f, 0x8b}):
		if r, err = gzip.NewReader(buffered); err != nil {
			return err
		}
	}
	// Redirected output of PowerShell is UTF-16.
	documents := yaml.NewYAMLOrJSONDecoder(transform.NewReader(r, unicode.BOMOverride(encoding.Nop.NewDecoder())), 4096)
	for n := 1; ; n++ {
		var raw json.RawMessage
		err := documents.Decode(&raw)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			err = fmt.Errorf("%w; the file is cut off, or is not what kubectl get -o json prints", err)
		}
		if raw = bytes.TrimSpace(raw); err == nil && len(raw) > 0 {
			err = c.document(raw, scheme, schema.GroupVersionKind{})
		}
		if err != nil {
			return fmt.Errorf("document %d: %w", n, err)
		}
	}
}

// document adds an object or a list. Items of a list such as PodList need no
// kind.
func (c *Cluster) document(raw json.RawMessage, scheme *runtime.Scheme, like schema.GroupVersionKind) error {
	if bytes.Equal(raw, []byte("null")) {
		return nil
	}
	var h header
	if bytes.HasPrefix(raw, []byte("[")) { // as jq .items prints
		if err := json.Unmarshal(raw, &h.Items); err != nil {
			return err
		}
	} else if err := json.Unmarshal(raw, &h); err != nil {
		return errors.New("not a Kubernetes object; want what kubectl get -o json prints")
	}
	gvk := schema.FromAPIVersionAndKind(h.APIVersion, h.Kind)
	if h.Kind == "" {
		gvk = like
	}
	if h.Items != nil {
		of := gvk
		of.Kind = gvk.Kind[:max(0, len(gvk.Kind)-len("List"))]
		for i, item := range h.Items {
			if err := c.document(item, scheme, of); err != nil {
				return fmt.Errorf("item %d: %w", i+1, err)
			}
		}
		return nil
	}
	if gvk.Kind == "" {
		return errors.New("no kind in it; want what kubectl get -o json prints")
	}
	for _, kind := range Kinds() {
		known, _, err := scheme.ObjectKinds(kind)
		if err != nil {
			return err
		}
		if known[0] != gvk {
			continue
		}
		object, err := scheme.New(gvk)
		if err != nil {
			return err
		}
		if err := json.Unmarshal(raw, object); err != nil {
			return fmt.Errorf("%s: %w", gvk.Kind, err)
		}
		c.Add(object)
	}
	return nil
}
