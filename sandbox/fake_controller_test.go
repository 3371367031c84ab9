// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"karpenter/sandbox/fleet"
	"karpenter/sandbox/kubelet"
	"karpenter/sandbox/session"
)

// fakeControllerName is what the test binary is called when it is to be an autoscaler.
const fakeControllerName = "fake-karpenter"

// fakeController launches one large instance when pods wait and none is on its way, and drops instances that are empty. It
// stands in for the real one, which this module knows nothing of.
type fakeController struct {
	client  kubernetes.Interface
	untyped dynamic.Interface
	bought  int
}

// runFakeController is the process; it returns its exit code.
func runFakeController(args []string) int {
	run := controlFake
	switch args[0] {
	case "controller":
	case "top":
		run = showFake
	default:
		return answerFake(args)
	}
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// fakeSituation is what the fake says it is in.
const fakeSituation = "a situation\n"

// answerFake says what the program beside a controller says.
func answerFake(args []string) int {
	switch args[0] {
	case "instance-types":
		fmt.Println("[]")
	case "snapshot":
		fmt.Print(fakeSituation)
	case "explain":
		fmt.Println(`{"nodes": 1, "costPerHour": 0.5, "fresh": {"nodes": 1, "costPerHour": 0.45}, "boundPerHour": 0.4}`)
	default:
		return 2
	}
	return 0
}

func controlFake() error {
	ctx, cancel := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer cancel()
	if err := checkCloud(); err != nil {
		return err
	}
	config, err := clientcmd.BuildConfigFromFlags("", os.Getenv("KUBECONFIG"))
	if err != nil {
		return err
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	untyped, err := dynamic.NewForConfig(config)
	if err != nil {
		return err
	}
	seen, err := fleet.Watch(ctx, config, nil, nil)
	if err != nil {
		return err
	}
	go func() { _ = http.ListenAndServe("127.0.0.1:"+os.Getenv("METRICS_PORT"), http.HandlerFunc(fakeMetrics)) }()
	f := &fakeController{client: client, untyped: untyped}
	for {
		changed := seen.Changed()
		view := seen.View()
		if err := f.step(ctx, &view); err != nil && ctx.Err() == nil {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-changed:
		}
	}
}

// showFake prints what there is whenever it changes, and each report.
func showFake() error {
	ctx, cancel := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer cancel()
	flags := flag.NewFlagSet("top", flag.ContinueOnError)
	kubeconfig, reports := flags.String("kubeconfig", "", ""), flags.Int("reports-fd", 0, "")
	for _, name := range []string{"title", "hint"} {
		flags.String(name, "", "")
	}
	if err := flags.Parse(os.Args[2:]); err != nil {
		return err
	}
	config, err := clientcmd.BuildConfigFromFlags("", *kubeconfig)
	if err != nil {
		return err
	}
	seen, err := fleet.Watch(ctx, config, nil, nil)
	if err != nil {
		return err
	}
	go func() { _, _ = io.Copy(os.Stdout, os.NewFile(uintptr(*reports), "reports")) }()
	for {
		changed := seen.Changed()
		fmt.Println(new(seen.View()))
		select {
		case <-ctx.Done():
			return nil
		case <-changed:
		}
	}
}

// fakeMetrics tells how many requests the fake says it has made, none of which was rejected.
func fakeMetrics(w http.ResponseWriter, _ *http.Request) {
	fmt.Fprint(w, `# TYPE rest_client_requests_total counter
rest_client_requests_total{code="200",method="GET"} 7
rest_client_requests_total{code="409",method="PUT"} 2
`)
}

// checkCloud checks that the cloud matches the controller's environment.
func checkCloud() error {
	types, url := os.Getenv("INSTANCE_TYPES_FILE_PATH"), os.Getenv("AWS_ENDPOINT_URL")
	switch provider := os.Getenv("CLOUD_PROVIDER"); provider {
	case session.KWOK:
		if filepath.Base(types) != "instance-types.json" || url != "" {
			return fmt.Errorf("instance types in %q, AWS at %q", types, url)
		}
	case session.AWS:
		if name, secret := os.Getenv("CLUSTER_NAME"), os.Getenv("AWS_PROFILE"); name != session.ClusterName || secret != "" {
			return fmt.Errorf("cluster %q, AWS profile %q", name, secret)
		}
		answer, err := http.Get(url)
		if err != nil {
			return err
		}
		return answer.Body.Close()
	default:
		return fmt.Errorf("provider %q", provider)
	}
	return nil
}

// runFakeSimulator stands in for the simulated AWS: it has one price.
func runFakeSimulator(args []string) int {
	flags := flag.NewFlagSet(session.SimulatorName, flag.ExitOnError)
	listen := flags.String("listen", "", "")
	for _, name := range []string{"kubeconfig", "cluster-name", "region", "journal"} {
		flags.String(name, "", "")
	}
	_ = flags.Parse(args) // ends the process
	http.HandleFunc("/_awssim/prices", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "fake.large zone-a spot 0.25") })
	ctx, cancel := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer cancel()
	server := &http.Server{Addr: *listen}
	context.AfterFunc(ctx, func() { _ = server.Close() })
	if err := server.ListenAndServe(); !errors.Is(err, http.ErrServerClosed) {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

func (f *fakeController) step(ctx context.Context, v *fleet.View) error {
	for _, p := range v.Pools {
		if !p.Ready {
			if err := f.makeReady(ctx, p.Name); err != nil {
				return err
			}
		}
	}
	pods := v.Totals()
	if pods.Waiting > 0 && len(v.Machines) == 0 {
		return f.buy(ctx)
	}
	if pods.Pods() > 0 {
		return nil
	}
	for _, m := range v.Machines {
		if m.State != fleet.Ready {
			continue
		}
		if err := f.client.CoreV1().Nodes().Delete(ctx, m.Node, metav1.DeleteOptions{}); err != nil {
			return err
		}
		if err := f.claims().Delete(ctx, m.Name, metav1.DeleteOptions{}); err != nil {
			return err
		}
	}
	return nil
}

func (f *fakeController) makeReady(ctx context.Context, pool string) error {
	pools := f.untyped.Resource(schema.GroupVersionResource{Group: "karpenter.sh", Version: "v1", Resource: "nodepools"})
	status := []byte(`{"status":{"conditions":[{"type":"Ready","status":"True","reason":"Ready","message":"","lastTransitionTime":"2026-01-01T00:00:00Z"}]}}`)
	_, err := pools.Patch(ctx, pool, types.MergePatchType, status, metav1.PatchOptions{}, "status")
	return err
}

func (f *fakeController) claims() dynamic.ResourceInterface {
	return f.untyped.Resource(schema.GroupVersionResource{Group: "karpenter.sh", Version: "v1", Resource: "nodeclaims"})
}

func (f *fakeController) buy(ctx context.Context) error {
	f.bought++
	name := fmt.Sprintf("default-%d-%d", os.Getpid(), f.bought)
	labels := map[string]string{
		"karpenter.sh/nodepool": "default", "karpenter.sh/capacity-type": "spot", corev1.LabelInstanceTypeStable: "fake.large",
		corev1.LabelTopologyZone: "zone-a", "eks-node-viewer/instance-price": "0.500000",
	}
	claim := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "karpenter.sh/v1", "kind": "NodeClaim", "metadata": map[string]any{"name": name},
		"spec": map[string]any{
			"nodeClassRef": map[string]any{"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "default"},
			"requirements": []any{},
		},
	}}
	claim.SetLabels(labels)
	created, err := f.claims().Create(ctx, claim, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	created.Object["status"] = map[string]any{"providerID": "fake://" + name}
	if _, err := f.claims().UpdateStatus(ctx, created, metav1.UpdateOptions{}); err != nil {
		return err
	}
	size := corev1.ResourceList{"cpu": resource.MustParse("1000"), "memory": resource.MustParse("1000Gi"), "pods": resource.MustParse("500")}
	labels[corev1.LabelHostname] = name
	_, err = f.client.CoreV1().Nodes().Create(ctx, &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: "node-" + name, Labels: labels, Annotations: map[string]string{kubelet.FakeNodeAnnotation: "fake"}},
		Spec:       corev1.NodeSpec{ProviderID: "fake://" + name},
		Status:     corev1.NodeStatus{Capacity: size, Allocatable: size},
	}, metav1.CreateOptions{})
	return err
}
