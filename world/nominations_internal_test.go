// SPDX-License-Identifier: Apache-2.0

package world

import (
	"fmt"
	"testing"

	"karpenter/model"
)

// While a crowd waits, no one is told to name a node; when some of them are
// bound, the rest are. Pods that are to leave a node name none.
func TestCrowd(t *testing.T) {
	w := New(model.NewAxis(), nil)
	w.SetNode(Node{Name: "n", UID: "n"})
	shape := &model.Shape{Key: "s", Requests: model.Resources{1}}
	pod := func(i int) Pod {
		name := fmt.Sprintf("p-%04d", i)
		return Pod{Namespace: "d", Name: name, UID: name, Shape: shape, Pending: true}
	}
	var planned []model.Pod
	for i := range crowd + 1 {
		p := pod(i)
		w.SetPod(p)
		planned = append(planned, model.Pod{Namespace: p.Namespace, Name: p.Name, UID: p.UID})
	}
	w.Placed("n", planned)
	leaving := pod(crowd + 1)
	leaving.Node, leaving.Pending = "other", false
	w.SetPod(leaving)
	w.Placed("n", []model.Pod{{Namespace: "d", Name: leaving.Name, UID: leaving.UID, From: "other"}})
	if told := w.Nominations("n", ""); len(told) != 0 {
		t.Fatalf("%d pods of a crowd are told", len(told))
	}
	first := pod(0)
	first.Node, first.Pending = "n", false
	w.SetPod(first)
	if told := w.Nominations("n", ""); len(told) != crowd || told[0].Name != "p-0001" {
		t.Errorf("%d pods are told after one was bound, want %d", len(told), crowd)
	}
	w.DeletePod("d", leaving.Name)
	w.SetPod(pod(crowd + 1))
	w.Placed("n", []model.Pod{{Namespace: "d", Name: leaving.Name, UID: leaving.UID}})
	if told := w.Nominations("n", ""); len(told) != 0 {
		t.Errorf("%d pods of a crowd are told when one of them has been bound before", len(told))
	}
}
