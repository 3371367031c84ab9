// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"context"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"karpenter/sandbox/fleet"
)

const defaultScale = 5000

// size is what each pod of a deployment asks for.
type size struct {
	cpu, memory string
}

// sizes are the deployments of a stress: what pods of real clusters ask for, many small ones and few large, some with
// much memory for their CPU and some with little.
func sizes() []size {
	return []size{
		{"50m", "64Mi"}, {"100m", "128Mi"}, {"100m", "256Mi"}, {"100m", "512Mi"}, {"200m", "256Mi"},
		{"200m", "512Mi"}, {"250m", "512Mi"}, {"250m", "1Gi"}, {"300m", "384Mi"}, {"500m", "512Mi"},
		{"500m", "1Gi"}, {"500m", "2Gi"}, {"750m", "1536Mi"}, {"1", "1Gi"}, {"1", "2Gi"},
		{"1", "4Gi"}, {"1500m", "3Gi"}, {"2", "2Gi"}, {"2", "8Gi"}, {"4", "8Gi"},
	}
}

// Stress scales many pods of mixed sizes from nothing to running and back, and prints figures.
func Stress(ctx context.Context, options Options) error {
	if options.Scale == 0 {
		options.Scale = defaultScale
	}
	steps := []step{
		{"the default pool, without its limits", liftLimits, []want{{"all pools are ready", time.Minute, poolsReady}}},
		{
			fmt.Sprintf("%d pods of %d deployments", options.Scale, len(sizes())),
			func(ctx context.Context, st *stage) error { return deploy(ctx, st, options.Scale) },
			[]want{
				{"first node launched", upWithin, firstBought},
				{"first node ready", upWithin, firstReady},
				{fmt.Sprintf("all %d pods running", options.Scale), 15 * time.Minute, allRunning(options.Scale)},
			},
		},
		{"scale everything to 0", scaleToZero, []want{
			{"all pods gone", 10 * time.Minute, noPods},
			{"all nodes gone", 20 * time.Minute, noMachines},
		}},
	}
	return perform(ctx, options, script{steps: steps, settle: 3 * time.Second})
}

// allRunning wants pods to run, whichever they are of.
func allRunning(pods int) func(*fleet.View) string {
	return func(v *fleet.View) string {
		if all := v.Totals(); all.Running != pods {
			return fmt.Sprintf("%d of %d pods run, %d start, %d wait%s", all.Running, pods, all.Starting, all.Waiting, refusals(v))
		}
		return ""
	}
}

// liftLimits takes the limits off all pools.
func liftLimits(ctx context.Context, st *stage) error {
	pools := st.untyped.Resource(schema.GroupVersionResource{Group: "karpenter.sh", Version: "v1", Resource: "nodepools"})
	for _, p := range st.source.View().Pools {
		if _, err := pools.Patch(ctx, p.Name, types.MergePatchType, []byte(`{"spec":{"limits":null}}`), metav1.PatchOptions{}); err != nil {
			return fmt.Errorf("lift the limits of %s: %w", p.Name, err)
		}
	}
	return nil
}

func deploy(ctx context.Context, st *stage, pods int) error {
	all := sizes()
	for i, size := range all {
		replicas := pods / len(all)
		if i < pods%len(all) {
			replicas++
		}
		_, err := st.client.AppsV1().Deployments(metav1.NamespaceDefault).Create(ctx, deployment(deploymentName(i), size, replicas), metav1.CreateOptions{})
		if err != nil {
			return err
		}
	}
	return nil
}

func deployment(name string, size size, replicas int) *appsv1.Deployment {
	labels := map[string]string{"app": name}
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: appsv1.DeploymentSpec{
			Replicas: new(int32(replicas)),
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec: corev1.PodSpec{
					TerminationGracePeriodSeconds: new(int64(0)),
					Containers: []corev1.Container{{
						Name: "main", Image: "registry.k8s.io/pause:3.10",
						Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{
							corev1.ResourceCPU:    resource.MustParse(size.cpu),
							corev1.ResourceMemory: resource.MustParse(size.memory),
						}},
					}},
				},
			},
		},
	}
}

func deploymentName(i int) string { return fmt.Sprintf("stress-%02d", i) }

func scaleToZero(ctx context.Context, st *stage) error {
	for i := range sizes() {
		if err := scale(deploymentName(i), 0)(ctx, st); err != nil {
			return err
		}
	}
	return nil
}
