// SPDX-License-Identifier: Apache-2.0

package wiring

import (
	"context"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrl "sigs.k8s.io/controller-runtime/pkg/manager"

	awsv1 "karpenter/api/aws/v1"
	azurev1beta1 "karpenter/api/azure/v1beta1"
	kwokv1alpha1 "karpenter/api/kwok/v1alpha1"
	v1 "karpenter/api/v1"
	"karpenter/cloud"
	"karpenter/cloud/kwok"
	"karpenter/cmd/karpenter/config"
	"karpenter/cmd/karpenter/situation"
	"karpenter/control/lifecycle"
	"karpenter/kube/events"
	"karpenter/kube/volumes"
	"karpenter/model"
)

// Provider is a cloud provider with what belongs to it.
type Provider struct {
	cloud.Provider
	// Labels are the label keys of the provider.
	Labels v1.Labels
	// Volumes are the volumes that its nodes cannot use. Nodes of KWOK can use
	// all.
	Volumes volumes.Rules
	// Hooks can delay the registration of its nodes.
	Hooks []lifecycle.Hook
	// EarlyCollections is the number of rounds of the garbage collector at the
	// start that follow each other quickly.
	EarlyCollections int
	// Extras returns what nodes of a NodePool cost besides their instances; nil
	// means nothing.
	Extras func(context.Context, *v1.NodePool) ([]model.Extra, error)
	// Kubelet returns what is known about the kubelets of a NodePool; nil means
	// nothing.
	Kubelet func(context.Context, *v1.NodePool) (cloud.Kubelet, error)
	// Health reports calls that fail; nil = no report.
	Health func() situation.Health
	// Register adds the controllers of its own to the manager.
	Register func(ctrl.Manager) error
}

// Supplies are the arguments for the constructor of a provider.
type Supplies struct {
	Manager ctrl.Manager
	Config  config.Config
	Clock   clock.PassiveClock
	// Recorder receives events, and Registry receives metrics.
	Recorder events.Recorder
	Registry prometheus.Registerer
	// Disrupted counts a claim that the provider disrupts.
	Disrupted func(ctx context.Context, claim *v1.NodeClaim, reason string)
	// Overlay applies NodeOverlays to the types of a NodePool; nil = there are
	// none.
	Overlay func(pool string, types []*cloud.InstanceType) ([]*cloud.InstanceType, error)
	// Additional returns what the user adds to the price of nodes of a NodePool.
	Additional func(ctx context.Context, pool string) ([]model.Extra, error)
}

// Required returns the custom kinds that the process needs with a provider.
func Required(provider string) []client.Object {
	classes := map[string]client.Object{
		config.CloudAWS: &awsv1.EC2NodeClass{}, config.CloudAzure: &azurev1beta1.AKSNodeClass{}, config.CloudKWOK: &kwokv1alpha1.KWOKNodeClass{},
	}
	return []client.Object{&v1.NodePool{}, &v1.NodeClaim{}, classes[provider]}
}

func (w *wiring) supplies() Supplies {
	s := Supplies{Manager: w.mgr, Config: w.config, Clock: w.clock, Recorder: w.recorder, Registry: w.Registry, Disrupted: w.counters.Forced, Additional: w.additional}
	if w.overlays != nil {
		s.Overlay = w.overlays.Overlay
	}
	return s
}

// KWOK makes the KWOK provider.
func KWOK(_ context.Context, s Supplies) (Provider, error) {
	catalogue, err := kwok.ReadCatalogue(s.Config.InstanceTypesFilePath)
	if err != nil {
		return Provider{}, err
	}
	with := kwok.Config{
		Client: s.Manager.GetClient(), Live: s.Manager.GetAPIReader(),
		Catalogue: catalogue, Clock: s.Clock, Overlay: s.Overlay, Extras: s.Additional,
	}
	return Provider{
		Provider: kwok.New(with),
		Labels:   catalogue.Labels(),
		Register: kwok.NewBoot(with).SetupWithManager,
	}, nil
}
