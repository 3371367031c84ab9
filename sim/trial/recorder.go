// SPDX-License-Identifier: Apache-2.0

package trial

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	kubescheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"karpenter/api/crds"
	"karpenter/api/scheme"
	"karpenter/cmd/karpenter/recording"
	"karpenter/kube/events"
	"karpenter/sim"
)

// renewal is how often a leader renews its lease.
const renewal = 10 * time.Second

// Recorder is a witness that keeps a run as the commands read it: with what an API
// server has besides, which are the CRDs, the lease of the leader and the events.
// It may be asked for the recording when the trial is over.
type Recorder struct {
	namespace string // of Karpenter
	started   time.Time
	renewed   time.Time
	changes   []recording.Change
	events    int
}

// NewRecorder returns a Recorder for a process in the namespace.
func NewRecorder(namespace string) *Recorder { return &Recorder{namespace: namespace} }

// Name implements sim.Law.
func (r *Recorder) Name() string { return "recorder" }

// Check implements sim.Law.
func (r *Recorder) Check(s *sim.Seen) error {
	if r.started.IsZero() {
		r.started = s.Started
		if err := r.install(); err != nil {
			return err
		}
	}
	for r.renewed.IsZero() || !s.Now.Before(r.renewed.Add(renewal)) {
		r.renewed = r.renewed.Add(renewal)
		if r.renewed.Before(s.Started) {
			r.renewed = s.Started
		}
		r.add(r.renewed, r.lease(), false)
	}
	for _, c := range s.Changes {
		r.add(s.Now, c.Object(), c.New == nil)
	}
	for _, t := range s.Told {
		r.add(s.Now, r.event(t, s.Now), false)
	}
	return nil
}

// End implements sim.Law.
func (r *Recorder) End(*sim.Seen) error { return nil }

func (r *Recorder) add(at time.Time, o client.Object, deleted bool) {
	r.changes = append(r.changes, recording.Change{At: at, Deleted: deleted, Object: o})
}

// install adds the CRDs, without their schemas, as recordings have them.
func (r *Recorder) install() error {
	manifests, err := crds.Manifests()
	if err != nil {
		return err
	}
	for name, text := range manifests {
		crd := &apiextensionsv1.CustomResourceDefinition{}
		if err := yaml.Unmarshal(text, crd); err != nil {
			return fmt.Errorf("read CRD %s: %w", name, err)
		}
		r.add(r.started, crd, false)
	}
	return nil
}

func (r *Recorder) lease() *coordinationv1.Lease {
	holder, renewed := "simulation", metav1.NewMicroTime(r.renewed)
	return &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Namespace: r.namespace, Name: "karpenter-leader-election"},
		Spec:       coordinationv1.LeaseSpec{HolderIdentity: &holder, RenewTime: &renewed},
	}
}

func (r *Recorder) event(t sim.Told, at time.Time) *corev1.Event {
	r.events++
	namespace, name, found := strings.Cut(t.Name, "/")
	if !found {
		namespace, name = "", t.Name
	}
	in := namespace
	if in == "" {
		in = metav1.NamespaceDefault
	}
	return &corev1.Event{
		ObjectMeta:     metav1.ObjectMeta{Namespace: in, Name: fmt.Sprintf("%s.%d", name, r.events), CreationTimestamp: metav1.NewTime(at)},
		InvolvedObject: corev1.ObjectReference{Kind: t.Kind, Namespace: namespace, Name: name},
		Reason:         t.Reason, Message: t.Message, Type: t.Type, Count: 1,
		Source:         corev1.EventSource{Component: events.Source},
		FirstTimestamp: metav1.NewTime(at), LastTimestamp: metav1.NewTime(at),
	}
}

// Write writes the recording, of which the last moment is the end of the run.
func (r *Recorder) Write(out io.Writer, title string) error {
	scheme, err := RecordingScheme()
	if err != nil {
		return err
	}
	w, err := recording.NewWriter(out, recording.Header{Title: title, Started: r.started}, scheme)
	if err != nil {
		return err
	}
	for _, c := range r.changes {
		if err := w.Write(c); err != nil {
			return err
		}
	}
	return w.Close()
}

// RecordingScheme is the scheme of the objects in a recording.
func RecordingScheme() (*runtime.Scheme, error) {
	s := runtime.NewScheme()
	return s, errors.Join(kubescheme.AddToScheme(s), scheme.AddToScheme(s), apiextensionsv1.AddToScheme(s))
}
