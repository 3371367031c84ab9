// SPDX-License-Identifier: Apache-2.0

package helm

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"karpenter/e2e/harness"
)

func background() context.Context { return context.Background() }

func decode(t *testing.T, text string, into any) {
	t.Helper()
	if err := yaml.Unmarshal([]byte(text), into); err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
}

// start runs the program as the kubelet would run the pod's container: with its
// variables and with its service account's token. More variables stand for
// what differs between instances.
func (i *installation) start(pod *corev1.Pod, more ...string) *harness.Controller {
	i.Helper()
	container := pod.Spec.Containers[0]
	if len(container.Args)+len(container.Command)+len(container.EnvFrom) > 0 {
		i.Fatalf("the container has arguments, which this test does not pass: %+v", container)
	}
	env := []string{"DISABLE_LEADER_ELECTION=false", "KUBECONFIG=" + i.kubeconfig(pod)}
	for _, v := range container.Env {
		env = append(env, v.Name+"="+i.value(pod, &container, v))
	}
	return i.StartController(i.T, append(env, more...)...)
}

// value is what the kubelet makes of a variable.
func (i *installation) value(pod *corev1.Pod, container *corev1.Container, v corev1.EnvVar) string {
	i.Helper()
	from := v.ValueFrom
	switch {
	case from == nil:
		return v.Value
	case from.FieldRef != nil && from.FieldRef.FieldPath == "metadata.namespace":
		return pod.Namespace
	case from.ResourceFieldRef != nil:
		var amount resource.Quantity
		switch from.ResourceFieldRef.Resource {
		case "requests.cpu":
			amount = container.Resources.Requests[corev1.ResourceCPU]
		case "limits.memory":
			amount = container.Resources.Limits[corev1.ResourceMemory]
		}
		divisor := from.ResourceFieldRef.Divisor.MilliValue()
		if divisor == 0 {
			divisor = 1000
		}
		if amount.Sign() > 0 {
			return fmt.Sprint((amount.MilliValue() + divisor - 1) / divisor)
		}
	}
	i.Fatalf("this test does not know the value of %+v", v)
	return ""
}

// kubeconfig writes a file that reaches the API server as the pod does.
func (i *installation) kubeconfig(pod *corev1.Pod) string {
	i.Helper()
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Spec.ServiceAccountName}}
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: ptr.To[int64](7200)}}
	if err := i.Client.SubResource("token").Create(i.Context(), account, request); err != nil {
		i.Fatal(err)
	}
	config := clientcmdapi.NewConfig()
	config.Clusters["c"] = &clientcmdapi.Cluster{Server: i.Config.Host, CertificateAuthority: i.Config.CAFile, CertificateAuthorityData: i.Config.CAData}
	config.AuthInfos["c"] = &clientcmdapi.AuthInfo{Token: request.Status.Token}
	config.Contexts["c"] = &clientcmdapi.Context{Cluster: "c", AuthInfo: "c"}
	config.CurrentContext = "c"
	path := filepath.Join(i.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*config, path); err != nil {
		i.Fatal(err)
	}
	if err := os.Chmod(path, 0o600); err != nil {
		i.Fatal(err)
	}
	return path
}

// leads waits until a replica other than not holds the chart's lease, and
// returns which.
func (i *installation) leads(not string) string {
	i.Helper()
	var held string
	err := wait.PollUntilContextTimeout(i.Context(), 100*time.Millisecond, patience, true, func(ctx context.Context) (bool, error) {
		lease := &coordinationv1.Lease{}
		if err := i.Client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: "karpenter-leader-election"}, lease); err != nil {
			return false, client.IgnoreNotFound(err)
		}
		held = ptr.Deref(lease.Spec.HolderIdentity, "")
		return held != "" && held != not, nil
	})
	if err != nil {
		i.Fatalf("the lease is held by %q: %v", held, err)
	}
	return held
}

func (i *installation) scale(namespace string, replicas int) {
	i.Helper()
	i.patch(&appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "web"}}, fmt.Sprintf(`{"spec":{"replicas":%d}}`, replicas))
}
