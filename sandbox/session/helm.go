// SPDX-License-Identifier: Apache-2.0

package session

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// release and systemNamespace are where the charts are installed, as people's runbooks have it.
const (
	release         = "karpenter"
	systemNamespace = "kube-system"
)

// helm installs or upgrades a release from the chart of the same name, and shows the command and what Helm says.
func (s *Session) helm(ctx context.Context, options *Options, name string, values ...string) error {
	args := []string{"upgrade", "--install", name, filepath.Join(options.Charts, name), "--namespace", systemNamespace, "--wait"}
	for _, v := range values {
		args = append(args, "--set", v)
	}
	fmt.Fprintln(options.Report, "$ helm", strings.Join(args, " "))
	home := filepath.Join(s.dir, "helm")
	cmd := exec.CommandContext(ctx, options.Helm, args...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+s.Kubeconfig(), "HELM_CACHE_HOME="+home, "HELM_CONFIG_HOME="+home, "HELM_DATA_HOME="+home)
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = options.Report, &said
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("helm %s: %w\n%s", strings.Join(args, " "), err, strings.TrimSpace(said.String()))
	}
	return nil
}

// installChart installs the controller's chart and returns the environment of its container, as the kubelet would make
// it. The Deployment has no replicas: a pod here runs in name only, so a process on this machine stands for it, under
// the pod's service account.
func (s *Session) installChart(ctx context.Context, options *Options) ([]string, error) {
	err := s.helm(ctx, options, release,
		"replicas=0", "settings.cloudProvider="+options.Provider, "settings.clusterName="+ClusterName,
		"settings.interruptionQueue="+ClusterName, "settings.clusterEndpoint="+s.config.Host, "settings.azure.provisionMode="+options.ProvisionMode,
		fmt.Sprintf("controller.metrics.port=%d", s.ports.metrics), fmt.Sprintf("controller.healthProbe.port=%d", s.ports.health),
		"controller.resources.requests.cpu=1", "controller.resources.requests.memory=1Gi",
		"controller.resources.limits.cpu=1", "controller.resources.limits.memory=1Gi")
	if err != nil {
		return nil, err
	}
	client, err := kubernetes.NewForConfig(s.config)
	if err != nil {
		return nil, err
	}
	deployment, err := client.AppsV1().Deployments(systemNamespace).Get(ctx, release, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	pod := &deployment.Spec.Template.Spec
	kubeconfig, err := s.accountKubeconfig(ctx, client, pod.ServiceAccountName)
	if err != nil {
		return nil, err
	}
	environment := []string{"DISABLE_LEADER_ELECTION=false", "KUBECONFIG=" + kubeconfig}
	for _, v := range pod.Containers[0].Env {
		value, err := variable(&pod.Containers[0], &v)
		if err != nil {
			return nil, err
		}
		environment = append(environment, v.Name+"="+value)
	}
	return environment, nil
}

// variable is what the kubelet makes of a container's variable.
func variable(container *corev1.Container, v *corev1.EnvVar) (string, error) {
	from := v.ValueFrom
	switch {
	case from == nil:
		return v.Value, nil
	case from.FieldRef != nil && from.FieldRef.FieldPath == "metadata.namespace":
		return systemNamespace, nil
	case from.ResourceFieldRef != nil:
		asks := map[string]corev1.ResourceList{"requests": container.Resources.Requests, "limits": container.Resources.Limits}
		kind, resource, _ := strings.Cut(from.ResourceFieldRef.Resource, ".")
		if amount, ok := asks[kind][corev1.ResourceName(resource)]; ok {
			divisor := cmp.Or(from.ResourceFieldRef.Divisor.MilliValue(), 1000)
			return fmt.Sprint((amount.MilliValue() + divisor - 1) / divisor), nil
		}
	}
	return "", fmt.Errorf("the chart's variable %s: the sandbox does not know the value of %v", v.Name, from)
}

// accountKubeconfig writes a file that reaches the API server as pods of the service account do.
func (s *Session) accountKubeconfig(ctx context.Context, client kubernetes.Interface, account string) (string, error) {
	week := int64(7 * 24 * 3600)
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: &week}}
	token, err := client.CoreV1().ServiceAccounts(systemNamespace).CreateToken(ctx, account, request, metav1.CreateOptions{})
	if err != nil {
		return "", fmt.Errorf("token of service account %s: %w", account, err)
	}
	config := clientcmdapi.NewConfig()
	config.Clusters[release] = &clientcmdapi.Cluster{
		Server: s.config.Host, CertificateAuthority: s.config.CAFile, CertificateAuthorityData: s.config.CAData,
	}
	config.AuthInfos[release] = &clientcmdapi.AuthInfo{Token: token.Status.Token}
	config.Contexts[release] = &clientcmdapi.Context{Cluster: release, AuthInfo: release}
	config.CurrentContext = release
	path := filepath.Join(s.dir, "karpenter.kubeconfig")
	return path, errors.Join(clientcmd.WriteToFile(*config, path), os.Chmod(path, 0o600))
}
