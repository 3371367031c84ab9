// SPDX-License-Identifier: Apache-2.0

package store

import (
	"fmt"
	"reflect"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	autoscalingv1 "karpenter/api/autoscaling/v1"
	autoscalingv1beta1 "karpenter/api/autoscaling/v1beta1"
	awsv1 "karpenter/api/aws/v1"
	azurev1beta1 "karpenter/api/azure/v1beta1"
	kwokv1alpha1 "karpenter/api/kwok/v1alpha1"
	v1 "karpenter/api/v1"
	"karpenter/api/v1alpha1"
)

// resource is what the API server knows of a kind.
type resource struct {
	gvk        schema.GroupVersionKind
	plural     schema.GroupResource
	namespaced bool
	// counted kinds have a generation, which a change of the spec raises.
	counted bool
	// custom kinds lose the status they are created with.
	custom bool
}

type served struct {
	object              client.Object
	namespaced, counted bool
}

// kinds lists what the API server serves.
func kinds() []served {
	return []served{
		{&corev1.Namespace{}, false, false},
		{&corev1.ConfigMap{}, true, false},
		{&corev1.Secret{}, true, false},
		{&corev1.Node{}, false, false},
		{&corev1.PersistentVolume{}, false, false},
		{&storagev1.StorageClass{}, false, false},
		{&storagev1.CSINode{}, false, false},
		{&storagev1.CSIDriver{}, false, false},
		{&storagev1.VolumeAttachment{}, false, false},
		{&v1.NodePool{}, false, true},
		{&v1.NodeClaim{}, false, true},
		{&v1alpha1.NodeOverlay{}, false, true},
		{&kwokv1alpha1.KWOKNodeClass{}, false, true},
		{&awsv1.EC2NodeClass{}, false, true},
		{&azurev1beta1.AKSNodeClass{}, false, true},
		{&corev1.Pod{}, true, true},
		{&corev1.PersistentVolumeClaim{}, true, false},
		{&corev1.Service{}, true, false},
		{&corev1.ReplicationController{}, true, true},
		{&corev1.PodTemplate{}, true, true},
		{&policyv1.PodDisruptionBudget{}, true, true},
		{&schedulingv1beta1.PodGroup{}, true, true},
		{&appsv1.DaemonSet{}, true, true},
		{&appsv1.Deployment{}, true, true},
		{&appsv1.ReplicaSet{}, true, true},
		{&appsv1.StatefulSet{}, true, true},
		{&autoscalingv1beta1.CapacityBuffer{}, true, true},
		{&autoscalingv1.ProvisioningRequest{}, true, true},
	}
}

// Server is what all stores have in common: the kinds they serve, with their
// defaults. It is immutable.
type Server struct {
	scheme    *runtime.Scheme
	mapper    meta.RESTMapper
	resources map[schema.GroupVersionKind]resource
	byType    map[reflect.Type]resource // of objects and of lists
	defaults  defaults
}

// NewServer returns a Server for the objects of the scheme.
func NewServer(scheme *runtime.Scheme) (*Server, error) {
	s := &Server{scheme: scheme, resources: map[schema.GroupVersionKind]resource{}, byType: map[reflect.Type]resource{}}
	mapper := meta.NewDefaultRESTMapper(nil)
	for _, k := range kinds() {
		gvk, err := apiutil.GVKForObject(k.object, scheme)
		if err != nil {
			return nil, fmt.Errorf("kind of %T: %w", k.object, err)
		}
		scope := meta.RESTScopeRoot
		if k.namespaced {
			scope = meta.RESTScopeNamespace
		}
		mapper.Add(gvk, scope)
		plural, _ := meta.UnsafeGuessKindToResource(gvk)
		r := resource{
			gvk: gvk, plural: plural.GroupResource(), namespaced: k.namespaced, counted: k.counted,
			custom: strings.Contains(reflect.TypeOf(k.object).Elem().PkgPath(), "karpenter/api"),
		}
		s.resources[gvk] = r
		s.byType[reflect.TypeOf(k.object)] = r
		list, err := scheme.New(gvk.GroupVersion().WithKind(gvk.Kind + "List"))
		if err != nil {
			return nil, fmt.Errorf("list of %s: %w", gvk.Kind, err)
		}
		s.byType[reflect.TypeOf(list)] = r
	}
	s.mapper = mapper
	var err error
	s.defaults, err = readDefaults()
	return s, err
}

// Scheme returns the scheme the Server was made with.
func (s *Server) Scheme() *runtime.Scheme { return s.scheme }

// RESTMapper returns the mapper of the kinds that are served.
func (s *Server) RESTMapper() meta.RESTMapper { return s.mapper }

// KindOf returns the kind of an object or list, or an error as from a server
// that does not serve it.
func (s *Server) KindOf(o runtime.Object) (schema.GroupVersionKind, error) {
	r, err := s.resourceOf(o)
	return r.gvk, err
}

// Namespaced reports whether objects of the kind live in namespaces.
func (s *Server) Namespaced(o runtime.Object) (bool, error) {
	r, err := s.resourceOf(o)
	return r.namespaced, err
}

func (s *Server) resourceOf(o runtime.Object) (resource, error) {
	if r, ok := s.byType[reflect.TypeOf(o)]; ok {
		return r, nil
	}
	gvk, err := apiutil.GVKForObject(o, s.scheme)
	if err != nil {
		return resource{}, err
	}
	return resource{}, &meta.NoKindMatchError{GroupKind: gvk.GroupKind(), SearchedVersions: []string{gvk.Version}}
}

// NotFound is the error for an object that does not exist.
func (s *Server) NotFound(gvk schema.GroupVersionKind, name string) error {
	return notFound(s.resources[gvk], name)
}
