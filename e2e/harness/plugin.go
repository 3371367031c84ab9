// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
)

// ExecKubeconfig returns a kubeconfig whose user is an exec plugin that prints a
// token of the service account, as the kubeconfig of an EKS cluster has one.
func ExecKubeconfig(t testing.TB, c *Cluster, account *corev1.ServiceAccount) string {
	t.Helper()
	seconds := int64(7200)
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: &seconds}}
	if err := c.Client.SubResource("token").Create(t.Context(), account, request); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	credential := fmt.Sprintf(`{"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential","status":{"token":%q}}`, request.Status.Token)
	authority := filepath.Join(dir, "ca.crt")
	config := fmt.Sprintf(`apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: %q, certificate-authority: %q}}]
users:
- name: plugin
  user:
    exec: {apiVersion: client.authentication.k8s.io/v1, interactiveMode: Never, command: cat, args: [%q]}
contexts: [{name: c, context: {cluster: c, user: plugin}}]
current-context: c
`, c.Config.Host, authority, filepath.Join(dir, "credential"))
	path := filepath.Join(dir, "kubeconfig")
	for file, content := range map[string][]byte{
		authority: c.Config.CAData, filepath.Join(dir, "credential"): []byte(credential), path: []byte(config),
	} {
		if err := os.WriteFile(file, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return path
}
