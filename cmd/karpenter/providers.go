package main

import (
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime/pkg/manager"

	v1 "karpenter/api/v1"
	"karpenter/cloud"
	"karpenter/cloud/kwok"
	"karpenter/cmd/karpenter/config"
)

// provider is a cloud provider with what belongs to it.
type provider struct {
	cloud.Provider
	// labels are what it knows about label keys.
	labels v1.Labels
	// register adds the controllers of its own to the manager.
	register func(ctrl.Manager) error
}

// newProvider returns the provider the process works with. There is one so
// far; others are chosen here.
func newProvider(mgr ctrl.Manager, c config.Config, clk clock.PassiveClock) (provider, error) {
	catalogue, err := kwok.ReadCatalogue(c.InstanceTypesFilePath)
	if err != nil {
		return provider{}, err
	}
	with := kwok.Config{Client: mgr.GetClient(), Live: mgr.GetAPIReader(), Catalogue: catalogue, Clock: clk}
	return provider{
		Provider: kwok.New(with),
		labels:   catalogue.Labels(),
		register: kwok.NewBoot(with).SetupWithManager,
	}, nil
}
