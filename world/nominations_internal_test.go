package world

import (
	"fmt"
	"testing"

	"karpenter/model"
)

// Beyond so many pods that name a node, more are left to the scheduler; when
// some are bound, there is room again.
func TestOutstandingNominations(t *testing.T) {
	w := New(model.NewAxis(), nil)
	w.SetNode(Node{Name: "n", UID: "n"})
	shape := &model.Shape{Key: "s", Requests: model.Resources{1}}
	pod := func(i int) Pod {
		name := fmt.Sprintf("p-%04d", i)
		return Pod{Namespace: "d", Name: name, UID: name, Shape: shape, Pending: true}
	}
	var planned []model.Pod
	for i := range outstanding + 5 {
		p := pod(i)
		w.SetPod(p)
		planned = append(planned, model.Pod{Namespace: p.Namespace, Name: p.Name, UID: p.UID})
	}
	w.Placed("n", planned)
	told := w.Nominations("n", "")
	if len(told) != outstanding || told[0].Name != "p-0000" {
		t.Fatalf("%d pods are told first, want %d", len(told), outstanding)
	}
	for i := range told {
		p := pod(i)
		p.Nominated = "n"
		w.SetPod(p)
	}
	if more := w.Nominations("n", ""); len(more) != 0 {
		t.Errorf("%d pods are told beyond the limit", len(more))
	}
	for i := range 3 {
		p := pod(i)
		p.Node, p.Nominated, p.Pending = "n", "n", false
		w.SetPod(p)
	}
	if more := w.Nominations("n", ""); len(more) != 3 {
		t.Errorf("%d pods are told after three were bound, want 3", len(more))
	}
}
