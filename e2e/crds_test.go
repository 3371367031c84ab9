// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"karpenter/e2e/harness"
)

// TestStartWithoutCRDs starts the controller before its CRDs are installed. It lives, is not ready and names
// each CRD that is missing; it starts its work when the CRDs are there. Optional CRDs are not waited for.
func TestStartWithoutCRDs(t *testing.T) {
	cluster, err := harness.Start(t.Context(), harness.Options{WithoutCRDs: true})
	check(t, err)
	t.Cleanup(func() { check(t, cluster.Stop()) })
	needed := []string{"nodepools.karpenter.sh", "nodeclaims.karpenter.sh", "kwoknodeclasses.karpenter.kwok.sh"}

	first := start(t, cluster)
	first.waits(needed...)
	check(t, cluster.InstallCRDs(t.Context()))
	first.works("all")
	first.Kill()

	for _, crd := range needed {
		remove(t, cluster, crd)
		next := start(t, cluster)
		next.waits(crd)
		check(t, cluster.InstallCRDs(t.Context()))
		next.works(crd)
		next.Kill()
	}
	for _, crd := range []string{"nodeoverlays.karpenter.sh", "capacitybuffers.autoscaling.x-k8s.io"} {
		remove(t, cluster, crd)
	}
	start(t, cluster).works("optional")
}

// started is a controller with all optional features, and the port of its probes.
type started struct {
	*harness.Controller
	t       *testing.T
	cluster *harness.Cluster
	health  int
}

func start(t *testing.T, cluster *harness.Cluster) *started {
	t.Helper()
	s := &started{t: t, cluster: cluster, health: harness.FreePort(t)}
	s.Controller = cluster.StartController(t, "FEATURE_GATES=NodeOverlay=true,CapacityBuffer=true,StaticCapacity=true",
		fmt.Sprint("HEALTH_PROBE_PORT=", s.health))
	return s
}

func (s *started) probe(ctx context.Context, path string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, fmt.Sprintf("http://127.0.0.1:%d/%s", s.health, path), nil)
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return errors.New(response.Status)
	}
	return nil
}

// waits checks that the controller lives, is not ready, and names the CRDs.
func (s *started) waits(crds ...string) {
	s.t.Helper()
	for _, crd := range crds {
		until(s.t, crd+" is named", func(context.Context) error {
			if !strings.Contains(s.Log(), `"crd":"`+crd+`"`) {
				return errors.New("not in the log")
			}
			return nil
		})
	}
	until(s.t, "the process lives", func(ctx context.Context) error { return s.probe(ctx, "healthz") })
	if s.probe(s.t.Context(), "readyz") == nil {
		s.t.Errorf("ready without %v", crds)
	}
}

// works checks that the controller becomes ready, and reports a new NodePool as ready.
func (s *started) works(pool string) {
	s.t.Helper()
	until(s.t, "the controller is ready with "+pool, func(ctx context.Context) error {
		select {
		case <-s.Exited():
			s.t.Fatal("the process has ended")
		default:
		}
		return s.probe(ctx, "readyz")
	})
	until(s.t, "a NodePool is ready with "+pool, func(ctx context.Context) error {
		class := object(s.t, `{apiVersion: karpenter.kwok.sh/v1alpha1, kind: KWOKNodeClass, metadata: {name: default}}`)
		node := object(s.t, `{apiVersion: karpenter.sh/v1, kind: NodePool, metadata: {name: `+pool+`}, spec: {template: {spec: {requirements: [], nodeClassRef: {group: karpenter.kwok.sh, kind: KWOKNodeClass, name: default}}}}}`)
		for _, o := range []*unstructured.Unstructured{class, node} {
			if err := s.cluster.Client.Create(ctx, o.DeepCopy()); err != nil && !apierrors.IsAlreadyExists(err) {
				return err
			}
		}
		return said(ctx, s.cluster.Client, node, "Ready", "True", "")
	})
}

// remove removes the CRD, and waits until it is gone.
func remove(t *testing.T, cluster *harness.Cluster, name string) {
	t.Helper()
	crd := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: name}}
	check(t, client.IgnoreNotFound(cluster.Client.Delete(t.Context(), crd)))
	until(t, name+" is gone", func(ctx context.Context) error {
		if err := cluster.Client.Get(ctx, client.ObjectKey{Name: name}, crd); !apierrors.IsNotFound(err) {
			return fmt.Errorf("still there: %w", err)
		}
		return nil
	})
}
