// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "karpenter/api/v1"
)

// indexer notes what is indexed, and fails for one kind.
type indexer struct {
	fails   client.Object
	err     error
	indexed map[string][]string // kind and field → values of the sample of that kind
}

func (x *indexer) IndexField(_ context.Context, o client.Object, field string, values client.IndexerFunc) error {
	sample := sampleOf(o)
	if kind := kindOf(o); x.fails == nil || kind != kindOf(x.fails) {
		x.indexed[kind+" "+field] = values(sample)
		return nil
	}
	return x.err
}

func kindOf(o client.Object) string {
	switch o.(type) {
	case *corev1.Pod:
		return "Pod"
	case *corev1.Node:
		return "Node"
	case *storagev1.VolumeAttachment:
		return "VolumeAttachment"
	case *v1.NodeClaim:
		return "NodeClaim"
	}
	return "NodePool"
}

func sampleOf(o client.Object) client.Object {
	class := &v1.NodeClassReference{Group: "g", Kind: "k", Name: "n"}
	switch o.(type) {
	case *corev1.Pod:
		return &corev1.Pod{}
	case *corev1.Node:
		return &corev1.Node{Spec: corev1.NodeSpec{ProviderID: "id"}}
	case *storagev1.VolumeAttachment:
		return &storagev1.VolumeAttachment{Spec: storagev1.VolumeAttachmentSpec{NodeName: "node"}}
	case *v1.NodeClaim:
		return &v1.NodeClaim{Spec: v1.NodeClaimSpec{NodeClassRef: class}, Status: v1.NodeClaimStatus{ProviderID: "id"}}
	}
	return &v1.NodePool{}
}

func TestIndexes(t *testing.T) {
	x := &indexer{indexed: map[string][]string{}}
	if err := AddIndexes(t.Context(), x); err != nil {
		t.Fatal(err)
	}
	want := map[string][]string{
		"Pod spec.nodeName":                              nil, // unbound
		"Node spec.providerID":                           {"id"},
		"VolumeAttachment spec.nodeName":                 {"node"},
		"NodeClaim status.providerID":                    {"id"},
		"NodeClaim spec.nodeClassRef.group":              {"g"},
		"NodeClaim spec.nodeClassRef.kind":               {"k"},
		"NodeClaim spec.nodeClassRef.name":               {"n"},
		"NodePool spec.template.spec.nodeClassRef.group": nil, // none given
		"NodePool spec.template.spec.nodeClassRef.kind":  nil,
		"NodePool spec.template.spec.nodeClassRef.name":  nil,
	}
	if diff := cmp.Diff(want, x.indexed); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestFailuresToIndexAreErrors(t *testing.T) {
	x := &indexer{indexed: map[string][]string{}, fails: &corev1.Node{}, err: errors.New("conflict")}
	if err := AddIndexes(t.Context(), x); err == nil || err.Error() != "index *v1.Node by spec.providerID: conflict" {
		t.Errorf("error is %v", err)
	}
}
