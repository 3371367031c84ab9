// SPDX-License-Identifier: Apache-2.0

package controltest

import (
	"testing"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

// Registrar is a controller that can be added to a manager.
type Registrar interface {
	Register(manager.Manager, controller.Options) error
}

// Register adds all reconcilers to a manager that is never started, and fails
// the test when one cannot be added.
func (c *Cluster) Register(t *testing.T) {
	t.Helper()
	skip := true
	m, err := manager.New(&rest.Config{Host: "http://127.0.0.1:1"}, manager.Options{
		Scheme:  c.Client.Scheme(),
		Metrics: server.Options{BindAddress: "0"},
		// The same reconcilers are registered by one test after another.
		Controller: config.Controller{SkipNameValidation: &skip},
	})
	if err != nil {
		t.Fatal(err)
	}
	for name, r := range c.Reconcilers {
		registrar, ok := r.(Registrar)
		if !ok {
			t.Errorf("reconciler %q cannot be registered", name)
			continue
		}
		if err := registrar.Register(m, controller.Options{}); err != nil {
			t.Errorf("register reconciler %q: %v", name, err)
		}
	}
}
