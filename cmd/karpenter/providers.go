package main

import (
	ctrl "sigs.k8s.io/controller-runtime/pkg/manager"

	v1 "karpenter/api/v1"
	"karpenter/cloud"
	"karpenter/cloud/kwok"
	"karpenter/kube/volumes"
)

// provider is a cloud provider with what belongs to it.
type provider struct {
	cloud.Provider
	// labels are what it knows about label keys.
	labels v1.Labels
	// volumes are those its nodes cannot use. KWOK's can use all.
	volumes volumes.Rules
	// register adds the controllers of its own to the manager.
	register func(ctrl.Manager) error
}

// newProvider returns the provider the process works with. There is one so
// far; others are chosen here.
func newProvider(w *wiring) (provider, error) {
	catalogue, err := kwok.ReadCatalogue(w.config.InstanceTypesFilePath)
	if err != nil {
		return provider{}, err
	}
	with := kwok.Config{Client: w.mgr.GetClient(), Live: w.mgr.GetAPIReader(), Catalogue: catalogue, Clock: w.clock}
	if w.overlays != nil {
		with.Overlay = w.overlays.Overlay
	}
	return provider{
		Provider: kwok.New(with),
		labels:   catalogue.Labels(),
		register: kwok.NewBoot(with).SetupWithManager,
	}, nil
}
