// SPDX-License-Identifier: Apache-2.0

package status

import (
	"context"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/fields"
	"sigs.k8s.io/controller-runtime/pkg/client"

	awsv1 "karpenter/api/aws/v1"
	azurev1beta1 "karpenter/api/azure/v1beta1"
	kwokv1alpha1 "karpenter/api/kwok/v1alpha1"
	v1 "karpenter/api/v1"
	"karpenter/cmd/karpenter/situation"
	"karpenter/model"
	"karpenter/scenario"
)

// leaseName is the usual name of the lease that the leader holds.
const leaseName = "karpenter-leader-election"

// Facts is what the checks are about. What could not be read has an error.
type Facts struct {
	Now        time.Time
	Kubernetes string // version of the API server

	CRDs         map[string]read[*apiextensionsv1.CustomResourceDefinition] // by name; nil = not there
	Leases       read[[]coordinationv1.Lease]
	Deployments  read[[]*appsv1.Deployment]
	Pools        read[[]*v1.NodePool]
	Claims       read[[]*v1.NodeClaim]
	AWSClasses   read[[]*awsv1.EC2NodeClass]
	AzureClasses read[[]*azurev1beta1.AKSNodeClass]
	KWOKClasses  read[[]*kwokv1alpha1.KWOKNodeClass]
	Nodes        read[[]*corev1.Node]
	Events       read[[]*corev1.Event]

	Offerings read[time.Time]   // when they last changed; zero = not known
	Health    *situation.Health // nil = the leader does not report it
	Situation read[scenario.Situation]
	Plan      *model.Plan // for Situation
}

// read is a value, or why it could not be read.
type read[T any] struct {
	value T
	err   error
}

// crdNames are those that every installation has.
func crdNames() []string { return []string{"nodepools.karpenter.sh", "nodeclaims.karpenter.sh"} }

func classCRDs() []string {
	return []string{"ec2nodeclasses.karpenter.k8s.aws", "aksnodeclasses.karpenter.azure.com", "kwoknodeclasses.karpenter.kwok.sh"}
}

// Read gets the facts. place makes the plan for the pods that wait.
func Read(ctx context.Context, r *situation.Reader, now time.Time, kubernetes string, place func(scenario.Situation) *model.Plan) *Facts {
	cache := map[string]read[[]client.Object]{}
	list := func(kind client.Object) ([]client.Object, error) {
		key := fmt.Sprintf("%T", kind)
		got, known := cache[key]
		if !known {
			got.value, got.err = r.List(ctx, kind)
			cache[key] = got
		}
		return got.value, got.err
	}
	f := &Facts{Now: now, Kubernetes: kubernetes, CRDs: map[string]read[*apiextensionsv1.CustomResourceDefinition]{}}
	for _, name := range append(crdNames(), classCRDs()...) {
		crd := &apiextensionsv1.CustomResourceDefinition{}
		err := r.Client.Get(ctx, client.ObjectKey{Name: name}, crd)
		if apierrors.IsNotFound(err) {
			crd, err = nil, nil
		}
		f.CRDs[name] = read[*apiextensionsv1.CustomResourceDefinition]{crd, err}
	}
	leases := &coordinationv1.LeaseList{}
	f.Leases.err = r.Client.List(ctx, leases, client.InNamespace(r.Namespace),
		&client.ListOptions{FieldSelector: fields.OneTermEqualSelector("metadata.name", leaseName)})
	f.Leases.value = leases.Items
	f.Deployments = typed[*appsv1.Deployment](list(&appsv1.Deployment{}))
	f.Pools = typed[*v1.NodePool](list(&v1.NodePool{}))
	f.Claims = typed[*v1.NodeClaim](list(&v1.NodeClaim{}))
	f.AWSClasses = typed[*awsv1.EC2NodeClass](list(&awsv1.EC2NodeClass{}))
	f.AzureClasses = typed[*azurev1beta1.AKSNodeClass](list(&azurev1beta1.AKSNodeClass{}))
	f.KWOKClasses = typed[*kwokv1alpha1.KWOKNodeClass](list(&kwokv1alpha1.KWOKNodeClass{}))
	f.Nodes = typed[*corev1.Node](list(&corev1.Node{}))
	f.Events = typed[*corev1.Event](list(&corev1.Event{}))
	f.situation(ctx, r, list, place)
	return f
}

func (f *Facts) situation(ctx context.Context, r *situation.Reader, list func(client.Object) ([]client.Object, error), place func(scenario.Situation) *model.Plan) {
	published, changed, err := r.Published(ctx)
	f.Offerings, f.Health = read[time.Time]{changed, err}, published.Health
	if err != nil {
		f.Situation.err = err
		return
	}
	f.Situation.value, f.Situation.err = situation.Build(published, f.Now, list)
	if f.Situation.err == nil {
		f.Plan = place(f.Situation.value)
	}
}

func typed[T client.Object](objects []client.Object, err error) read[[]T] {
	out := read[[]T]{err: err}
	for _, o := range objects {
		if t, ok := o.(T); ok {
			out.value = append(out.value, t)
		}
	}
	return out
}
