// SPDX-License-Identifier: Apache-2.0

package lifecycle_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	v1 "karpenter/api/v1"
	"karpenter/cloud"
	"karpenter/control/controltest"
	"karpenter/control/lifecycle"
)

func TestLifecycle(t *testing.T) {
	for _, file := range []string{"launch", "registration", "hooks", "initialization", "liveness", "finalization"} {
		t.Run(file, func(t *testing.T) {
			controltest.Run(t, "testdata/"+file, setup)
		})
	}
}

// setup adds the reconciler, and these commands:
//
//	hook NAME pass | pending DURATION | error TEXT… | label KEY=VALUE
//	timeouts LAUNCH REGISTRATION
//	mark KEY=VALUE         let the provider label and annotate its instances
//	devices [DRIVER…] [serves RESOURCE]  what drivers have published on every Node
func setup(c *controltest.Cluster) {
	marking := &marker{Provider: c.Cloud}
	r := &lifecycle.Reconciler{
		Client:      c.Client,
		Provider:    marking,
		Clock:       c.Clock,
		Recorder:    c.Recorder,
		Metrics:     lifecycle.NewMetrics(c.Registry),
		Disruptions: c.Disruptions,
		Health:      health{c},
	}
	c.Reconcilers[""] = r
	c.Commands["hook"] = func(words []string) error {
		h := hook{name: words[0], order: words[1:]}
		i := slices.IndexFunc(r.Hooks, func(other lifecycle.Hook) bool { return other.Name() == h.name })
		if i < 0 {
			r.Hooks = append(r.Hooks, h)
			return nil
		}
		r.Hooks[i] = h
		return nil
	}
	c.Commands["devices"] = func(words []string) error {
		now := &published{Set: sets.New[string]()}
		if i := slices.Index(words, "serves"); i >= 0 {
			words, now.serves = words[:i], words[i+1]
		}
		now.Insert(words...)
		r.Devices = now
		return nil
	}
	c.Commands["mark"] = func(words []string) error {
		key, value, _ := strings.Cut(words[0], "=")
		marking.marks = map[string]string{key: value}
		return nil
	}
	c.Commands["timeouts"] = func(words []string) (err error) {
		launch, err := time.ParseDuration(words[0])
		registration, err2 := time.ParseDuration(words[1])
		r.LaunchTimeout, r.RegistrationTimeout = launch, registration
		return errors.Join(err, err2)
	}
}

// published is what drivers have published.
type published struct {
	sets.Set[string]
	serves string
}

func (p *published) Published(*corev1.Node) sets.Set[string] { return p.Set }

func (p *published) Serves(_ *corev1.Node, resource corev1.ResourceName) bool {
	return string(resource) == p.serves
}

// marker is a provider that leaves marks of its own on its instances.
type marker struct {
	cloud.Provider
	marks map[string]string
}

func (m *marker) Create(ctx context.Context, claim *v1.NodeClaim) (*cloud.Machine, error) {
	machine, err := m.Provider.Create(ctx, claim)
	if machine != nil {
		machine.Annotations = m.marks
		maps.Copy(machine.Labels, m.marks)
	}
	return machine, err
}

// health writes its calls into the transcript.
type health struct{ c *controltest.Cluster }

func (h health) Succeeded(claim *v1.NodeClaim) { h.c.Tell("health: %s succeeded", claim.Name) }
func (h health) Failed(claim *v1.NodeClaim, reason, message string) {
	h.c.Tell("health: %s failed: %s: %s", claim.Name, reason, message)
}

// hook does what the test sets.
type hook struct {
	name  string
	order []string
}

func (h hook) Name() string { return h.name }

func (h hook) Registered(_ context.Context, claim *v1.NodeClaim) (reconcile.Result, error) {
	switch h.order[0] {
	case "pending":
		after, err := time.ParseDuration(h.order[1])
		return reconcile.Result{RequeueAfter: after}, err
	case "error":
		return reconcile.Result{}, errors.New(strings.Join(h.order[1:], " "))
	case "label":
		key, value, _ := strings.Cut(h.order[1], "=")
		claim.Labels[key] = value
		return reconcile.Result{}, nil
	case "pass":
		return reconcile.Result{}, nil
	default:
		return reconcile.Result{}, fmt.Errorf("unknown order %q", h.order)
	}
}

func TestRegister(t *testing.T) {
	c := controltest.New(t)
	setup(c)
	c.Register(t)
}
