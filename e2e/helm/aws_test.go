// SPDX-License-Identifier: Apache-2.0

package helm

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// TestAWS installs the chart as runbooks for EKS do, with its default values, and
// runs the program with what the chart gives it on AWS in memory: nodes come and
// go, users ask about them, and the EC2NodeClass is finished with.
func TestAWS(t *testing.T) {
	i := begin(t)
	i.install("--set", "settings.clusterName=prod", "--set", "settings.interruptionQueue=prod",
		"--set", fmt.Sprint("controller.metrics.port=", freePort(t)), "--set", fmt.Sprint("controller.healthProbe.port=", freePort(t)))
	if out, err := i.try("upgrade", "--install", "--reset-values", "karpenter", "../../charts/karpenter"); err == nil {
		t.Errorf("the chart does without the name of a cluster:\n%s", out)
	}
	account := i.StartAWS(t, "--cluster-name", "prod")
	manifest, err := os.ReadFile("testdata/aws.yaml")
	if err != nil {
		t.Fatal(err)
	}
	i.Apply(t, string(manifest))
	pod := i.pod()
	v := i.Watch(t)
	program := i.start(pod, append(account.Environment(), withoutStreams)...)
	v.Until("pods run", patience, running(v, "cloud", 3))
	i.asks("cloud", v.Pods("cloud")[0].Name)
	i.scale("cloud", 0)
	v.Until("nodes are gone", patience, func() string { return left(v) })
	i.remove("karpenter.sh/v1", "NodePool", "work")
	i.remove("karpenter.k8s.aws/v1", "EC2NodeClass", "default")
	i.finished()
	program.Stop()
	i.prove(pod.Spec.ServiceAccountName, "karpenter", "karpenter-dns")
	i.uninstall()
}

// finished waits until the EC2NodeClass has lost its finalizer.
func (i *installation) finished() {
	i.Helper()
	class := &unstructured.Unstructured{}
	class.SetAPIVersion("karpenter.k8s.aws/v1")
	class.SetKind("EC2NodeClass")
	err := wait.PollUntilContextTimeout(i.Context(), 100*time.Millisecond, patience, true, func(ctx context.Context) (bool, error) {
		err := i.Client.Get(ctx, client.ObjectKey{Name: "default"}, class)
		return apierrors.IsNotFound(err), client.IgnoreNotFound(err)
	})
	if err != nil {
		i.Fatalf("the EC2NodeClass is there: %v", err)
	}
}
