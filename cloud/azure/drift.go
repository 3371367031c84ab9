// SPDX-License-Identifier: Apache-2.0

package azure

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"karpenter/api/azure/v1beta1"
	"karpenter/api/unreadable"
	v1 "karpenter/api/v1"
	"karpenter/cloud"
	"karpenter/cloud/azure/bootstrap"
	"karpenter/cloud/azure/image"
	"karpenter/cloud/azure/machine"
)

// IsDrifted implements cloud.Provider. The first reason counts: what the class
// says, then the version of Kubernetes, then the identity of the kubelet, then the
// image, then what AKS says of the machine.
func (p *Provider) IsDrifted(ctx context.Context, claim *v1.NodeClaim) (string, error) {
	class, err := p.driftClass(ctx, claim)
	if class == nil || err != nil || unreadable.Error(class) != nil {
		return "", err
	}
	if class.Drifted(claim.Annotations) {
		return v1beta1.NodeClassDriftReason, nil
	}
	for _, test := range []func(context.Context, *v1.NodeClaim, *v1beta1.AKSNodeClass) (string, error){
		p.versionDrift, p.identityDrift, imageDrift, p.machineDrift,
	} {
		if reason, err := test(ctx, claim, class); reason != "" || err != nil {
			return reason, err
		}
	}
	return "", nil
}

// driftClass returns the class that the claim is compared with, nil if there is
// none.
func (p *Provider) driftClass(ctx context.Context, claim *v1.NodeClaim) (*v1beta1.AKSNodeClass, error) {
	name := claim.Labels[v1.NodePoolLabelKey]
	if name == "" || claim.Spec.NodeClassRef == nil {
		return nil, nil
	}
	pool := &v1.NodePool{}
	err := p.config.Client.Get(ctx, client.ObjectKey{Name: name}, pool)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read node pool %s: %w", name, err)
	}
	class, err := p.usableClass(ctx, claim.Spec.NodeClassRef)
	if errors.Is(err, errNoClass) {
		p.config.Event(pool, corev1.EventTypeWarning, noClassReason, noClassMessage)
		return nil, nil
	}
	return class, err
}

// versionDrift compares the kubelet of the claim's node.
func (p *Provider) versionDrift(ctx context.Context, claim *v1.NodeClaim, class *v1beta1.AKSNodeClass) (string, error) {
	version, unknown := class.KubernetesVersion()
	if unknown != nil {
		return "", nil
	}
	node, err := p.nodeOf(ctx, claim)
	if node == nil || err != nil {
		return "", err
	}
	if strings.TrimPrefix(node.Status.NodeInfo.KubeletVersion, "v") != version {
		return v1beta1.K8sVersionDriftReason, nil
	}
	return "", nil
}

// nodeOf returns the claim's node, nil if there is none or it is being deleted.
func (p *Provider) nodeOf(ctx context.Context, claim *v1.NodeClaim) (*corev1.Node, error) {
	if claim.Status.NodeName == "" {
		return nil, nil
	}
	node := &corev1.Node{}
	err := p.config.Client.Get(ctx, client.ObjectKey{Name: claim.Status.NodeName}, node)
	if apierrors.IsNotFound(err) || err == nil && !node.DeletionTimestamp.IsZero() {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read node %s: %w", claim.Status.NodeName, err)
	}
	return node, nil
}

// identityDrift compares the managed identity of the kubelet, if Karpenter gives it one.
func (p *Provider) identityDrift(ctx context.Context, claim *v1.NodeClaim, _ *v1beta1.AKSNodeClass) (string, error) {
	if !p.config.NewVMs || claim.Annotations[v1beta1.MachineResourceIDAnnotationKey] != "" {
		return "", nil
	}
	node, err := p.nodeOf(ctx, claim)
	if node == nil || err != nil {
		return "", err
	}
	if id := node.Labels[bootstrap.KubeletIdentityLabel]; id != "" && id != p.config.VMs.KubeletIdentity() {
		return v1beta1.KubeletIdentityDriftReason, nil
	}
	return "", nil
}

// imageDrift compares the claim's image.
func imageDrift(_ context.Context, claim *v1.NodeClaim, class *v1beta1.AKSNodeClass) (string, error) {
	images, unknown := class.Images()
	if unknown != nil {
		return "", nil
	}
	if len(images) == 0 {
		return "", fmt.Errorf("AKSNodeClass %s has no images", class.Name)
	}
	if claim.Status.ImageID == "" {
		return "", fmt.Errorf("NodeClaim %s has no image ID", claim.Name)
	}
	if slices.ContainsFunc(images, func(i v1beta1.NodeImage) bool {
		version, err := image.NodeImageVersion(i.ID)
		return err == nil && version == claim.Status.ImageID || strings.EqualFold(i.ID, claim.Status.ImageID)
	}) {
		return "", nil
	}
	return v1beta1.ImageDriftReason, nil
}

// synced is what AKS says of a machine that need not be replaced.
const synced = "Synced"

// machineDrift looks at what AKS says of the claim's machine.
func (p *Provider) machineDrift(ctx context.Context, claim *v1.NodeClaim, _ *v1beta1.AKSNodeClass) (string, error) {
	if p.config.Machines == nil {
		return "", nil
	}
	name, ok := p.config.Machines.OfVM(claim.Status.ProviderID)
	if !ok {
		return "", nil
	}
	m, err := p.config.Machines.Recent(ctx, name)
	if cloud.IsNotFound(err) || err == nil && machine.ProviderID(m.VM) != claim.Status.ProviderID {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	if m.DriftAction != "" && m.DriftAction != synced {
		return v1beta1.ClusterConfigDriftReason, nil
	}
	return "", nil
}
